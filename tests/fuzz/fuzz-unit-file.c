/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A unit file of any bytes. The first byte says of which type the unit is. */

#include "daemon/units-internal.h"
#include "tests/fuzz/fuzz.h"

static void check_words(const UnitWords *w) {
        if (w->class_word) {
                size_t n = strlen(w->class_word);

                must(n >= 1 && n <= 65);
                for (size_t i = 0; i < n; i++)
                        must(w->class_word[i] > 0x20 && w->class_word[i] < 0x7f);
        }
        must(w->quota_per_sec_usec > 0);
        must(w->says_quota || w->quota_per_sec_usec == USEC_INFINITY);
        must(w->says_period || w->quota_period_usec == USEC_INFINITY);
        must(w->weight == UINT64_MAX || (w->weight >= 1 && w->weight <= 10000));
        must(!(w->class_word || w->says_quota || w->says_period || w->says_weight) || w->n_assignments > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char *const names[] = { "a.service", "a.slice", "a.scope", "a@b.socket", "a.mount", "a.swap" };
        const char *name, *text;
        _cleanup_free_ char *string = NULL;
        const UnitType *type;
        UnitWords once, twice;
        uint64_t v;

        if (size < 1)
                return 0;
        name = names[data[0] % ELEMENTSOF(names)];
        type = unit_type_of(name);
        text = (const char *) data + 1;
        size--;

        unit_words_init(&once);
        must(unit_words_parse(&once, text, size, type->section) == 0);
        check_words(&once);
        /* The same again says the same. */
        unit_words_init(&twice);
        must(unit_words_parse(&twice, text, size, type->section) == 0);
        must(unit_words_parse(&twice, text, size, type->section) == 0);
        must(streq_null(once.class_word, twice.class_word));
        must(once.quota_per_sec_usec == twice.quota_per_sec_usec && once.quota_period_usec == twice.quota_period_usec && once.weight == twice.weight);
        must(twice.n_assignments == 2 * once.n_assignments);

        string = strndup(text, size);
        must(string);
        if (strlen(string) == size) {
                must(units_dropin_says(name, "CPUQuota", string, once.quota_per_sec_usec) ==
                     (once.n_assignments == 1 && once.says_quota && (once.quota_per_sec_usec == USEC_INFINITY || once.quota_per_sec_usec % 10000 == 0)));
                must(units_dropin_says(name, "CPUQuotaPeriodSec", string, once.quota_period_usec) == (once.n_assignments == 1 && once.says_period));
                must(units_dropin_says(name, "CPUWeight", string, once.weight) == (once.n_assignments == 1 && once.says_weight));
        }
        if (unit_parse_quota(string, &v))
                must(v > 0 && v % 100 == 0);
        if (unit_parse_time_span(string, &v))
                must(v != USEC_INFINITY || strstr(string, "infinity"));
        (void) unit_type_of(string);
        unit_words_clear(&once);
        unit_words_clear(&twice);
        return 0;
}
