/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A service class between its JSON and its struct. */

#include "policies/document.h"
#include "policies/schema.h"

static const char *const core_scheduling_words[] = { "none", "class", "group", NULL };
static const char *const drift_words[] = { "adopt", "enforce", "hold", NULL };
static const char *const law_words[] = { "static", "burst", "koordlet", "captain", "adaptive", NULL };

_Static_assert(ELEMENTSOF(law_words) == _LAW_KIND_MAX + 1, "a law without a word");

const char *core_scheduling_to_string(CoreScheduling c) {
        return (size_t) c < ELEMENTSOF(core_scheduling_words) - 1 ? core_scheduling_words[c] : NULL;
}
const char *drift_mode_to_string(DriftMode d) {
        return (size_t) d < ELEMENTSOF(drift_words) - 1 ? drift_words[d] : NULL;
}
const char *law_kind_to_string(LawKind l) {
        return (size_t) l < ELEMENTSOF(law_words) - 1 ? law_words[l] : NULL;
}
int law_kind_from_string(const char *s, LawKind *ret) {
        for (size_t i = 0; law_words[i]; i++)
                if (streq(law_words[i], s)) {
                        *ret = (LawKind) i;
                        return 0;
                }
        return -EINVAL;
}

bool policy_name_is_valid(const char *name) {
        size_t n = strlen(name);

        return n >= 1 && n <= POLICY_NAME_MAX && name[0] != '.' && name[0] != '_' && name[0] != '-' &&
               strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

const char *name_check(const char *name) {
        return policy_name_is_valid(name) ? NULL : "a-z, 0-9, '.', '_' and '-', with a letter or digit first";
}

static const Field target_fields[] = {
        { .name = "throttled_permyriad", .type = FIELD_UINT32, .least = 1, .most = 10000,
          .offset = offsetof(ServiceClass, targets.throttled_permyriad),
          .help = "share of throttled periods that is fine, in 1/10000" },
        { .name = "strictness", .type = FIELD_UINT32, .least = 1, .most = 4, .offset = offsetof(ServiceClass, targets.strictness),
          .help = "dial of the law \"adaptive\": 1 lean, 2 usual, 3 and 4 for low latency" },
        {}
};

static const Field cpu_fields[] = {
        CPU_NUMBER_FIELDS(ServiceClass),
        { .name = "law", .type = FIELD_WORD, .words = law_words, .offset = offsetof(ServiceClass, law), .flags = FIELD_HAS,
          .has_offset = offsetof(ClassDraft, has_law), .help = "what moves quota and burst; default \"static\"" },
        { .name = "targets", .type = FIELD_OBJECT, .fields = target_fields, .help = "what the law aims at" },
        { .name = "enable_controller", .type = FIELD_BOOL, .offset = offsetof(ServiceClass, enable_controller),
          .help = "may turn the cpu controller on in the slice, which changes the siblings' shares; default false" },
        {}
};

const Field class_fields[] = {
        { .name = "name", .type = FIELD_STRING, .least = 1, .most = POLICY_NAME_MAX, .flags = FIELD_REQUIRED, .check = name_check,
          .offset = offsetof(ServiceClass, name), .help = "how assignments and rules call it" },
        { .name = "description", .type = FIELD_STRING, .least = 0, .most = 2000, .offset = offsetof(ServiceClass, description),
          .help = "what it is for" },
        { .name = "comment", .type = FIELD_COMMENT, .help = "for the reader of the file" },
        { .name = "priority", .type = FIELD_INT, .least = 0, .most = 1000, .offset = offsetof(ServiceClass, priority),
          .help = "who gives way first (lowest); default 500" },
        { .name = "latency_nice", .type = FIELD_INT, .least = LATENCY_NICE_MIN, .most = LATENCY_NICE_MAX, .flags = FIELD_HAS,
          .offset = offsetof(ServiceClass, latency_nice), .has_offset = offsetof(ServiceClass, has_latency_nice),
          .help = "lower is served sooner; absent: not touched" },
        { .name = "core_scheduling", .type = FIELD_WORD, .words = core_scheduling_words, .offset = offsetof(ServiceClass, core_scheduling),
          .help = "who may share a core with it; default \"none\": everybody" },
        { .name = "cpu", .type = FIELD_OBJECT, .fields = cpu_fields, .help = "bandwidth; absent: not touched" },
        { .name = "drift", .type = FIELD_WORD, .words = drift_words, .offset = offsetof(ServiceClass, drift),
          .help = "what a foreign write means; default \"adopt\"" },
        { .name = "inherit", .type = FIELD_BOOL, .offset = offsetof(ServiceClass, inherit),
          .help = "latency and core scheduling also for groups below without a class; default false" },
        {}
};

static const Field override_cpu_fields[] = { CPU_NUMBER_FIELDS(Overrides), {} };

const Field override_fields[] = {
        { .name = "latency_nice", .type = FIELD_INT, .least = LATENCY_NICE_MIN, .most = LATENCY_NICE_MAX, .flags = FIELD_HAS,
          .offset = offsetof(Overrides, latency_nice), .has_offset = offsetof(Overrides, has_latency_nice),
          .help = "instead of the class's" },
        { .name = "cpu", .type = FIELD_OBJECT, .fields = override_cpu_fields, .help = "numbers instead of the class's" },
        {}
};

const SchemaTable schema_tables[] = {
        { "document", document_fields },
        { "class", class_fields },
        { "class.cpu", cpu_fields },
        { "class.cpu.targets", target_fields },
        { "rule", rule_fields },
        { "rule.match", match_fields },
        { "overrides", override_fields },
        { "overrides.cpu", override_cpu_fields },
};
const size_t n_schema_tables = ELEMENTSOF(schema_tables);

void class_clear(ServiceClass *c) {
        fields_clear(class_fields, c);
        free(c->origin);
        *c = (ServiceClass) {};
}

/* Targets that nothing aims at are a misunderstanding: the law static moves nothing, burst has no dial. */
static int check_targets(const FieldReader *reader, const char *pointer, const ServiceClass *c) {
        _cleanup_free_ char *at = NULL;

        if ((c->targets.throttled_permyriad == 0 && c->targets.strictness == 0) ||
            (c->law != LAW_STATIC && c->law != LAW_BURST))
                return 0;
        at = pointer_to_key(pointer, "targets");
        field_complain(reader, at, NULL, "a law of \"koordlet\", \"captain\" or \"adaptive\"",
                       "the law \"%s\" has no targets", law_kind_to_string(c->law));
        return -EINVAL;
}

int class_decode(const FieldReader *reader, const char *pointer, json_t *o, ServiceClass *ret) {
        ClassDraft draft = { .service_class = { .priority = 500 } };
        ServiceClass *c = &draft.service_class;
        _cleanup_free_ char *cpu = pointer_to_key(pointer, "cpu");
        int r;

        if (!cpu)
                return -ENOMEM;
        r = fields_decode(reader, pointer, o, class_fields, &draft);
        if (r == -ENOMEM) {
                class_clear(c);
                return r;
        }
        c->manages_bandwidth = draft.has_law || c->period_usec > 0 || c->quota.kind != AMOUNT_UNSET ||
                               c->burst.kind != AMOUNT_UNSET || c->floor.kind != AMOUNT_UNSET || c->ceiling.kind != AMOUNT_UNSET;
        if (c->quota.kind == AMOUNT_UNSET)
                c->quota.kind = AMOUNT_KEEP;
        if (bandwidth_words_check(reader, cpu, &c->quota, &c->burst, &c->floor, &c->ceiling, &c->law) < 0 ||
            check_targets(reader, cpu, c) < 0)
                r = -EINVAL;
        if (reader->file) {
                c->origin = strdup(reader->file);
                if (!c->origin) {
                        class_clear(c);
                        return -ENOMEM;
                }
        }
        *ret = *c;
        return r;
}

/* Sets an amount unless it says nothing. Returns 0 or -1. */
static int set_amount(json_t *o, const char *key, const Amount *a) {
        return a->kind == AMOUNT_UNSET ? 0 : json_object_set_new(o, key, amount_to_json(a));
}

static json_t *cpu_numbers_to_json(const Amount *quota, uint64_t period_usec, const Amount *burst, const Amount *floor,
                                   const Amount *ceiling) {
        json_auto_t *cpu = json_object();

        if (!cpu || set_amount(cpu, "quota", quota) < 0 ||
            (period_usec > 0 && json_object_set_new(cpu, "period_usec", json_integer((json_int_t) period_usec)) < 0) ||
            set_amount(cpu, "burst", burst) < 0 || set_amount(cpu, "floor", floor) < 0 || set_amount(cpu, "ceiling", ceiling) < 0)
                return NULL;
        return TAKE_PTR(cpu);
}

static json_t *cpu_to_json(const ServiceClass *c) {
        json_auto_t *cpu = c->manages_bandwidth ? cpu_numbers_to_json(&c->quota, c->period_usec, &c->burst, &c->floor, &c->ceiling)
                                                : json_object();
        json_auto_t *targets = json_object();

        if (!cpu || !targets || json_object_set_new(cpu, "enable_controller", json_boolean(c->enable_controller)) < 0)
                return NULL;
        if (!c->manages_bandwidth)
                return TAKE_PTR(cpu);
        if (json_object_set_new(cpu, "law", json_string(law_kind_to_string(c->law))) < 0)
                return NULL;
        if (c->targets.throttled_permyriad > 0 &&
            json_object_set_new(targets, "throttled_permyriad", json_integer(c->targets.throttled_permyriad)) < 0)
                return NULL;
        if (c->targets.strictness > 0 && json_object_set_new(targets, "strictness", json_integer(c->targets.strictness)) < 0)
                return NULL;
        if (json_object_size(targets) > 0 && json_object_set(cpu, "targets", targets) < 0)
                return NULL;
        return TAKE_PTR(cpu);
}

json_t *class_to_json(const ServiceClass *c) {
        json_auto_t *o = json_object();

        if (!o || json_object_set_new(o, "name", json_string(c->name)) < 0 ||
            (c->description && json_object_set_new(o, "description", json_string(c->description)) < 0) ||
            json_object_set_new(o, "priority", json_integer(c->priority)) < 0 ||
            (c->has_latency_nice && json_object_set_new(o, "latency_nice", json_integer(c->latency_nice)) < 0) ||
            json_object_set_new(o, "core_scheduling", json_string(core_scheduling_to_string(c->core_scheduling))) < 0 ||
            json_object_set_new(o, "cpu", cpu_to_json(c)) < 0 ||
            json_object_set_new(o, "drift", json_string(drift_mode_to_string(c->drift))) < 0 ||
            json_object_set_new(o, "inherit", json_boolean(c->inherit)) < 0)
                return NULL;
        return TAKE_PTR(o);
}

int overrides_from_json(json_t *o, const char *pointer, Overrides *ret, DiagList *list) {
        FieldReader reader = { .list = list };
        _cleanup_free_ char *cpu = pointer_to_key(pointer, "cpu");
        Overrides v = {};
        int r;

        if (!cpu)
                return -ENOMEM;
        r = fields_decode(&reader, pointer, o, override_fields, &v);
        if (r == -ENOMEM)
                return r;
        if (bandwidth_words_check(&reader, cpu, &v.quota, &v.burst, &v.floor, &v.ceiling, NULL) < 0)
                r = -EINVAL;
        if (r < 0)
                return r;
        *ret = v;
        return 0;
}

static bool overrides_has_cpu(const Overrides *o) {
        return o->period_usec > 0 || o->quota.kind != AMOUNT_UNSET || o->burst.kind != AMOUNT_UNSET ||
               o->floor.kind != AMOUNT_UNSET || o->ceiling.kind != AMOUNT_UNSET;
}

bool overrides_is_empty(const Overrides *o) {
        return !o->has_latency_nice && !overrides_has_cpu(o);
}

json_t *overrides_to_json(const Overrides *o) {
        json_auto_t *j = json_object();

        if (!j || (o->has_latency_nice && json_object_set_new(j, "latency_nice", json_integer(o->latency_nice)) < 0) ||
            (overrides_has_cpu(o) &&
             json_object_set_new(j, "cpu", cpu_numbers_to_json(&o->quota, o->period_usec, &o->burst, &o->floor, &o->ceiling)) < 0))
                return NULL;
        return TAKE_PTR(j);
}

static void override_amount(Amount *a, const Amount *o) {
        if (o->kind != AMOUNT_UNSET)
                *a = *o;
}

void class_apply_overrides(const ServiceClass *c, const Overrides *o, ServiceClass *ret) {
        ServiceClass v = *c;

        if (o->has_latency_nice) {
                v.has_latency_nice = true;
                v.latency_nice = o->latency_nice;
        }
        if (overrides_has_cpu(o))
                v.manages_bandwidth = true;
        if (o->period_usec > 0)
                v.period_usec = o->period_usec;
        override_amount(&v.quota, &o->quota);
        override_amount(&v.burst, &o->burst);
        /* The law "burst" is "static" with a burst of one quota: another burst makes it "static" again. */
        if (v.law == LAW_BURST && o->burst.kind != AMOUNT_UNSET && o->burst.kind != AMOUNT_FULL)
                v.law = LAW_STATIC;
        override_amount(&v.floor, &o->floor);
        override_amount(&v.ceiling, &o->ceiling);
        *ret = v;
}
