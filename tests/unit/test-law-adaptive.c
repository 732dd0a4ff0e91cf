/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The adaptive law: each row of its table of causes, each guard of its own, its memory and its dial. What all laws promise is in
 * test-law.c. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/law-plant.h"

/* A group that is fed one sample after the other, 100 ms each; whatever is decided is in force at the next one. */
typedef struct Fed {
        LawConfig config;
        LawState state;
        LawDecision d;
        Bandwidth live;
        uint64_t now_usec;
} Fed;

static void fed_init(Fed *f, const LawConfig *config) {
        *f = (Fed) { .config = *config, .now_usec = SEC };
        law_start(config, &f->live);
        law_reset(config, &f->state);
}

static const LawDecision *feed(Fed *f, LawSample s) {
        f->now_usec += 100 * MS;
        s.valid = true;
        s.now_usec = f->now_usec;
        s.window_usec = 100 * MS;
        s.nr_periods = 1;
        s.has_pressure = true;
        s.live = f->live;
        law_step(&f->config, &f->state, &s, &f->d);
        if (f->d.changed) {
                f->live.quota_usec = f->d.quota_usec;
                f->live.burst_usec = f->d.burst_usec;
        }
        return &f->d;
}

static const LawDecision *feed_many(Fed *f, unsigned n, LawSample s) {
        for (unsigned i = 0; i < n; i++)
                (void) feed(f, s);
        return &f->d;
}

#define USED(msec) (LawSample) { .usage_usec = (msec) * MS }

static LawConfig usual(void) {
        return config_of(LAW_ADAPTIVE, 50 * MS, 5 * MS, 400 * MS);
}

/* ---- the table of causes ---- */

static void test_throttled_at_the_limit_is_raised_at_once(void **userdata) {
        LawConfig c = usual();
        const LawDecision *d;
        Fed f;

        fed_init(&f, &c);
        (void) feed_many(&f, 5, USED(40));
        d = feed(&f, (LawSample) { .usage_usec = 60 * MS, .nr_throttled = 1, .some_usec = 50 * MS, .full_usec = 50 * MS });
        assert_true(d->changed);
        assert_int_equal(d->cause, LAW_CAUSE_DEMAND_ABOVE_LIMIT);
        assert_true(d->quota_usec >= 50 * MS * ADAPTIVE_RAISE_PERCENT / 100);
        assert_int_equal(d->burst_usec, d->quota_usec);
        assert_int_equal(d->usage_per_period_usec, 60 * MS);
}

/* Inside a throttled period nr_throttled stands still: pressure without runtime left tells, 50 to 100 ms earlier. */
static void test_a_dry_bucket_is_seen_before_the_kernel_counts_it(void **userdata) {
        LawConfig c = config_of(LAW_ADAPTIVE, 50 * MS, 50 * MS, 400 * MS);
        const LawDecision *d;
        Fed f;

        fed_init(&f, &c);
        (void) feed_many(&f, 10, USED(45));
        d = feed(&f, (LawSample) { .usage_usec = 95 * MS, .some_usec = 60 * MS, .full_usec = 60 * MS });
        assert_true(d->changed);
        assert_int_equal(d->cause, LAW_CAUSE_DEMAND_ABOVE_LIMIT);
        assert_true(d->quota_usec > 50 * MS);

        /* the same pressure with runtime left is not its limit's doing */
        fed_init(&f, &c);
        (void) feed_many(&f, 10, USED(5));
        d = feed(&f, (LawSample) { .usage_usec = 10 * MS, .some_usec = 60 * MS, .full_usec = 60 * MS });
        assert_false(d->changed && d->quota_usec > f.live.quota_usec);
        assert_int_not_equal(d->cause, LAW_CAUSE_DEMAND_ABOVE_LIMIT);
}

/* The arrival curve: more than quota and burst let through is on its way, nothing is throttled yet. */
static void test_a_rising_demand_is_met_before_it_throttles(void **userdata) {
        LawConfig c = usual();
        const LawDecision *d;
        Fed f;

        fed_init(&f, &c);
        (void) feed_many(&f, 60, USED(30));
        d = feed(&f, USED(120)); /* 120 / 2 periods' worth = 60 > 50 */
        assert_true(d->changed);
        assert_int_equal(d->cause, LAW_CAUSE_DEMAND_ABOVE_LIMIT);
        assert_int_equal(d->quota_usec, 60 * MS * ADAPTIVE_HEADROOM_PERCENT / 100);
}

static void test_an_ancestors_limit_is_not_answered_with_quota(void **userdata) {
        LawConfig c = usual();
        const LawDecision *d;
        Fed f;

        fed_init(&f, &c);
        for (unsigned i = 0; i < 50; i++) {
                d = feed(&f, (LawSample) { .usage_usec = 50 * MS, .nr_throttled = i % 2, .some_usec = 80 * MS, .full_usec = 50 * MS, .ancestor_throttled = true });
                assert_false(d->changed);
                assert_int_equal(d->cause, LAW_CAUSE_ANCESTOR_LIMIT);
        }
        assert_false(law_is_witness(&f.state));
}

static void test_lost_runtime_is_not_answered_with_quota(void **userdata) {
        LawConfig c = config_of(LAW_ADAPTIVE, 50 * MS, 50 * MS, 400 * MS);
        const LawDecision *d;
        Fed f;

        fed_init(&f, &c);
        (void) feed_many(&f, 10, USED(30));
        /* throttled, and two whole samples used less than half of what a period allows */
        (void) feed(&f, USED(10));
        d = feed(&f, (LawSample) { .usage_usec = 10 * MS, .nr_throttled = 1, .some_usec = 60 * MS, .full_usec = 60 * MS });
        assert_false(d->changed);
        assert_int_equal(d->cause, LAW_CAUSE_RUNTIME_LOST);

        /* split over two samples it was all used: not lost */
        fed_init(&f, &c);
        (void) feed_many(&f, 10, USED(30));
        (void) feed(&f, USED(25));
        d = feed(&f, (LawSample) { .usage_usec = 25 * MS, .nr_throttled = 1, .some_usec = 60 * MS, .full_usec = 60 * MS });
        assert_int_not_equal(d->cause, LAW_CAUSE_RUNTIME_LOST);

        /* our patch's counters say it outright */
        fed_init(&f, &c);
        (void) feed_many(&f, 10, USED(30));
        d = feed(&f, (LawSample) { .usage_usec = 40 * MS, .nr_throttled = 1, .some_usec = 60 * MS, .full_usec = 60 * MS,
                                   .has_bandwidth_loss = true, .parked_usec = 20 * MS });
        assert_int_equal(d->cause, LAW_CAUSE_RUNTIME_LOST);
}

static LawSample contended(void) {
        return (LawSample) { .usage_usec = 20 * MS, .some_usec = 60 * MS, .full_usec = 20 * MS, .host_busy_permyriad = 9500 };
}

static void test_contention_moves_latency_nice_and_no_quota(void **userdata) {
        LawConfig c = config_of(LAW_ADAPTIVE, 50 * MS, 50 * MS, 400 * MS);
        const LawDecision *d;
        unsigned n = 0;
        int last = -5;
        Fed f;

        c.latency_nice = -5;
        fed_init(&f, &c);
        (void) feed_many(&f, 10, USED(20));
        for (unsigned i = 0; i < 60; i++) {
                d = feed(&f, contended());
                assert_false(d->changed);
                if (d->latency_nice_changed) {
                        assert_true(d->latency_nice < last);
                        last = d->latency_nice;
                        n++;
                }
        }
        assert_int_equal(d->cause, LAW_CAUSE_CONTENTION);
        assert_int_equal(last, -20);
        assert_in_range(n, 2, 3);

        /* over: back to the class's own value, not at once */
        for (unsigned i = 0; i < 200; i++) {
                d = feed(&f, USED(20));
                if (d->latency_nice_changed) {
                        assert_true(i >= 45);
                        last = d->latency_nice;
                }
        }
        assert_int_equal(last, -5);
}

static void test_latency_nice_needs_the_class_to_have_one(void **userdata) {
        LawConfig c = usual();
        Fed f;

        c.has_latency_nice = false;
        fed_init(&f, &c);
        for (unsigned i = 0; i < 60; i++)
                assert_false(feed(&f, contended())->latency_nice_changed);
}

/* A stall that its own throttling explains makes nobody else give way; one that lasts without throttling does. */
static void test_who_is_a_witness(void **userdata) {
        LawConfig c = config_of(LAW_ADAPTIVE, 50 * MS, 50 * MS, 50 * MS);
        LawSample s = contended();
        Fed f;

        fed_init(&f, &c);
        (void) feed(&f, s);
        assert_false(law_is_witness(&f.state)); /* a throttled period may be under way */
        (void) feed_many(&f, 2, s);
        assert_true(law_is_witness(&f.state));

        /* throttled in each period */
        s.nr_throttled = 1;
        for (unsigned i = 0; i < 20; i++) {
                (void) feed(&f, s);
                assert_false(law_is_witness(&f.state));
        }
        /* the first half of the next throttled period looks the same as contention */
        s.nr_throttled = 0;
        (void) feed(&f, s);
        assert_false(law_is_witness(&f.state));

        /* its ancestor was; or half of the host is idle; or data is missing */
        s.ancestor_throttled = true;
        (void) feed_many(&f, 5, s);
        assert_false(law_is_witness(&f.state));
        s.ancestor_throttled = false;
        s.host_busy_permyriad = 4000;
        (void) feed_many(&f, 5, s);
        assert_false(law_is_witness(&f.state));
        s.host_busy_permyriad = 9500;
        (void) feed_many(&f, 5, s);
        assert_true(law_is_witness(&f.state));
        law_step(&f.config, &f.state, &(LawSample) { .valid = false }, &f.d);
        assert_false(law_is_witness(&f.state));
}

static void test_own_limit_is_named(void **userdata) {
        LawConfig c = config_of(LAW_ADAPTIVE, 50 * MS, 50 * MS, 50 * MS);
        const LawDecision *d;
        Fed f;

        fed_init(&f, &c);
        (void) feed_many(&f, 5, USED(40));
        d = feed(&f, (LawSample) { .usage_usec = 50 * MS, .nr_throttled = 1, .some_usec = 50 * MS, .full_usec = 50 * MS });
        assert_false(d->changed);
        assert_int_equal(d->cause, LAW_CAUSE_OWN_LIMIT);
        assert_int_equal(d->hold, LAW_HOLD_CEILING);
        assert_true(d->need_usec > 50 * MS);
}

static void test_force_idle_is_reported(void **userdata) {
        LawConfig c = usual();
        const LawDecision *d;
        Fed f;

        fed_init(&f, &c);
        d = feed_many(&f, 3, (LawSample) { .usage_usec = 49 * MS, .has_force_idle = true, .force_idle_usec = 30 * MS });
        assert_false(d->changed);
        assert_int_equal(d->cause, LAW_CAUSE_FORCE_IDLE);
}

static void test_over_provisioned_goes_down_to_the_need(void **userdata) {
        LawConfig c = usual();
        const LawDecision *d;
        uint64_t before;
        Fed f;

        fed_init(&f, &c);
        for (unsigned i = 0; i < 300; i++) {
                before = f.live.quota_usec;
                d = feed(&f, USED(10));
                if (d->changed) {
                        assert_int_equal(d->cause, LAW_CAUSE_OVER_PROVISIONED);
                        assert_true(d->quota_usec >= before / 2); /* one bounded step */
                }
        }
        /* what 5 s of 10 ms a period need: 500 / 51, with headroom */
        assert_in_range(f.live.quota_usec, 10 * MS, 11 * MS);
}

/* ---- giving way ---- */

static void test_a_lower_class_gives_way_in_parts_and_gets_it_back(void **userdata) {
        LawConfig c = config_of(LAW_ADAPTIVE, 100 * MS, 25 * MS, 100 * MS);
        LawSample s = { .usage_usec = 100 * MS, .nr_throttled = 1, .some_usec = 50 * MS, .contention_above = true };
        uint64_t last = 100 * MS;
        const LawDecision *d;
        unsigned n = 0;
        Fed f;

        c.may_raise = false;
        fed_init(&f, &c);
        (void) feed_many(&f, 10, (LawSample) { .usage_usec = 100 * MS, .nr_throttled = 1 });
        for (unsigned i = 0; i < 100; i++) {
                s.usage_usec = f.live.quota_usec;
                d = feed(&f, s);
                assert_int_equal(d->cause, LAW_CAUSE_GIVE_WAY);
                if (d->changed) {
                        assert_true(d->quota_usec >= last * ADAPTIVE_GIVE_PERCENT / 100 - 1 || d->quota_usec == 25 * MS);
                        last = d->quota_usec;
                        n++;
                }
        }
        assert_int_equal(last, 25 * MS);
        assert_in_range(n, 6, 8);
        assert_int_equal(d->hold, LAW_HOLD_FLOOR);

        /* not at once when it is over, then in steps, to the base and no further */
        s.contention_above = false;
        for (unsigned i = 0; i < 19; i++) {
                s.usage_usec = f.live.quota_usec;
                assert_false(feed(&f, s)->changed);
        }
        for (unsigned i = 0; i < 150; i++) {
                s.usage_usec = f.live.quota_usec;
                d = feed(&f, s);
                if (d->changed) {
                        assert_true(d->quota_usec <= last + 10 * MS);
                        last = d->quota_usec;
                }
        }
        assert_int_equal(last, 100 * MS);
}

static void test_classes_give_way_in_their_order(void **userdata) {
        LawPeer peers[] = {
                { .priority = 900, .witness = true, .can_give = true },
                { .priority = 500, .can_give = true },
                { .priority = 200, .can_give = true },
                { .priority = 50, .can_give = true },
                { .priority = 50, .can_give = false },
                { .priority = 950, .can_give = true },
        };
        bool gives[6];

        law_choose_who_gives_way(peers, 6, gives);
        assert_false(gives[0] || gives[1] || gives[2] || gives[5]);
        assert_true(gives[3] && gives[4]); /* who has nothing left is held where it is */

        peers[3].can_give = false;
        law_choose_who_gives_way(peers, 6, gives);
        assert_false(gives[0] || gives[1] || gives[5]);
        assert_true(gives[2] && gives[3] && gives[4]);

        peers[2].can_give = false;
        law_choose_who_gives_way(peers, 6, gives);
        assert_true(gives[1] && gives[2] && gives[3]);
        assert_false(gives[0] || gives[5]);

        /* nobody suffers: nobody gives */
        peers[0].witness = false;
        law_choose_who_gives_way(peers, 6, gives);
        for (unsigned i = 0; i < 6; i++)
                assert_false(gives[i]);
}

/* ---- memory and dial ---- */

/* 150 ms in one period: with a burst it takes a quota of 75 ms to let that through. */
static bool spike(Fed *f) {
        bool throttled = f->live.quota_usec + f->live.burst_usec < 150 * MS;
        uint64_t used = throttled ? f->live.quota_usec + f->live.burst_usec : 150 * MS;

        (void) feed(f, (LawSample) { .usage_usec = used, .nr_throttled = throttled, .some_usec = throttled ? 50 * MS : 0, .full_usec = throttled ? 50 * MS : 0 });
        (void) feed(f, (LawSample) { .usage_usec = 150 * MS - used });
        return throttled;
}

/* Spikes that come back soon after each step down: the law remembers longer, so the later ones are not throttled at the old limit. */
static unsigned throttled_in_two_minutes(uint32_t strictness, uint32_t *ret_level) {
        LawConfig c = usual();
        unsigned n = 0;
        Fed f;

        c.targets.strictness = strictness;
        fed_init(&f, &c);
        for (unsigned i = 0; i < 15; i++) {
                n += spike(&f);
                (void) feed_many(&f, 75, USED(10));
                *ret_level = MAX_OF(*ret_level, f.state.regret_level);
        }
        return n;
}

static void test_regret_makes_it_remember_longer(void **userdata) {
        uint32_t lean_level = 0, strict_level = 0, top_level = 0;
        unsigned lean = throttled_in_two_minutes(1, &lean_level), strict = throttled_in_two_minutes(3, &strict_level);

        (void) throttled_in_two_minutes(9, &top_level);
        assert_int_equal(lean_level, 0);
        assert_true(strict_level > 0 && strict_level <= 2);
        assert_true(top_level <= ADAPTIVE_STRICTNESS_MAX - 1);
        assert_true(strict < lean);
        assert_true(lean >= 14);
}

static void test_a_raise_is_not_repeated_for_what_it_answered(void **userdata) {
        LawConfig c = usual();
        uint64_t raised;
        Fed f;

        fed_init(&f, &c);
        (void) feed_many(&f, 10, USED(45));
        (void) feed(&f, (LawSample) { .usage_usec = 95 * MS, .some_usec = 60 * MS, .full_usec = 60 * MS });
        raised = f.live.quota_usec;
        assert_true(raised > 50 * MS);
        /* the period that was under way is counted now */
        (void) feed(&f, (LawSample) { .usage_usec = 40 * MS, .nr_throttled = 1 });
        assert_int_equal(f.live.quota_usec, raised);
}

static void test_a_target_tolerates_some_throttling(void **userdata) {
        LawSample throttled = { .usage_usec = 60 * MS, .nr_throttled = 1, .some_usec = 50 * MS, .full_usec = 50 * MS };
        LawConfig c = usual();
        Fed f;

        c.targets.throttled_permyriad = 1000;
        fed_init(&f, &c);
        (void) feed_many(&f, 10, USED(45));
        assert_false(feed(&f, throttled)->changed); /* one of 32 */
        (void) feed_many(&f, 3, throttled);
        assert_true(f.live.quota_usec > 50 * MS);
}

/* Bursts shorter than a sample leave no trace in the arrival curve where a period is shorter too: throttling itself is remembered. */
static void test_short_periods_do_not_see_saw(void **userdata) {
        LawConfig c = usual();
        unsigned lowered = 0;
        LawState state;
        Bandwidth live;

        c.base = (Bandwidth) { 5 * MS, 10 * MS, 0 };
        c.floor_usec = 1 * MS;
        c.ceiling_usec = 40 * MS;
        law_start(&c, &live);
        law_reset(&c, &state);
        /* each sample: 40 ms of CPU, all in two periods of 10 ms. It takes a quota of 15 ms with its burst to let that through. */
        for (unsigned i = 0; i < 600; i++) {
                bool throttled = live.quota_usec + live.burst_usec + live.quota_usec < 40 * MS;
                LawSample s = {
                        .valid = true, .now_usec = SEC + i * 100 * MS, .window_usec = 100 * MS, .nr_periods = 10, .nr_throttled = throttled,
                        .usage_usec = 40 * MS, .has_pressure = true, .some_usec = throttled ? 15 * MS : 0, .full_usec = throttled ? 15 * MS : 0, .live = live,
                };
                LawDecision d;

                law_step(&c, &state, &s, &d);
                if (d.changed) {
                        lowered += d.quota_usec < live.quota_usec;
                        live = (Bandwidth) { d.quota_usec, live.period_usec, d.burst_usec };
                }
        }
        assert_in_range(lowered, 0, 12); /* of a minute: once in a memory of five to ten seconds */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_throttled_at_the_limit_is_raised_at_once),
                cmocka_unit_test(test_a_dry_bucket_is_seen_before_the_kernel_counts_it),
                cmocka_unit_test(test_a_rising_demand_is_met_before_it_throttles),
                cmocka_unit_test(test_an_ancestors_limit_is_not_answered_with_quota),
                cmocka_unit_test(test_lost_runtime_is_not_answered_with_quota),
                cmocka_unit_test(test_contention_moves_latency_nice_and_no_quota),
                cmocka_unit_test(test_latency_nice_needs_the_class_to_have_one),
                cmocka_unit_test(test_who_is_a_witness),
                cmocka_unit_test(test_own_limit_is_named),
                cmocka_unit_test(test_force_idle_is_reported),
                cmocka_unit_test(test_over_provisioned_goes_down_to_the_need),
                cmocka_unit_test(test_a_lower_class_gives_way_in_parts_and_gets_it_back),
                cmocka_unit_test(test_classes_give_way_in_their_order),
                cmocka_unit_test(test_regret_makes_it_remember_longer),
                cmocka_unit_test(test_a_raise_is_not_repeated_for_what_it_answered),
                cmocka_unit_test(test_a_target_tolerates_some_throttling),
                cmocka_unit_test(test_short_periods_do_not_see_saw),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
