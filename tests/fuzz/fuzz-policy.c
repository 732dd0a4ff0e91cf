/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Any bytes as policy documents (a NUL byte goes on to the next one) and as an assignment's overrides. What is refused must say
 * why; what is taken must survive its own words, and resolve on any base to what the kernel takes. */

#include "policies/resolve.h"
#include "tests/fuzz/fuzz.h"

#define DOCUMENTS_MAX 4

static void check_plan(const ServiceClass *c) {
        static const Bandwidth bases[] = {
                { QUOTA_UNLIMITED, 100000, 0 }, { 20000, 100000, 5000 }, { 1000, 1000000, 1000 }, { QUOTA_MAX_USEC, 1000, QUOTA_MAX_USEC },
        };

        for (size_t i = 0; i < ELEMENTSOF(bases); i++) {
                BandwidthPlan p;
                uint64_t round;

                resolve_bandwidth(c, &bases[i], &p);
                must(p.start.period_usec >= PERIOD_MIN_USEC && p.start.period_usec <= PERIOD_MAX_USEC);
                must(p.floor_usec <= p.start.quota_usec && p.start.quota_usec <= p.ceiling_usec);
                must(p.start.quota_usec >= QUOTA_MIN_USEC);
                must(p.start.quota_usec == QUOTA_UNLIMITED ? p.start.burst_usec == 0 : p.start.burst_usec <= p.start.quota_usec);
                must(p.start.quota_usec == QUOTA_UNLIMITED || p.start.quota_usec <= QUOTA_MAX_USEC);
                round = quota_round_for_systemd(p.start.quota_usec, p.start.period_usec);
                must(quota_round_for_systemd(round, p.start.period_usec) == round);
        }
}

static void check_round_trip(const Policy *p) {
        json_t *o = json_pack("{s:i,s:[],s:[]}", "version", POLICY_VERSION, "classes", "rules");
        PolicyDocument d = { .file = "again" };
        Policy *again = NULL;
        DiagList list = {};
        char *text;

        for (size_t i = 0; i < p->n_classes; i++)
                must(json_array_append_new(json_object_get(o, "classes"), class_to_json(&p->classes[i])) == 0);
        for (size_t i = 0; i < p->n_rules; i++)
                must(json_array_append_new(json_object_get(o, "rules"), rule_to_json(&p->rules[i])) == 0);
        text = json_dumps(o, 0);
        must(text);
        d.text = text;
        d.length = strlen(text);
        /* Several documents together may hold more than one may. */
        if (p->n_classes <= 256 && p->n_rules <= 4096) {
                must(policy_build(&d, 1, &again, &list) == 0);
                must(again->n_classes == p->n_classes && again->n_rules == p->n_rules);
        }
        policy_free(again);
        free(text);
        json_decref(o);
}

static void check_overrides(const uint8_t *data, size_t size) {
        json_t *o = json_loadb((const char *) data, size, JSON_DECODE_ANY, NULL), *said;
        Overrides v = {}, again = {};
        ServiceClass c = { .manages_bandwidth = true, .quota = { AMOUNT_KEEP, 0 } }, applied;
        DiagList list = {};

        if (!o)
                return;
        if (overrides_from_json(o, "", &v, &list) == 0) {
                said = overrides_to_json(&v);
                must(said && overrides_from_json(said, "", &again, &list) == 0);
                must(overrides_is_empty(&v) == overrides_is_empty(&again));
                json_decref(said);
                class_apply_overrides(&c, &v, &applied);
                check_plan(&applied);
        } else
                must(list.n_items > 0);
        diag_list_clear(&list);
        json_decref(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        PolicyDocument d[DOCUMENTS_MAX];
        const char *p = (const char *) data, *end = p + size;
        Policy *policy = NULL;
        DiagList list = {};
        size_t n = 0;

        check_overrides(data, size);
        while (n < DOCUMENTS_MAX) {
                const char *stop = n + 1 < DOCUMENTS_MAX && p < end ? memchr(p, 0, end - p) : NULL;

                d[n++] = (PolicyDocument) { .file = "f", .text = p, .length = (stop ?: end) - p };
                if (!stop)
                        break;
                p = stop + 1;
        }
        if (policy_build(d, n, &policy, &list) == 0) {
                must(list.n_items == 0);
                for (size_t i = 0; i < policy->n_classes; i++)
                        check_plan(&policy->classes[i]);
                check_round_trip(policy);
        } else {
                must(!policy && list.n_items > 0);
                for (size_t i = 0; i < list.n_items; i++) {
                        char *line = diag_to_string(&list.items[i]);

                        must(line);
                        for (const char *s = line; *s; s++)
                                must((unsigned char) *s >= 0x20 && *s != 0x7f);
                        must(list.items[i].line > 0);
                        free(line);
                }
        }
        policy_free(policy);
        diag_list_clear(&list);
        return 0;
}
