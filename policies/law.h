/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Control laws: pure functions from what was seen to what is wanted.
 *
 * The same code runs in the daemon, in the simulator and in the tests. No I/O, no clock (time comes in the sample), no
 * allocation. A law may move quota, burst and latency nice within the bounds of its config; the caller applies and records. */

#include "policies/policy.h"
#include "policies/resolve.h"

/* Fixed facts for one group, made when its class or base changes. */
typedef struct LawConfig {
        LawKind law;
        LawTargets targets;
        Bandwidth base;            /* where it starts and returns to when quiet */
        uint64_t floor_usec;       /* per period */
        uint64_t ceiling_usec;     /* per period; QUOTA_UNLIMITED: no ceiling */
        Amount burst;              /* the class's rule for the burst */
        bool may_raise;            /* false for batch and below: no upward branch (a hog would climb to its ceiling) */
        bool has_latency_nice;
        int latency_nice;          /* the class's own value */
        int priority;
        uint32_t n_cpus;
} LawConfig;

/* One observation: differences since the previous sample of this group. A field that the kernel lacks: has_* false. */
typedef struct LawSample {
        uint64_t now_usec;              /* monotonic */
        uint64_t window_usec;           /* wall time that the differences cover */
        bool valid;                     /* false: data is missing (hold) */
        uint64_t nr_periods;
        uint64_t nr_throttled;
        uint64_t throttled_usec;        /* summed over CPUs: never compare with wall time */
        uint64_t usage_usec;
        bool has_bursts;
        uint64_t nr_bursts;
        uint64_t burst_usec;
        bool has_pressure;
        uint64_t some_usec;             /* PSI totals, differences */
        uint64_t full_usec;
        bool has_force_idle;
        uint64_t force_idle_usec;
        bool has_bandwidth_loss;        /* our patch's cpu.stat fields */
        uint64_t parked_usec;
        uint64_t lost_usec;
        bool ancestor_throttled;        /* somebody above was throttled in this window */
        Bandwidth live;                 /* what the kernel has now (the live period may differ from ours) */
        /* host */
        uint32_t host_busy_permyriad;   /* of all CPUs, 0..10000 */
        bool has_host_pressure;
        uint64_t host_some_usec;
        bool contention_above;          /* a group of a higher priority is a witness of contention, and it is this one's turn to give way
                                         * (law_choose_who_gives_way()) */
        bool has_host_room;             /* the caller keeps a ceiling for the sum on the host */
        uint64_t host_room_usec;        /* per live period: what quota + burst of this group may still grow by; a raise up to
                                         * the base is always allowed */
} LawSample;

typedef enum LawCause {
        LAW_CAUSE_NONE = 0,             /* nothing to do */
        LAW_CAUSE_DEMAND_ABOVE_LIMIT,
        LAW_CAUSE_ANCESTOR_LIMIT,
        LAW_CAUSE_RUNTIME_LOST,
        LAW_CAUSE_CONTENTION,
        LAW_CAUSE_OWN_LIMIT,
        LAW_CAUSE_FORCE_IDLE,
        LAW_CAUSE_OVER_PROVISIONED,
        LAW_CAUSE_QUIET,                /* back to the base */
        LAW_CAUSE_NODE_OVERLOAD,        /* koordlet */
        LAW_CAUSE_ROLLBACK,             /* a step down was wrong */
        LAW_CAUSE_GIVE_WAY,             /* a higher class needs the CPU */
        LAW_CAUSE_MISSING_DATA,
        LAW_CAUSE_FOREIGN_CHANGE,
        _LAW_CAUSE_MAX,
} LawCause;

/* Why something that the law wanted was cut or not done. */
typedef enum LawHold {
        LAW_HOLD_NONE = 0,
        LAW_HOLD_CEILING,               /* the class's ceiling */
        LAW_HOLD_FLOOR,
        LAW_HOLD_NO_RAISE,              /* a class that may not rise above its base */
        LAW_HOLD_HOST_CEILING,          /* the sum on the host */
        LAW_HOLD_WRITE_BUDGET,          /* too many writes in a short time */
        LAW_HOLD_IN_FLIGHT,             /* the last write has not arrived */
        _LAW_HOLD_MAX,
} LawHold;

/* What a law wants. changed false: leave everything (cause may still explain, e.g. ANCESTOR_LIMIT). */
typedef struct LawDecision {
        bool changed;
        uint64_t quota_usec;            /* in periods of the live period */
        uint64_t burst_usec;
        bool latency_nice_changed;
        int latency_nice;
        LawCause cause;
        /* the numbers behind it, for explain: */
        uint32_t throttled_permyriad;   /* throttled periods of all, in the window judged */
        uint64_t usage_per_period_usec;
        uint64_t need_usec;             /* what the law reckons is needed per period; 0: not reckoned */
        LawHold hold;
} LawDecision;

#define LAW_HISTORY 64                  /* samples that a law may look back on: 6.4 s of 100 ms */

#define LAW_NEEDS 64                    /* seconds that the adaptive law may remember */

/* State of one group's law: plain memory, all zeroes is the start. Laws share it; unused parts stay zero.
 * Amounts are per period of config->base, whatever the live period is. */
typedef struct LawState {
        uint64_t started_usec;
        uint64_t last_decision_usec;
        uint64_t last_write_usec;      /* when a change was last asked for */
        uint64_t written_from_usec;    /* the live quota when it was */
        uint64_t last_raise_usec;
        uint64_t last_throttled_usec;
        uint64_t last_lower_usec;
        uint64_t quota_usec;            /* what the law last wanted; 0: not started */
        uint64_t burst_usec;
        uint64_t previous_quota_usec;   /* before the last step down */
        int64_t margin_permyriad;       /* captain */
        uint64_t window_periods;        /* sums since the last decision */
        uint64_t window_throttled;
        uint64_t window_usage_usec;
        uint64_t window_usec;
        uint64_t history_usage_usec[LAW_HISTORY];   /* per sample */
        uint64_t history_window_usec[LAW_HISTORY];
        uint32_t history_next;
        uint32_t history_count;
        int64_t bucket_usec;            /* adaptive: own estimate of the token bucket; below 0: a debt */
        uint32_t regret_level;
        uint64_t regret_until_usec;
        uint64_t write_tokens_milli;
        uint64_t tokens_updated_usec;
        int latency_nice;
        uint64_t latency_since_usec;
        uint64_t stalled_since_usec;   /* stalled without throttling since; 0: it is not */
        bool witness;
        uint64_t need_usec[LAW_NEEDS];  /* adaptive: largest need in each second */
        uint64_t need_second;           /* the second that is being filled */
        uint64_t contended_usec;        /* adaptive: when it last was a witness */
        uint64_t gave_way_usec;         /* adaptive: when it last gave way */
        uint32_t throttled_share_permyriad; /* adaptive: of the last samples, newer ones count more */
        uint64_t scratch[8];            /* for laws to come */
} LawState;

/* The config for a group of this class, from what resolve_bandwidth() made of the class. Classes of batch's priority may not rise above their
 * base (LAW_RAISE_FROM_PRIORITY). */
void law_config_from_class(const ServiceClass *c, const BandwidthPlan *plan, uint32_t n_cpus, LawConfig *ret);

/* Prepares the state for a config (start at the base). A foreign change of the limit is handled by calling it again. */
void law_reset(const LawConfig *config, LawState *state);

/* What a law starts from: the base, with the burst that the law and the class's rule give it. The caller applies it when a group gets the
 * class; the law then finds it in sample->live. */
void law_start(const LawConfig *config, Bandwidth *ret);

/* One step. Never fails; ret is always filled. Guarantees for any input: floor <= quota <= ceiling (when changed),
 * burst <= quota, quota >= QUOTA_MIN_USEC. */
void law_step(const LawConfig *config, LawState *state, const LawSample *sample, LawDecision *ret);

/* Whether the last step showed that the group waits for CPUs that others use: stalled on a busy host for longer than a period, and neither
 * the group nor anything above it was throttled meanwhile. Only such a group is a witness of contention for others. */
bool law_is_witness(const LawState *state);

/* One group among all that laws steer, for the question who gives way. */
typedef struct LawPeer {
        int priority;
        bool witness;                  /* law_is_witness() */
        bool can_give;                 /* its law gives way (adaptive), and its quota is above its floor */
} LawPeer;

/* Fills ret[i] with contention_above of the next sample of peers[i]. Classes give way in the order of their priority, lowest first: the next
 * class only when the one below it has nothing left to give. Groups at their floor stay there while there is a witness above them. */
void law_choose_who_gives_way(const LawPeer *peers, size_t n, bool *ret);

/* How often a law wants a sample: 100 ms for moving laws, 1 s for those that never move. */
uint64_t law_interval_usec(LawKind law);

/* Whether the law ever moves a knob by feedback. */
bool law_is_moving(LawKind law);

/* Words as in the API ("demand_above_limit"); "unknown" for what is none. */
const char *law_cause_to_string(LawCause c);
const char *law_hold_to_string(LawHold h);
/* One sentence for people, with the numbers of the decision in it. Writes at most size bytes. */
void law_decision_describe(const LawDecision *d, const Bandwidth *live, char *buffer, size_t size);
