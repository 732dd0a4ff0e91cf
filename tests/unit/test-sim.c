/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The simulator: the bandwidth model step by step against what the kernel's source says, then whole runs that must keep simple
 * truths: nobody gets more than the limit, work is conserved, the same seed gives the same outcome. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policies/sim-workload.h"

#define MS UINT64_C(1000)
#define SEC USEC_PER_SEC

/* ---- bandwidth ---- */

static void bandwidth_of(SimBandwidth *b, uint64_t quota, uint64_t burst) {
        sim_bandwidth_init(b, 4, 5 * MS, 1 * MS, &(Bandwidth) { quota, 100 * MS, burst }, 100 * MS);
}

static void test_slices_until_the_pool_is_empty(void **userdata) {
        SimBandwidth b;

        bandwidth_of(&b, 12 * MS, 0);
        assert_true(sim_bandwidth_demand(&b, 0, 10));
        assert_int_equal(b.local[0].remaining_usec, 5 * MS);
        assert_true(sim_bandwidth_demand(&b, 1, 20));
        assert_true(sim_bandwidth_demand(&b, 2, 30));
        assert_int_equal(b.local[2].remaining_usec, 2 * MS); /* what was left */
        assert_int_equal(b.pool_usec, 0);
        assert_false(sim_bandwidth_demand(&b, 3, 40));
        assert_true(b.local[3].throttled);
        assert_int_equal(b.n_throttled_cpus, 1);
        /* a CPU that still has runtime is not throttled */
        assert_true(sim_bandwidth_demand(&b, 0, 50));
}

static void test_a_debt_is_repaid(void **userdata) {
        uint32_t cpus[SIM_CPUS_MAX];
        SimBandwidth b;

        bandwidth_of(&b, 4 * MS, 0);
        assert_true(sim_bandwidth_demand(&b, 0, 0));
        b.local[0].remaining_usec = -3000; /* it overran until the tick */
        assert_false(sim_bandwidth_demand(&b, 0, 8 * MS));
        assert_int_equal(sim_bandwidth_period_timer(&b, 100 * MS, cpus), 1);
        assert_int_equal(cpus[0], 0);
        assert_int_equal(b.local[0].remaining_usec, 1); /* the debt and the least there is */
        assert_int_equal(b.pool_usec, 4 * MS - 3001);
        assert_int_equal(b.nr_throttled, 1);
        assert_int_equal(b.throttled_usec, 92 * MS);

        /* a debt larger than the quota takes more than one period */
        b.local[0].remaining_usec = -9000;
        b.pool_usec = 0;
        assert_false(sim_bandwidth_demand(&b, 0, 120 * MS));
        assert_int_equal(sim_bandwidth_period_timer(&b, 200 * MS, cpus), 0);
        assert_int_equal(sim_bandwidth_period_timer(&b, 300 * MS, cpus), 0);
        assert_int_equal(sim_bandwidth_period_timer(&b, 400 * MS, cpus), 1);
        assert_int_equal(b.nr_throttled, 4);
}

static void test_an_idle_cpu_keeps_one_millisecond(void **userdata) {
        uint32_t cpus[SIM_CPUS_MAX];
        SimBandwidth b;

        bandwidth_of(&b, 20 * MS, 0);
        assert_true(sim_bandwidth_demand(&b, 0, 0));
        b.local[0].remaining_usec = 4 * MS;
        sim_bandwidth_return(&b, 0, 1 * MS);
        assert_int_equal(b.local[0].remaining_usec, 1 * MS);
        assert_int_equal(b.pool_usec, 18 * MS);
        assert_int_equal(b.slack_usec, USEC_INFINITY); /* nobody is throttled */

        /* returned runtime above a slice reaches throttled CPUs five milliseconds later */
        b.pool_usec = 0;
        assert_false(sim_bandwidth_demand(&b, 1, 2 * MS));
        b.local[0].remaining_usec = 7 * MS;
        sim_bandwidth_return(&b, 0, 10 * MS);
        assert_int_equal(b.slack_usec, 15 * MS);
        assert_int_equal(sim_bandwidth_slack_timer(&b, 15 * MS, cpus), 1);
        assert_int_equal(cpus[0], 1);

        /* not right before the timer */
        b.pool_usec = 0;
        assert_false(sim_bandwidth_demand(&b, 2, 90 * MS));
        b.local[0].remaining_usec = 7 * MS;
        sim_bandwidth_return(&b, 0, 95 * MS);
        assert_int_equal(b.slack_usec, USEC_INFINITY);
}

static void test_burst_saves_up_to_its_size(void **userdata) {
        uint32_t cpus[SIM_CPUS_MAX];
        SimBandwidth b;

        bandwidth_of(&b, 20 * MS, 10 * MS);
        assert_true(sim_bandwidth_demand(&b, 0, 0));
        assert_true(b.active);
        (void) sim_bandwidth_period_timer(&b, 100 * MS, cpus);
        assert_int_equal(b.pool_usec, 30 * MS);
        (void) sim_bandwidth_period_timer(&b, 200 * MS, cpus);
        assert_int_equal(b.pool_usec, 30 * MS);
        assert_false(b.active); /* two timers without demand: it stops */
        assert_int_equal(b.nr_bursts, 0);

        /* 28 ms in one period: eight of them burst; the timer goes on in the old phase */
        b.local[0].remaining_usec = 0;
        assert_true(sim_bandwidth_demand(&b, 0, 250 * MS));
        assert_int_equal(b.timer_usec, 300 * MS);
        b.pool_usec = 2 * MS;
        (void) sim_bandwidth_period_timer(&b, 300 * MS, cpus);
        assert_int_equal(b.nr_bursts, 1);
        assert_int_equal(b.burst_usec, 8 * MS);
        assert_int_equal(b.pool_usec, 22 * MS);
}

static void test_a_write_refills_and_unthrottles(void **userdata) {
        uint32_t cpus[SIM_CPUS_MAX];
        SimBandwidth b;

        bandwidth_of(&b, 10 * MS, 0);
        b.pool_usec = 0;
        assert_false(sim_bandwidth_demand(&b, 0, 5 * MS));
        assert_false(sim_bandwidth_demand(&b, 1, 6 * MS));
        b.local[0].remaining_usec = -2 * (int64_t) MS;
        b.local[2].remaining_usec = 500;
        assert_int_equal(sim_bandwidth_write(&b, &(Bandwidth) { 10 * MS, 100 * MS, 5 * MS }, 20 * MS, cpus), 2);
        assert_int_equal(b.n_throttled_cpus, 0);
        assert_int_equal(b.pool_usec, 10 * MS);
        assert_int_equal(b.local[0].remaining_usec, 0);
        assert_int_equal(b.local[2].remaining_usec, 0);
        /* the quota again, a debt forgiven, a rest lost */
        assert_int_equal(b.granted_usec, 10 * MS + 2 * MS - 500);
        assert_int_equal(b.throttled_usec, 15 * MS + 14 * MS);
        /* the pool never holds more than quota and burst */
        (void) sim_bandwidth_write(&b, &(Bandwidth) { 10 * MS, 100 * MS, 5 * MS }, 21 * MS, cpus);
        assert_int_equal(b.pool_usec, 15 * MS);
}

/* ---- whole runs ---- */

typedef struct ListSource {
        SimSource source;
        const SimRequest *requests;
        size_t n, i;
} ListSource;

static bool list_next(SimSource *s, SimRequest *ret) {
        ListSource *l = (ListSource *) s;

        if (l->i == l->n)
                return false;
        *ret = l->requests[l->i++];
        return true;
}

static void setup_of(SimSetup *s, ListSource *source, const SimRequest *requests, size_t n, uint64_t quota, uint32_t n_workers) {
        sim_setup_init(s);
        *source = (ListSource) { { list_next, NULL }, requests, n, 0 };
        s->n_groups = 1;
        s->n_cpus = 4;
        s->duration_usec = 2 * SEC;
        s->groups[0] = (SimGroupSetup) {
                .name = "test", .source = &source->source, .n_workers = n_workers,
                .law = { .law = LAW_STATIC, .base = { quota, 100 * MS, 0 }, .floor_usec = quota, .ceiling_usec = quota, .n_cpus = 4 },
        };
}

static void test_requests_take_what_they_need(void **userdata) {
        static const SimRequest requests[] = {
                { .arrival_usec = 100 * MS, .n_parts = 1, .work_usec = 7000 },
                { .arrival_usec = 500 * MS, .n_parts = 4, .work_usec = 3000 },
                { .arrival_usec = 900 * MS, .n_parts = 8, .work_usec = 3000 },
        };
        SimOutcome o[SIM_GROUPS_MAX];
        ListSource source;
        SimSetup s;

        /* without a limit: as long as the work, in two rounds where there are more parts than CPUs */
        setup_of(&s, &source, requests, 3, QUOTA_UNLIMITED, 4);
        assert_int_equal(sim_run(&s, o), 0);
        assert_int_equal(o[0].n_requests, 3);
        assert_int_equal(o[0].n_unfinished, 0);
        assert_int_equal(o[0].used_usec, 7000 + 4 * 3000 + 8 * 3000);
        assert_int_equal(o[0].latency.max, 7000);
        assert_int_equal(o[0].latency.sum, 7000 + 3000 + 6000);
        assert_int_equal(o[0].some_usec, 0); /* parts without a worker wait in the program, not for a CPU */
        sim_outcome_clear(&o[0]);

        /* more workers than CPUs: the rest waits in run queues, and that is pressure */
        setup_of(&s, &source, requests, 3, QUOTA_UNLIMITED, 8);
        assert_int_equal(sim_run(&s, o), 0);
        assert_int_equal(o[0].used_usec, 7000 + 4 * 3000 + 8 * 3000);
        assert_true(o[0].some_usec > 0);
        sim_outcome_clear(&o[0]);
}

static void test_a_limit_holds(void **userdata) {
        static SimRequest requests[400];
        SimOutcome o[SIM_GROUPS_MAX];
        ListSource source;
        SimSetup s;

        for (size_t i = 0; i < ELEMENTSOF(requests); i++)
                requests[i] = (SimRequest) { .arrival_usec = i * 5 * MS, .n_parts = 1, .work_usec = 10000 };
        setup_of(&s, &source, requests, ELEMENTSOF(requests), 50 * MS, 4);
        assert_int_equal(sim_run(&s, o), 0);
        /* half a CPU for two seconds, and at most a tick of debt on each CPU */
        assert_in_range(o[0].used_usec, 950 * MS, 1000 * MS + 50 * MS + 4 * s.tick_usec);
        assert_true(o[0].nr_throttled >= 18);
        assert_int_equal(o[0].n_requests + o[0].n_unfinished, 400);
        assert_true(o[0].n_unfinished > 250);
        assert_true(o[0].some_usec > SEC);
        assert_int_equal(o[0].quota_usec, 1000 * MS);
        assert_int_equal(sim_allocated_usec(&o[0]), 1000 * MS);
        sim_outcome_clear(&o[0]);
}

static void test_two_groups_share_a_cpu(void **userdata) {
        SimOutcome o[SIM_GROUPS_MAX];
        SimSetup s;

        sim_setup_init(&s);
        s.n_cpus = 1;
        s.duration_usec = 2 * SEC;
        s.n_groups = 2;
        for (uint32_t i = 0; i < 2; i++)
                s.groups[i] = (SimGroupSetup) { .name = "hog", .n_hogs = 1, .law = { .base = { QUOTA_UNLIMITED, 100 * MS, 0 } } };
        assert_int_equal(sim_run(&s, o), 0);
        assert_in_range(o[0].used_usec, 990 * MS, 1010 * MS);
        assert_int_equal(o[0].used_usec + o[1].used_usec, 2 * SEC);
        sim_outcome_clear(&o[0]);
        sim_outcome_clear(&o[1]);
}

static void test_same_seed_same_outcome(void **userdata) {
        for (size_t i = 0; i < sim_workload_count(); i++) {
                SimOutcome o[3][SIM_GROUPS_MAX];

                for (unsigned k = 0; k < 3; k++) {
                        LawConfig law = { .law = LAW_ADAPTIVE, .burst = { .kind = AMOUNT_FULL } };
                        SimSetup s;

                        sim_setup_init(&s);
                        s.duration_usec = 20 * SEC;
                        s.seed = k < 2 ? 7 : 8;
                        assert_int_equal(sim_workload_setup(sim_workload_at(i), &law, 100, s.seed, &s), 0);
                        assert_int_equal(sim_run(&s, o[k]), 0);
                        for (uint32_t g = 1; g < s.n_groups; g++)
                                sim_outcome_clear(&o[k][g]);
                        sim_setup_clear(&s);
                }
                assert_int_equal(o[0][0].used_usec, o[1][0].used_usec);
                assert_int_equal(sim_allocated_usec(&o[0][0]), sim_allocated_usec(&o[1][0]));
                assert_int_equal((uint64_t) o[0][0].latency.sum, (uint64_t) o[1][0].latency.sum);
                assert_int_not_equal((uint64_t) o[0][0].latency.sum, (uint64_t) o[2][0].latency.sum);
                assert_true(o[0][0].n_requests > 50);
                for (unsigned k = 0; k < 3; k++)
                        sim_outcome_clear(&o[k][0]);
        }
}

/* A slow server changes when requests are done, never when they come. */
static void test_arrivals_do_not_depend_on_the_server(void **userdata) {
        uint64_t n[2];

        for (unsigned k = 0; k < 2; k++) {
                LawConfig law = { .law = LAW_STATIC };
                SimOutcome o[SIM_GROUPS_MAX];
                SimSetup s;

                sim_setup_init(&s);
                s.duration_usec = 20 * SEC;
                assert_int_equal(sim_workload_setup(sim_workload_find("bursts"), &law, k == 0 ? 1000 : 20, 3, &s), 0);
                assert_int_equal(sim_run(&s, o), 0);
                n[k] = o[0].n_requests + o[0].n_unfinished;
                sim_outcome_clear(&o[0]);
                sim_setup_clear(&s);
        }
        assert_int_equal(n[0], n[1]);
}

static void test_wrong_setups_are_refused(void **userdata) {
        SimOutcome o[SIM_GROUPS_MAX];
        ListSource source;
        SimSetup s;

        setup_of(&s, &source, NULL, 0, 50 * MS, 4);
        s.n_cpus = 0;
        assert_int_equal(sim_run(&s, o), -EINVAL);
        s.n_cpus = SIM_CPUS_MAX + 1;
        assert_int_equal(sim_run(&s, o), -EINVAL);
        s.n_cpus = 1;
        s.groups[0].n_workers = 0;
        assert_int_equal(sim_run(&s, o), -EINVAL);
        s.groups[0].n_workers = 1;
        s.groups[0].law.base.period_usec = 0;
        assert_int_equal(sim_run(&s, o), -EINVAL);
        s.groups[0].law.base.period_usec = 100 * MS;
        s.groups[0].law.base.quota_usec = 1;
        assert_int_equal(sim_run(&s, o), -EINVAL);
}

static void test_histogram(void **userdata) {
        SimHistogram h, other;

        assert_int_equal(sim_histogram_init(&h), 0);
        assert_int_equal(sim_histogram_percentile(&h, 9900), 0);
        for (uint64_t v = 1; v <= 100000; v++)
                sim_histogram_add(&h, v);
        assert_in_range(sim_histogram_percentile(&h, 5000), 49700, 50300);
        assert_in_range(sim_histogram_percentile(&h, 9900), 98500, 99500);
        assert_int_equal(sim_histogram_percentile(&h, 10000), 100000);
        assert_int_equal(sim_histogram_percentile(&h, 10), 100); /* small values are exact */
        assert_int_equal(sim_histogram_mean(&h), 50000);
        assert_int_equal(sim_histogram_init(&other), 0);
        sim_histogram_add(&other, UINT64_MAX);
        sim_histogram_merge(&h, &other);
        assert_int_equal(h.max, UINT64_MAX);
        assert_int_equal(sim_histogram_percentile(&h, 10000), UINT64_MAX);
        sim_histogram_clear(&h);
        sim_histogram_clear(&other);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_slices_until_the_pool_is_empty),
                cmocka_unit_test(test_a_debt_is_repaid),
                cmocka_unit_test(test_an_idle_cpu_keeps_one_millisecond),
                cmocka_unit_test(test_burst_saves_up_to_its_size),
                cmocka_unit_test(test_a_write_refills_and_unthrottles),
                cmocka_unit_test(test_requests_take_what_they_need),
                cmocka_unit_test(test_a_limit_holds),
                cmocka_unit_test(test_two_groups_share_a_cpu),
                cmocka_unit_test(test_same_seed_same_outcome),
                cmocka_unit_test(test_arrivals_do_not_depend_on_the_server),
                cmocka_unit_test(test_wrong_setups_are_refused),
                cmocka_unit_test(test_histogram),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
