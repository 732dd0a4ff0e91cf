/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From words to microseconds, table by table; and over a grid of everything: what the kernel would refuse never comes out. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policies/resolve.h"

#define MAX QUOTA_UNLIMITED
#define KEEP { AMOUNT_KEEP, 0 }
#define UNSET { AMOUNT_UNSET, 0 }
#define BASE(n) { AMOUNT_PERCENT_OF_BASE, n }
#define CPU(n) { AMOUNT_PERCENT_OF_CPU, n }
#define USEC(n) { AMOUNT_USEC, n }
#define QUOTA(n) { AMOUNT_PERCENT_OF_QUOTA, n }
#define NO_LIMIT { AMOUNT_MAX, 0 }
#define FULL { AMOUNT_FULL, 0 }

static void test_bandwidth(void **state) {
        static const struct {
                const char *what;
                Amount quota, burst, floor, ceiling;
                uint64_t period;
                LawKind law;
                Bandwidth base;
                Bandwidth start;
                uint64_t least, most;
                bool unlimited, limited;
        } cases[] = {
                { "keep is the owner's", KEEP, UNSET, UNSET, UNSET, 0, LAW_STATIC, { 20000, 100000, 3000 },
                  { 20000, 100000, 3000 }, 20000, 20000, false, false },
                { "unset is keep", UNSET, UNSET, UNSET, UNSET, 0, LAW_STATIC, { 20000, 100000, 0 }, { 20000, 100000, 0 }, 20000, 20000, false, false },
                { "the live period stays", KEEP, UNSET, UNSET, UNSET, 0, LAW_STATIC, { 22968, 22968, 0 }, { 22968, 22968, 0 }, 22968, 22968, false, false },
                { "another period keeps the ratio", KEEP, UNSET, UNSET, UNSET, 50000, LAW_STATIC, { 20001, 100000, 0 },
                  { 10000, 50000, 0 }, 10000, 10000, false, false },
                { "percent of base with another period", BASE(50), UNSET, UNSET, UNSET, 20000, LAW_STATIC, { 40000, 100000, 0 },
                  { 4000, 20000, 0 }, 4000, 8000, false, false },
                { "rounded once, down", BASE(33), UNSET, UNSET, UNSET, 0, LAW_STATIC, { 10001, 100000, 0 }, { 3300, 100000, 0 }, 3300, 10001, false, false },
                { "base max, keep", KEEP, FULL, UNSET, BASE(300), 0, LAW_CAPTAIN, { MAX, 100000, 7000 }, { MAX, 100000, 0 }, MAX, MAX, true, false },
                { "base max, percent of it", BASE(50), FULL, BASE(20), CPU(200), 50000, LAW_STATIC, { MAX, 100000, 0 },
                  { MAX, 50000, 0 }, MAX, MAX, true, false },
                { "base max, percent of a CPU", CPU(150), FULL, UNSET, UNSET, 0, LAW_STATIC, { MAX, 100000, 0 },
                  { 150000, 100000, 150000 }, 150000, 150000, false, false },
                { "base max, floor relative to it is none", CPU(150), UNSET, BASE(50), UNSET, 0, LAW_STATIC, { MAX, 100000, 0 },
                  { 150000, 100000, 0 }, 150000, 150000, false, false },
                { "base max, ceiling relative to it is none", CPU(150), UNSET, UNSET, BASE(300), 0, LAW_STATIC, { MAX, 100000, 0 },
                  { 150000, 100000, 0 }, 150000, MAX, false, false },
                { "the owner's limit is the ceiling", CPU(150), FULL, UNSET, UNSET, 0, LAW_STATIC, { 40000, 100000, 0 },
                  { 40000, 100000, 40000 }, 40000, 40000, false, true },
                { "below the owner's limit", CPU(10), UNSET, UNSET, UNSET, 0, LAW_STATIC, { 40000, 100000, 0 }, { 10000, 100000, 0 }, 10000, 40000, false, false },
                { "more than the base without a ceiling", BASE(200), UNSET, UNSET, UNSET, 0, LAW_STATIC, { 40000, 100000, 0 },
                  { 40000, 100000, 0 }, 40000, 40000, false, true },
                { "a class may allow more", KEEP, FULL, UNSET, BASE(300), 0, LAW_CAPTAIN, { 40000, 100000, 0 },
                  { 40000, 100000, 40000 }, 40000, 120000, false, false },
                { "the class's own ceiling cuts", CPU(500), UNSET, UNSET, BASE(300), 0, LAW_STATIC, { 40000, 100000, 0 },
                  { 120000, 100000, 0 }, 120000, 120000, false, false },
                { "ceiling max lifts the owner's limit", CPU(150), UNSET, UNSET, NO_LIMIT, 0, LAW_STATIC, { 40000, 100000, 0 },
                  { 150000, 100000, 0 }, 150000, MAX, false, false },
                { "max under the owner's limit", NO_LIMIT, UNSET, UNSET, UNSET, 0, LAW_STATIC, { 40000, 100000, 0 },
                  { 40000, 100000, 0 }, 40000, 40000, false, true },
                { "max without a limit", NO_LIMIT, FULL, UNSET, UNSET, 0, LAW_STATIC, { MAX, 100000, 9 }, { MAX, 100000, 0 }, MAX, MAX, false, false },
                { "max and ceiling max", NO_LIMIT, UNSET, UNSET, NO_LIMIT, 0, LAW_STATIC, { 40000, 100000, 0 }, { MAX, 100000, 0 }, MAX, MAX, false, false },
                { "max up to a ceiling", NO_LIMIT, FULL, BASE(100), BASE(300), 0, LAW_CAPTAIN, { 40000, 100000, 0 },
                  { 120000, 100000, 120000 }, 40000, 120000, false, false },
                { "floor above the ceiling: the ceiling holds", KEEP, UNSET, CPU(100), UNSET, 0, LAW_STATIC, { 40000, 100000, 0 },
                  { 40000, 100000, 0 }, 40000, 40000, false, false },
                { "floor above the quota", CPU(10), UNSET, USEC(30000), UNSET, 0, LAW_STATIC, { 40000, 100000, 0 },
                  { 30000, 100000, 0 }, 30000, 40000, false, false },
                { "floor below", KEEP, UNSET, BASE(50), BASE(200), 0, LAW_ADAPTIVE, { 40000, 100000, 0 }, { 40000, 100000, 0 }, 20000, 80000, false, false },
                { "kept burst above the quota", BASE(50), KEEP, UNSET, UNSET, 0, LAW_STATIC, { 20000, 100000, 20000 },
                  { 10000, 100000, 10000 }, 10000, 20000, false, false },
                { "burst usec above the quota", KEEP, USEC(90000), UNSET, UNSET, 0, LAW_STATIC, { 20000, 100000, 0 },
                  { 20000, 100000, 20000 }, 20000, 20000, false, false },
                { "percent of the quota", KEEP, QUOTA(50), UNSET, UNSET, 0, LAW_STATIC, { 20001, 100000, 0 },
                  { 20001, 100000, 10000 }, 20001, 20001, false, false },
                { "the law burst", KEEP, UNSET, UNSET, UNSET, 0, LAW_BURST, { 20000, 100000, 0 }, { 20000, 100000, 20000 }, 20000, 20000, false, false },
                { "burst none", KEEP, USEC(0), UNSET, UNSET, 0, LAW_STATIC, { 20000, 100000, 5000 }, { 20000, 100000, 0 }, 20000, 20000, false, false },
                { "less than 1 ms lengthens the period", KEEP, UNSET, UNSET, UNSET, 10000, LAW_STATIC, { 1000, 100000, 0 },
                  { 1000, 100000, 0 }, 1000, 1000, false, false },
                { "5 % of 10 ms", CPU(5), UNSET, UNSET, UNSET, 10000, LAW_STATIC, { MAX, 100000, 0 }, { 1000, 20000, 0 }, 1000, 1000, false, false },
                { "the ceiling lengthens it too", CPU(50), UNSET, UNSET, UNSET, 10000, LAW_STATIC, { 2000, 100000, 0 },
                  { 1000, 50000, 0 }, 1000, 1000, false, true },
                { "a period ends at 1 s", CPU(1), UNSET, UNSET, UNSET, 0, LAW_STATIC, { 1000, 1000000, 0 }, { 1000, 1000000, 0 }, 1000, 1000, false, true },
                { "a floor below 1 ms", KEEP, UNSET, BASE(1), UNSET, 0, LAW_STATIC, { 20000, 100000, 0 }, { 20000, 100000, 0 }, 1000, 20000, false, false },
                { "usec below 1 ms", USEC(10), UNSET, UNSET, UNSET, 0, LAW_STATIC, { MAX, 100000, 0 }, { 1000, 100000, 0 }, 1000, 1000, false, false },
                { "saturates", BASE(10000), FULL, UNSET, BASE(10000), 0, LAW_STATIC, { QUOTA_MAX_USEC, 100000, 0 },
                  { QUOTA_MAX_USEC, 100000, QUOTA_MAX_USEC }, QUOTA_MAX_USEC, QUOTA_MAX_USEC, false, false },
                { "a quota of all bits but one", BASE(UINT64_MAX), UNSET, UNSET, NO_LIMIT, 1000000, LAW_STATIC, { MAX - 1, 1000, 0 },
                  { QUOTA_MAX_USEC, 1000000, 0 }, QUOTA_MAX_USEC, MAX, false, false },
                { "no period known", CPU(50), UNSET, UNSET, UNSET, 0, LAW_STATIC, { MAX, 0, 0 }, { 50000, 100000, 0 }, 50000, 50000, false, false },
                { "a base without quota", KEEP, UNSET, UNSET, UNSET, 0, LAW_STATIC, { 0, 100000, 0 }, { 1000, 100000, 0 }, 1000, 1000, false, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                ServiceClass c = { .manages_bandwidth = true, .quota = cases[i].quota, .burst = cases[i].burst,
                                   .floor = cases[i].floor, .ceiling = cases[i].ceiling, .period_usec = cases[i].period,
                                   .law = cases[i].law };
                BandwidthPlan p;

                resolve_bandwidth(&c, &cases[i].base, &p);
                if (!bandwidth_equal(&p.start, &cases[i].start) || p.floor_usec != cases[i].least ||
                    p.ceiling_usec != cases[i].most || p.unlimited != cases[i].unlimited || p.limited_by_owner != cases[i].limited)
                        fail_msg("%s: %ju %ju burst %ju, floor %ju, ceiling %ju, unlimited %d, limited %d", cases[i].what,
                                 (uintmax_t) p.start.quota_usec, (uintmax_t) p.start.period_usec, (uintmax_t) p.start.burst_usec,
                                 (uintmax_t) p.floor_usec, (uintmax_t) p.ceiling_usec, p.unlimited, p.limited_by_owner);
        }
}

/* Every kind of amount in every place, on bases and periods at their edges. */
static void test_kernel_takes_all(void **state) {
        static const Amount amounts[] = { UNSET, KEEP, NO_LIMIT, FULL, BASE(0), BASE(1), BASE(100), BASE(10000), CPU(0), CPU(1), CPU(1000000),
                                          QUOTA(0), QUOTA(100), USEC(0), USEC(999), USEC(50000), USEC(UINT64_MAX) };
        static const uint64_t quotas[] = { 0, 1000, 33333, QUOTA_MAX_USEC, MAX - 1, MAX }, periods[] = { 0, 1000, 1500, 22968, 1000000 };
        size_t n = 0;

        for (size_t q = 0; q < ELEMENTSOF(amounts); q++)
        for (size_t f = 0; f < ELEMENTSOF(amounts); f++)
        for (size_t t = 0; t < ELEMENTSOF(amounts); t++)
        for (size_t b = 0; b < ELEMENTSOF(quotas); b++)
        for (size_t p = 0; p < ELEMENTSOF(periods); p++)
        for (size_t o = 0; o < ELEMENTSOF(periods); o++) {
                ServiceClass c = { .quota = amounts[q], .burst = amounts[(q + f + t) % ELEMENTSOF(amounts)], .floor = amounts[f],
                                   .ceiling = amounts[t], .period_usec = periods[p], .law = (LawKind) ((q + f) % _LAW_KIND_MAX) };
                Bandwidth base = { quotas[b], periods[o], 12345 };
                BandwidthPlan plan;

                resolve_bandwidth(&c, &base, &plan);
                if (!(plan.start.quota_usec >= QUOTA_MIN_USEC &&
                      (plan.start.quota_usec == MAX || plan.start.quota_usec <= QUOTA_MAX_USEC) &&
                      plan.start.period_usec >= PERIOD_MIN_USEC && plan.start.period_usec <= PERIOD_MAX_USEC &&
                      plan.start.burst_usec <= (plan.start.quota_usec == MAX ? 0 : plan.start.quota_usec) &&
                      plan.floor_usec >= QUOTA_MIN_USEC && plan.floor_usec <= plan.start.quota_usec &&
                      plan.start.quota_usec <= plan.ceiling_usec))
                        fail_msg("quota %zu floor %zu ceiling %zu base %zu period %zu, %zu", q, f, t, b, p, o);
                n++;
        }
        assert_true(n > 100000);
}

static void test_burst(void **state) {
        assert_int_equal(resolve_burst(&(Amount) FULL, 5000, 0), 5000);
        assert_int_equal(resolve_burst(&(Amount) UNSET, 5000, 3000), 3000);
        assert_int_equal(resolve_burst(&(Amount) KEEP, 5000, 9000), 5000);
        assert_int_equal(resolve_burst(&(Amount) QUOTA(33), 1001, 0), 330);
        assert_int_equal(resolve_burst(&(Amount) QUOTA(500), 1001, 0), 1001);
        assert_int_equal(resolve_burst(&(Amount) USEC(7), 5000, 1), 7);
        for (AmountKind k = AMOUNT_UNSET; k <= AMOUNT_USEC; k++)
                assert_int_equal(resolve_burst(&(Amount) { k, 50 }, MAX, 1000), 0);
}

/* What systemd 252 makes of CPUQuotaPerSecUSec: the unit file keeps whole percents, cut off; cpu.max gets this much of the period. */
static uint64_t systemd_writes(uint64_t per_sec, uint64_t *period) {
        uint64_t least;

        per_sec = per_sec / 10000 * 10000; /* src/core/dbus-cgroup.c: CPUQuota=%0.f%% of value / 10000 */
        assert_true(per_sec > 0);
        least = 1000 * USEC_PER_SEC / per_sec; /* src/core/cgroup.c: cgroup_cpu_adjust_period */
        *period = MIN_OF(MAX_OF(*period, MAX_OF(least, UINT64_C(1000))), USEC_PER_SEC);
        return MAX_OF(per_sec * *period / USEC_PER_SEC, UINT64_C(1000));
}

static void test_systemd(void **state) {
        static const uint64_t periods[] = { 1000, 1001, 1500, 9999, 10000, 22968, 33333, 100000, 123457, 999999, 1000000 };
        size_t changed = 0;

        assert_true(quota_round_for_systemd(MAX, 100000) == MAX);
        assert_true(quota_to_per_sec_usec(MAX, 100000) == USEC_INFINITY);
        assert_true(quota_from_per_sec_usec(USEC_INFINITY, 100000) == MAX);
        assert_int_equal(quota_round_for_systemd(20999, 100000), 20000);
        assert_int_equal(quota_round_for_systemd(1999, 100000), 1000);
        assert_int_equal(quota_round_for_systemd(1000, 1000000), 10000); /* at least one percent */
        assert_int_equal(quota_round_for_systemd(1000, 1500), 1005);     /* 66 % would be less than 1 ms */
        assert_int_equal(quota_to_per_sec_usec(20000, 100000), 200000);
        assert_int_equal(quota_to_per_sec_usec(16666, 33333), 500000); /* half of the period, cut off */
        assert_int_equal(quota_from_per_sec_usec(500000, 33333), 16666);
        assert_int_equal(quota_from_per_sec_usec(1, 100000), 1000);
        for (size_t p = 0; p < ELEMENTSOF(periods); p++)
                for (uint64_t quota = 1000; quota < 40 * USEC_PER_SEC; quota += quota / 97 + 1) {
                        uint64_t rounded = quota_round_for_systemd(quota, periods[p]), period = periods[p], step = periods[p] / 100 + 1;

                        /* What is asked for is what is read back, period and all, and asking again changes nothing. */
                        assert_int_equal(systemd_writes(quota_to_per_sec_usec(rounded, period), &period), rounded);
                        assert_int_equal(period, periods[p]);
                        assert_int_equal(quota_round_for_systemd(rounded, period), rounded);
                        assert_int_equal(quota_from_per_sec_usec(quota_to_per_sec_usec(rounded, period), period), rounded);
                        assert_true(rounded >= QUOTA_MIN_USEC && rounded + step > quota && rounded <= MAX_OF(quota, 1000 + step));
                        changed += rounded != quota;
                }
        assert_true(changed > 1000);
        assert_true(quota_round_for_systemd(MAX - 1, 1000) <= QUOTA_MAX_USEC);
        assert_true(quota_to_per_sec_usec(quota_round_for_systemd(MAX - 1, 1000), 1000) / 10000 * 100 <= INT32_MAX);
}

static void test_slice(void **state) {
        static const struct {
                int nice;
                uint64_t base, slice;
        } cases[] = {
                { 0, 3000000, 0 },         { -20, 3000000, 100000 },  { -16, 3000000, 100000 },  { -15, 3000000, 105371 },
                { -10, 3000000, 321742 },  { -8, 3000000, 503606 },   { -1, 3000000, 2405638 },  { 1, 3000000, 3746341 },
                { 5, 3000000, 9170149 },   { 6, 3000000, 11294117 },  { 7, 3000000, 12000000 },  { 19, 3000000, 12000000 },
                { 19, 2800000, 11200000 }, { 19, 60000000, 100000000 }, { -1, 50000, 100000 },   { -99, 3000000, 100000 },
                { 99, 3000000, 12000000 }, { 5, 0, 0 },               { 19, UINT64_MAX, 100000000 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_int_equal(latency_nice_to_slice_nsec(cases[i].nice, cases[i].base), cases[i].slice);
        for (int nice = -19; nice <= 19; nice++)
                if (nice != 0 && nice != 1)
                        assert_true(latency_nice_to_slice_nsec(nice - 1, 3000000) <= latency_nice_to_slice_nsec(nice, 3000000));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bandwidth),
                cmocka_unit_test(test_kernel_takes_all),
                cmocka_unit_test(test_burst),
                cmocka_unit_test(test_systemd),
                cmocka_unit_test(test_slice),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
