/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The policy: service classes and the rules that give them to groups, as plain data.
 *
 * A policy is made from an ordered list of JSON documents and is never changed afterwards: a reload builds a new
 * one and swaps it in, so a bad document can't leave half a policy behind. No I/O here: the caller reads the files. */

#include <jansson.h>

#include "policies/diag.h"
#include "policies/util.h"

#define POLICY_VERSION 1
#define POLICY_NAME_MAX 64             /* class and rule names: [a-z0-9]([a-z0-9._-]*), lower case */
#define LATENCY_NICE_MIN (-20)
#define LATENCY_NICE_MAX 19
#define QUOTA_MIN_USEC UINT64_C(1000)          /* kernel: min_cfs_quota_period, kernel/sched/core.c */
/* The kernel takes quota + burst up to max_cfs_runtime = 2^44 - 1 us (MAX_BW, kernel/sched/sched.h): half of it for each. */
#define QUOTA_MAX_USEC ((UINT64_C(1) << 43) - 1)
#define PERIOD_MIN_USEC UINT64_C(1000)
#define PERIOD_MAX_USEC UINT64_C(1000000)      /* kernel: max_cfs_quota_period */
#define PERIOD_DEFAULT_USEC UINT64_C(100000)

/* How an amount of CPU time per period is said. JSON: "keep", "max", "full" or an object with one key. */
typedef enum AmountKind {
        AMOUNT_UNSET = 0,        /* the document said nothing */
        AMOUNT_KEEP,             /* "keep": the owner's own value */
        AMOUNT_MAX,              /* "max": no limit (quota, ceiling) */
        AMOUNT_FULL,             /* "full": as much as the quota (burst) */
        AMOUNT_PERCENT_OF_BASE,  /* {"percent_of_base": N}: of the owner's own quota (quota, floor, ceiling) */
        AMOUNT_PERCENT_OF_CPU,   /* {"percent_of_cpu": N}: 100 is one whole CPU (quota, floor, ceiling) */
        AMOUNT_PERCENT_OF_QUOTA, /* {"percent_of_quota": N}: of the quota in force (burst) */
        AMOUNT_USEC,             /* {"usec": N}: microseconds per period */
} AmountKind;

typedef struct Amount {
        AmountKind kind;
        uint64_t value; /* percent, or usec; 0 for kinds that carry none */
} Amount;

typedef enum CoreScheduling {
        CORE_SCHEDULING_NONE = 0, /* no cookie: threads share cores with everybody */
        CORE_SCHEDULING_CLASS,    /* all groups of the class share one cookie */
        CORE_SCHEDULING_GROUP,    /* each group has its own */
} CoreScheduling;

typedef enum DriftMode {
        DRIFT_ADOPT = 0, /* a foreign value becomes the new base */
        DRIFT_ENFORCE,   /* write ours again, at most a few times a minute, then hold */
        DRIFT_HOLD,      /* leave the foreign value for a while and report */
} DriftMode;

typedef enum LawKind {
        LAW_STATIC = 0,
        LAW_BURST,
        LAW_KOORDLET,
        LAW_CAPTAIN,
        LAW_ADAPTIVE,
        _LAW_KIND_MAX,
} LawKind;

/* What a law aims at. 0 means: the law's own default. */
typedef struct LawTargets {
        uint32_t throttled_permyriad; /* share of throttled periods that is fine, 1/10000 */
        uint32_t strictness;          /* adaptive's dial K + 1: 1 lean, 2 default, 3..4 latency */
} LawTargets;

typedef struct ServiceClass {
        char *name;
        char *description;
        int priority;           /* 0..1000, higher is more important: who gives way first */
        bool has_latency_nice;  /* false: latency of the group's threads is not touched */
        int latency_nice;       /* -20..19, lower is served sooner */
        CoreScheduling core_scheduling;

        bool manages_bandwidth; /* the document has a "cpu" object that says more than enable_controller */
        Amount quota;           /* KEEP (default), PERCENT_OF_BASE, PERCENT_OF_CPU, USEC, MAX */
        uint64_t period_usec;   /* 0: keep the live one */
        Amount burst;           /* UNSET: keep; PERCENT_OF_QUOTA, USEC, FULL */
        Amount floor;           /* UNSET: 100 % of the resolved quota */
        Amount ceiling;         /* UNSET: the owner's explicit limit, else the resolved quota */
        LawKind law;
        LawTargets targets;
        bool enable_controller; /* may turn the cpu controller on in the slice (affects the siblings) */

        DriftMode drift;
        bool inherit;           /* latency and cookie also for groups below that have no class */

        char *origin;           /* file that defined it, for explain */
} ServiceClass;

/* Conditions of a rule; NULL is "any". All that are given must hold. */
typedef struct RuleMatch {
        char *unit;           /* fnmatch glob on the unit's names (id and aliases) */
        char *slice;          /* exact or glob, the unit's slice or any slice above it */
        char *cgroup;         /* glob on the path from the cgroup root, leading slash; "*" stays in one level, "**" crosses */
        char *user;           /* user name or numeric uid: user-UID.slice or the unit's User= */
        char *kubernetes_qos; /* guaranteed, burstable, besteffort */
        char *pod_uid;        /* dashes or underscores, compared without regard to which */
        char *container_id;   /* at least 12 hex digits, prefix match */
} RuleMatch;

typedef struct Rule {
        char *name;
        char *class_name;
        RuleMatch match;
        bool force;           /* may take a protected group; only with an exact name in "unit" or "cgroup" */
        char *origin;
} Rule;

/* A patch or switch state that the policy asks for: "patches": {"latency-nice": "on"}. */
typedef struct PatchWish {
        char *id;
        char *state; /* "on", "off", or a number as text for value switches */
} PatchWish;

typedef struct Policy {
        ServiceClass *classes;
        size_t n_classes;
        Rule *rules;
        size_t n_rules;
        PatchWish *patches;
        size_t n_patches;
} Policy;

/* One document as the caller read it. */
typedef struct PolicyDocument {
        const char *file;   /* name for diagnoses and origin */
        const char *text;
        size_t length;
} PolicyDocument;

/* Builds a policy from documents in their order: a later class or rule of the same name replaces the earlier one in
 * its place. Checks everything and reports all it finds, not only the first.
 * Takes documents that stay the caller's. Returns 0 and a policy to free with policy_free(), or -EINVAL with at least
 * one diagnosis in list, or -ENOMEM. On failure *ret is untouched. Rules that name an unknown class are errors. */
int policy_build(const PolicyDocument *documents, size_t n_documents, Policy **ret, DiagList *list);

/* Frees a policy; NULL is fine. */
Policy *policy_free(Policy *p);
static inline void policy_free_pointer(Policy **p) {
        (void) policy_free(*p);
}

/* Looks a class up by name. Returns NULL when there is none. */
const ServiceClass *policy_find_class(const Policy *p, const char *name);

/* Whether a name may be a class or rule name. */
bool policy_name_is_valid(const char *name);

/* Words of the enums, as in the documents ("class", "adopt", "captain"); parse returns 0 or -EINVAL. */
const char *core_scheduling_to_string(CoreScheduling c);
const char *drift_mode_to_string(DriftMode d);
const char *law_kind_to_string(LawKind l);
int law_kind_from_string(const char *s, LawKind *ret);

/* The document forms of parts of a policy, new references. NULL without memory.
 * class_to_json gives a complete class (every field, also defaulted ones) that policy_build accepts again. */
json_t *amount_to_json(const Amount *a);
json_t *class_to_json(const ServiceClass *c);
json_t *rule_to_json(const Rule *r);

/* Assignment overrides: the numbers of a class that one assignment may replace. has_* false / UNSET: the class's. */
typedef struct Overrides {
        bool has_latency_nice;
        int latency_nice;
        Amount quota;
        uint64_t period_usec;
        Amount burst;
        Amount floor;
        Amount ceiling;
} Overrides;

/* Reads overrides from JSON {"latency_nice":..., "cpu": {"quota":..., "period_usec":..., "burst":..., "floor":..., "ceiling":...}}.
 * pointer is the JSON pointer of the object in its document, for the diagnoses. Returns 0, -EINVAL with diagnoses, -ENOMEM. */
int overrides_from_json(json_t *o, const char *pointer, Overrides *ret, DiagList *list);
/* New reference to the document form (only what is set); NULL without memory. */
json_t *overrides_to_json(const Overrides *o);
bool overrides_is_empty(const Overrides *o);
/* What a class means with an assignment's overrides applied: a shallow copy in *ret whose strings stay the class's. */
void class_apply_overrides(const ServiceClass *c, const Overrides *o, ServiceClass *ret);
