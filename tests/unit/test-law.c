/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The control laws: what each one promises (tables of single steps), and what all of them promise for any input
 * (random samples, and random demand against a small plant). Deterministic: every random number comes from a fixed seed. */

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>
#include <cmocka.h>

#include "tests/unit/law-plant.h"

/* ---- what every law promises ---- */

static Amount random_burst(uint64_t *seed) {
        switch (below(seed, 5)) {
        case 0:
                return (Amount) { .kind = AMOUNT_FULL };
        case 1:
                return (Amount) { .kind = AMOUNT_PERCENT_OF_QUOTA, .value = below(seed, 101) };
        case 2:
                return (Amount) { .kind = AMOUNT_USEC, .value = below(seed, 1000 * MS) };
        case 3:
                return (Amount) { .kind = AMOUNT_KEEP };
        default:
                return (Amount) {};
        }
}

/* A number of any size, small ones as often as huge ones. */
static uint64_t random_size(uint64_t *seed) {
        return next_random(seed) >> below(seed, 64);
}

static LawSample random_sample(uint64_t *seed, uint64_t now, const Bandwidth *live) {
        bool wild = below(seed, 8) == 0;

        return (LawSample) {
                .now_usec = now,
                .window_usec = wild ? random_size(seed) : 100 * MS,
                .valid = below(seed, 20) != 0,
                .nr_periods = wild ? random_size(seed) : below(seed, 3),
                .nr_throttled = wild ? random_size(seed) : below(seed, 2),
                .throttled_usec = random_size(seed),
                .usage_usec = wild ? random_size(seed) : below(seed, 400 * MS),
                .has_bursts = below(seed, 2),
                .burst_usec = random_size(seed),
                .has_pressure = below(seed, 2),
                .some_usec = wild ? random_size(seed) : below(seed, 100 * MS),
                .full_usec = below(seed, 100 * MS),
                .has_force_idle = below(seed, 2),
                .force_idle_usec = below(seed, 100 * MS),
                .has_bandwidth_loss = below(seed, 2),
                .parked_usec = below(seed, 50 * MS),
                .lost_usec = below(seed, 50 * MS),
                .ancestor_throttled = below(seed, 4) == 0,
                .live = *live,
                .host_busy_permyriad = (uint32_t) below(seed, 10001),
                .has_host_pressure = below(seed, 2),
                .host_some_usec = below(seed, 100 * MS),
                .contention_above = below(seed, 4) == 0,
                .has_host_room = below(seed, 2),
                .host_room_usec = below(seed, 200 * MS),
        };
}

static void assert_bounds(const LawConfig *c, const LawSample *s, const LawDecision *d) {
        uint64_t ceiling = MAX_OF(c->ceiling_usec, QUOTA_MIN_USEC);
        unsigned __int128 low, high;

        assert_true((unsigned) d->cause < _LAW_CAUSE_MAX);
        assert_true(d->throttled_permyriad <= 10000);
        if (d->latency_nice_changed)
                assert_in_range(d->latency_nice + 20, 0, 39);
        if (!d->changed)
                return;
        assert_true(s->valid);
        assert_true(d->quota_usec >= QUOTA_MIN_USEC);
        assert_true(d->burst_usec <= d->quota_usec);

        /* as ratios: the bounds are per period of the base */
        low = (unsigned __int128) MIN_OF(c->floor_usec, ceiling) * s->live.period_usec / c->base.period_usec;
        high = (unsigned __int128) ceiling * s->live.period_usec / c->base.period_usec;
        assert_true(d->quota_usec >= low);
        assert_true(d->quota_usec <= MAX_OF(high, QUOTA_MIN_USEC));
        if (!c->may_raise)
                assert_true(d->quota_usec <= MAX_OF(MAX_OF(c->base.quota_usec, c->floor_usec), QUOTA_MIN_USEC) *
                                                    (unsigned __int128) s->live.period_usec / c->base.period_usec + 1 ||
                            d->quota_usec == QUOTA_MIN_USEC);
}

static void test_any_input_stays_within_bounds(void **userdata) {
        uint64_t seed = 1;

        for (int law = 0; law < _LAW_KIND_MAX; law++)
                for (unsigned round = 0; round < 120; round++) {
                        uint64_t floor = below(&seed, 200 * MS), now = below(&seed, 100 * SEC);
                        LawConfig c = config_of(law, below(&seed, 300 * MS), floor, floor + below(&seed, 300 * MS));
                        LawState state;
                        Bandwidth live;

                        c.base.burst_usec = below(&seed, 200 * MS);
                        c.burst = random_burst(&seed);
                        c.may_raise = below(&seed, 3) != 0;
                        c.targets.throttled_permyriad = (uint32_t) below(&seed, 3) * 100;
                        c.targets.strictness = (uint32_t) below(&seed, 5);
                        if (below(&seed, 10) == 0)
                                c.ceiling_usec = QUOTA_UNLIMITED;
                        if (below(&seed, 20) == 0)
                                c.base.quota_usec = QUOTA_UNLIMITED;
                        law_start(&c, &live);
                        law_reset(&c, &state);

                        for (unsigned i = 0; i < 300; i++) {
                                LawDecision d;
                                LawSample s;

                                now += below(&seed, 200 * MS);
                                if (below(&seed, 50) == 0) /* somebody else writes */
                                        live.quota_usec = below(&seed, 10) == 0 ? QUOTA_UNLIMITED : QUOTA_MIN_USEC + below(&seed, 500 * MS);
                                if (below(&seed, 50) == 0)
                                        live.period_usec = PERIOD_MIN_USEC + below(&seed, PERIOD_MAX_USEC - PERIOD_MIN_USEC);
                                s = random_sample(&seed, now, &live);
                                if (below(&seed, 100) == 0)
                                        s.live.period_usec = 0;
                                law_step(&c, &state, &s, &d);
                                if (d.changed)
                                        assert_bounds(&c, &s, &d);
                                if (d.changed && below(&seed, 10) != 0) {
                                        live.quota_usec = d.quota_usec;
                                        live.burst_usec = d.burst_usec;
                                }
                        }
                }
}

/* Never more than the average and one bucket in any minute, whatever happens. */
static void test_writes_are_bounded(void **userdata) {
        uint64_t seed = 2;

        for (int law = 0; law < _LAW_KIND_MAX; law++) {
                LawConfig c = config_of(law, 50 * MS, 5 * MS, 400 * MS);
                uint64_t written[600] = {};
                LawState state;
                Bandwidth live;

                law_start(&c, &live);
                law_reset(&c, &state);
                for (unsigned i = 0; i < 6000; i++) {
                        LawSample s = random_sample(&seed, SEC + i * 100 * MS, &live);
                        LawDecision d;
                        unsigned minute = 0;

                        law_step(&c, &state, &s, &d);
                        written[i % 600] = d.changed + d.latency_nice_changed;
                        if (d.changed)
                                live = (Bandwidth) { d.quota_usec, live.period_usec, d.burst_usec };
                        for (unsigned k = 0; k < 600; k++)
                                minute += written[k];
                        assert_in_range(minute, 0, LAW_WRITES_PER_MINUTE + LAW_WRITE_BUCKET);
                }
        }
}

static void test_back_to_base_when_quiet(void **userdata) {
        for (int law = 0; law < _LAW_KIND_MAX; law++) {
                uint64_t seed = 3, highest = 0;
                LawConfig c = config_of(law, 50 * MS, 50 * MS, 300 * MS);
                Plant p;

                plant_init(&p, &c);
                for (unsigned i = 0; i < 600; i++) {
                        plant_step(&p, 40 * MS + below(&seed, 120 * MS));
                        highest = MAX_OF(highest, p.live.quota_usec);
                }
                if (law_is_moving(law))
                        assert_true(highest > 100 * MS);
                p.backlog_usec = 0;
                p.host_busy = law == LAW_KOORDLET; /* by its description it does not decay on an idle node */
                for (unsigned i = 0; i < 300; i++)
                        plant_step(&p, 0);
                assert_int_equal(p.live.quota_usec, 50 * MS);
        }
}

static void test_constant_load_does_not_oscillate(void **userdata) {
        for (int law = 0; law < _LAW_KIND_MAX; law++)
                for (uint64_t demand = 5 * MS; demand <= 250 * MS; demand += 35 * MS) {
                        LawConfig c = config_of(law, 50 * MS, 5 * MS, 400 * MS);
                        unsigned settled;
                        Plant p;

                        plant_init(&p, &c);
                        for (unsigned i = 0; i < 600; i++)
                                plant_step(&p, demand);
                        settled = p.writes;
                        for (unsigned i = 0; i < 1200; i++)
                                plant_step(&p, demand);
                        assert_in_range(p.writes - settled, 0, 2);
                        if (law_is_moving(law)) {
                                assert_true(p.live.quota_usec >= MIN_OF(demand, UINT64_C(150) * MS));
                                assert_int_equal(p.backlog_usec > demand && law != LAW_KOORDLET, 0);
                        }
                }
}

static void test_missing_data_holds(void **userdata) {
        for (int law = 0; law < _LAW_KIND_MAX; law++) {
                LawConfig c = config_of(law, 50 * MS, 10 * MS, 300 * MS);
                LawState before;
                Plant p;

                plant_init(&p, &c);
                for (unsigned i = 0; i < 35; i++)
                        plant_step(&p, 90 * MS);
                before = p.state;
                for (unsigned i = 0; i < 50; i++) {
                        LawSample s = plant_run(&p, 90 * MS);

                        s.valid = false;
                        law_step(&c, &p.state, &s, &p.decision);
                        assert_false(p.decision.changed);
                        assert_false(p.decision.latency_nice_changed);
                        assert_int_equal(p.decision.cause, LAW_CAUSE_MISSING_DATA);
                }
                assert_memory_equal(&before, &p.state, sizeof(before));
        }
}

static void test_class_without_raise_stays_at_base(void **userdata) {
        for (int law = 0; law < _LAW_KIND_MAX; law++) {
                LawConfig c = config_of(law, 50 * MS, 10 * MS, 400 * MS);
                Plant p;

                c.may_raise = false;
                plant_init(&p, &c);
                for (unsigned i = 0; i < 300; i++) {
                        plant_step(&p, 200 * MS);
                        assert_true(p.live.quota_usec <= 50 * MS);
                }
        }
}

static void test_write_in_flight_blocks_the_next(void **userdata) {
        LawConfig c = config_of(LAW_CAPTAIN, 50 * MS, 10 * MS, 400 * MS);
        Bandwidth before;
        Plant p;

        plant_init(&p, &c);
        for (unsigned i = 0; i < 100 && !p.decision.changed; i++) {
                before = p.live;
                plant_step(&p, 90 * MS);
        }
        assert_true(p.decision.changed);

        /* the kernel still has the old value: nothing is asked for again for a second */
        p.live = before;
        for (unsigned i = 0; i < 9; i++) {
                plant_step(&p, 90 * MS);
                assert_false(p.decision.changed);
                assert_int_equal(p.decision.hold, LAW_HOLD_IN_FLIGHT);
        }
        /* then it did not arrive, and may be asked for again */
        for (unsigned i = 0; i < 15 && !p.decision.changed; i++)
                plant_step(&p, 90 * MS);
        assert_true(p.decision.changed);
}

static void test_foreign_change_is_taken_up(void **userdata) {
        for (int law = LAW_KOORDLET; law <= LAW_CAPTAIN; law++) {
                LawConfig c = config_of(law, 50 * MS, 10 * MS, 400 * MS);
                Plant p;

                plant_init(&p, &c);
                for (unsigned i = 0; i < 5; i++)
                        plant_step(&p, 40 * MS);
                p.live.quota_usec = 20 * MS;
                p.live.burst_usec = 0;
                plant_step(&p, 90 * MS);
                assert_int_equal(p.decision.cause, LAW_CAUSE_FOREIGN_CHANGE);
                assert_false(p.decision.changed);
                for (unsigned i = 0; i < 20 && !p.decision.changed; i++)
                        plant_step(&p, 90 * MS);
                /* the next step starts from the foreign value */
                assert_true(p.live.quota_usec > 20 * MS && p.live.quota_usec < 40 * MS);
        }
}

/* systemd truncates to whole percents of a CPU: that is not somebody else's change. */
static void test_rounding_by_systemd_is_no_foreign_change(void **userdata) {
        LawConfig c = config_of(LAW_CAPTAIN, 50 * MS, 10 * MS, 400 * MS);
        Plant p;

        plant_init(&p, &c);
        for (unsigned i = 0; i < 200; i++) {
                plant_step(&p, 97 * MS);
                p.live.quota_usec -= p.live.quota_usec % MS;
                p.live.burst_usec = MIN_OF(p.live.burst_usec, p.live.quota_usec);
                assert_int_not_equal(p.decision.cause, LAW_CAUSE_FOREIGN_CHANGE);
        }
        assert_true(p.live.quota_usec > 90 * MS);
}

static void test_tokens_are_kept_for_raises(void **userdata) {
        LawConfig c = config_of(LAW_KOORDLET, 50 * MS, 10 * MS, 4000 * MS);
        LawState state;
        LawSample s = { .valid = true, .window_usec = SEC, .nr_periods = 10, .live = { 3000 * MS, 100 * MS, 3000 * MS } };
        unsigned lowered = 0;
        LawDecision d;

        law_reset(&c, &state);
        state.started_usec = state.last_write_usec = state.tokens_updated_usec = SEC;
        state.written_from_usec = state.quota_usec = state.burst_usec = 3000 * MS;
        state.write_tokens_milli = LAW_WRITE_BUCKET * 1000;
        s.host_busy_permyriad = 9000;
        /* time stands still, so that nothing is earned back */
        for (unsigned i = 0; i < 20; i++) {
                s.now_usec = SEC;
                law_step(&c, &state, &s, &d);
                if (d.changed) {
                        lowered++;
                        s.live.quota_usec = d.quota_usec;
                        s.live.burst_usec = d.burst_usec;
                }
        }
        assert_int_equal(lowered, LAW_WRITE_BUCKET - LAW_WRITE_RESERVE);
        assert_int_equal(d.hold, LAW_HOLD_WRITE_BUDGET);

        s.host_busy_permyriad = 1000;
        s.nr_throttled = 10;
        s.live.quota_usec = state.quota_usec = 60 * MS;
        law_step(&c, &state, &s, &d);
        assert_true(d.changed);
        assert_int_equal(d.quota_usec, 72 * MS);
}

static void test_host_ceiling_for_the_sum(void **userdata) {
        LawConfig c = config_of(LAW_CAPTAIN, 50 * MS, 10 * MS, 400 * MS);
        LawState state;
        LawSample s = { .valid = true, .now_usec = SEC, .window_usec = SEC, .nr_periods = 10, .nr_throttled = 10,
                        .live = { 50 * MS, 100 * MS, 50 * MS }, .has_host_room = true, .host_room_usec = 10 * MS };
        LawDecision d;

        law_reset(&c, &state);
        law_step(&c, &state, &s, &d);
        assert_true(d.changed);
        assert_int_equal(d.hold, LAW_HOLD_HOST_CEILING);
        assert_int_equal(d.quota_usec + d.burst_usec, 110 * MS);

        /* without room a raise up to the base is still possible */
        law_reset(&c, &state);
        s.live = (Bandwidth) { 40 * MS, 100 * MS, 40 * MS };
        state.quota_usec = state.burst_usec = 40 * MS;
        s.host_room_usec = 0;
        law_step(&c, &state, &s, &d);
        assert_true(d.changed);
        assert_int_equal(d.quota_usec, 50 * MS);
}

static void test_live_period_may_differ(void **userdata) {
        LawConfig c = config_of(LAW_CAPTAIN, 50 * MS, 10 * MS, 60 * MS);
        LawState state;
        /* half the period, the same ratio */
        LawSample s = { .valid = true, .now_usec = SEC, .window_usec = SEC, .nr_periods = 20, .nr_throttled = 20,
                        .live = { 25 * MS, 50 * MS, 25 * MS } };
        LawDecision d;

        law_reset(&c, &state);
        law_step(&c, &state, &s, &d);
        assert_true(d.changed);
        assert_int_equal(d.quota_usec, 30 * MS); /* the ceiling, as a ratio */
        assert_int_equal(d.burst_usec, 30 * MS);
        assert_int_equal(d.hold, LAW_HOLD_CEILING);
}

static void test_unlimited_is_left_alone(void **userdata) {
        for (int law = 0; law < _LAW_KIND_MAX; law++) {
                LawConfig c = config_of(law, QUOTA_UNLIMITED, 0, QUOTA_UNLIMITED);
                LawState state;
                LawSample s = { .valid = true, .now_usec = SEC, .window_usec = SEC, .nr_periods = 10, .nr_throttled = 10,
                                .live = { QUOTA_UNLIMITED, 100 * MS, 0 } };
                Bandwidth start;
                LawDecision d;

                law_start(&c, &start);
                assert_int_equal(start.quota_usec, QUOTA_UNLIMITED);
                assert_int_equal(start.burst_usec, 0);
                law_reset(&c, &state);
                law_step(&c, &state, &s, &d);
                assert_false(d.changed);
        }
}

/* ---- static, burst ---- */

static void test_static_and_burst(void **userdata) {
        LawConfig c = config_of(LAW_STATIC, 50 * MS, 50 * MS, 50 * MS);
        LawSample s = { .valid = true, .now_usec = SEC, .window_usec = SEC, .nr_periods = 10, .nr_throttled = 5,
                        .usage_usec = 500 * MS, .live = { 50 * MS, 100 * MS, 10 * MS } };
        LawState state;
        LawDecision d;

        c.burst = (Amount) { .kind = AMOUNT_USEC, .value = 10 * MS };
        law_reset(&c, &state);
        law_step(&c, &state, &s, &d);
        assert_false(d.changed);
        assert_int_equal(d.cause, LAW_CAUSE_OWN_LIMIT);
        assert_int_equal(d.throttled_permyriad, 5000);

        /* the same class with law "burst": all of the quota, asked for once */
        c.law = LAW_BURST;
        law_reset(&c, &state);
        law_step(&c, &state, &s, &d);
        assert_true(d.changed);
        assert_int_equal(d.quota_usec, 50 * MS);
        assert_int_equal(d.burst_usec, 50 * MS);
        s.now_usec += SEC;
        law_step(&c, &state, &s, &d);
        assert_false(d.changed);

        assert_false(law_is_moving(LAW_STATIC));
        assert_false(law_is_moving(LAW_BURST));
        assert_true(law_interval_usec(LAW_STATIC) == SEC);
        assert_true(law_interval_usec(LAW_CAPTAIN) == 100 * MS);
}

/* ---- captain ---- */

static LawSample second_of(uint64_t now, const Bandwidth *live, uint64_t throttled, uint64_t use) {
        return (LawSample) { .valid = true, .now_usec = now, .window_usec = SEC, .nr_periods = 10, .nr_throttled = throttled,
                             .usage_usec = use * 10, .live = *live };
}

static void test_captain_raises_by_the_excess(void **userdata) {
        LawConfig c = config_of(LAW_CAPTAIN, 100 * MS, 10 * MS, 1000 * MS);
        Bandwidth live = { 100 * MS, 100 * MS, 100 * MS };
        LawState state;
        LawDecision d;

        /* r = 0.5, t = 0.02: limit x (1 + 0.5 - 0.06) */
        law_reset(&c, &state);
        law_step(&c, &state, &(LawSample) { .valid = true, .now_usec = SEC, .window_usec = SEC, .nr_periods = 10, .nr_throttled = 5,
                                            .usage_usec = 1000 * MS, .live = live }, &d);
        assert_true(d.changed);
        assert_int_equal(d.cause, LAW_CAUSE_DEMAND_ABOVE_LIMIT);
        assert_int_equal(d.quota_usec, 144 * MS);
        assert_int_equal(d.throttled_permyriad, 5000);
        assert_int_equal(state.margin_permyriad, 4800);

        /* a target of its own: t = 0.1 */
        c.targets.throttled_permyriad = 1000;
        law_reset(&c, &state);
        law_step(&c, &state, &(LawSample) { .valid = true, .now_usec = SEC, .window_usec = SEC, .nr_periods = 10, .nr_throttled = 5,
                                            .usage_usec = 1000 * MS, .live = live }, &d);
        assert_int_equal(d.quota_usec, 120 * MS);
}

static void test_captain_lowers_and_rolls_back(void **userdata) {
        LawConfig c = config_of(LAW_CAPTAIN, 100 * MS, 10 * MS, 1000 * MS);
        Bandwidth live = { 100 * MS, 100 * MS, 100 * MS };
        LawState state;
        LawSample s;
        LawDecision d;

        law_reset(&c, &state);
        s = second_of(SEC, &live, 0, 70 * MS);
        law_step(&c, &state, &s, &d);
        assert_true(d.changed);
        assert_int_equal(d.cause, LAW_CAUSE_OVER_PROVISIONED);
        assert_int_equal(d.quota_usec, 70 * MS); /* the largest use, no margin yet */

        /* throttled in the very next sample: 2 x 100 - 70 */
        live = (Bandwidth) { 70 * MS, 100 * MS, 70 * MS };
        s = (LawSample) { .valid = true, .now_usec = SEC + 100 * MS, .window_usec = 100 * MS, .nr_periods = 1, .nr_throttled = 1,
                          .usage_usec = 70 * MS, .live = live };
        law_step(&c, &state, &s, &d);
        assert_true(d.changed);
        assert_int_equal(d.cause, LAW_CAUSE_ROLLBACK);
        assert_int_equal(d.quota_usec, 130 * MS);
        assert_int_equal(state.margin_permyriad, 800); /* 0 - 200 floored, then 1000 - 200 */

        /* not lowered when the proposal is above 0.9 of the limit, never to less than half */
        live = (Bandwidth) { 100 * MS, 100 * MS, 100 * MS };
        law_reset(&c, &state);
        s = second_of(SEC, &live, 0, 91 * MS);
        law_step(&c, &state, &s, &d);
        assert_false(d.changed);
        law_reset(&c, &state);
        s = second_of(SEC, &live, 0, 1 * MS);
        law_step(&c, &state, &s, &d);
        assert_int_equal(d.quota_usec, 50 * MS);
}

/* ---- koordlet ---- */

static void test_koordlet_steps(void **userdata) {
        LawConfig c = config_of(LAW_KOORDLET, 50 * MS, 10 * MS, 1000 * MS);
        Bandwidth live = { 50 * MS, 100 * MS, 50 * MS };
        uint64_t expect[] = { 60000, 72000, 86400, 103680, 124416, 149299, 150000, 150000 };
        LawState state;
        LawSample s;
        LawDecision d;
        uint64_t now = SEC;

        law_reset(&c, &state);
        for (unsigned i = 0; i < ELEMENTSOF(expect); i++, now += SEC) {
                s = second_of(now, &live, 1, 50 * MS);
                s.host_busy_permyriad = 4499;
                law_step(&c, &state, &s, &d);
                if (d.changed)
                        live = (Bandwidth) { d.quota_usec, 100 * MS, d.burst_usec };
                assert_int_equal(live.quota_usec, expect[i]);
        }
        /* cooling: no more rises, no fall; idle without throttling: what was raised stays */
        live = (Bandwidth) { 72 * MS, 100 * MS, 72 * MS };
        state.quota_usec = state.burst_usec = 72 * MS;
        s = second_of(now += SEC, &live, 5, 72 * MS);
        s.host_busy_permyriad = 4500;
        law_step(&c, &state, &s, &d);
        assert_false(d.changed);
        s = second_of(now += SEC, &live, 0, 1 * MS);
        law_step(&c, &state, &s, &d);
        assert_false(d.changed);
        /* overload: down by a fifth, not below the base */
        s = second_of(now += SEC, &live, 5, 72 * MS);
        s.host_busy_permyriad = 5000;
        law_step(&c, &state, &s, &d);
        assert_int_equal(d.quota_usec, 57600);
        assert_int_equal(d.cause, LAW_CAUSE_NODE_OVERLOAD);
        live = (Bandwidth) { 57600, 100 * MS, 57600 };
        s = second_of(now += SEC, &live, 5, 57 * MS);
        s.host_busy_permyriad = 5000;
        law_step(&c, &state, &s, &d);
        assert_int_equal(d.quota_usec, 50 * MS);
}

/* ---- words ---- */

static void test_words(void **userdata) {
        for (int i = 0; i < _LAW_CAUSE_MAX; i++)
                for (int k = 0; k < i; k++)
                        assert_string_not_equal(law_cause_to_string(i), law_cause_to_string(k));
        for (int i = 0; i < _LAW_HOLD_MAX; i++)
                for (int k = 0; k < i; k++)
                        assert_string_not_equal(law_hold_to_string(i), law_hold_to_string(k));
        assert_string_equal(law_cause_to_string(_LAW_CAUSE_MAX), "unknown");
        assert_string_equal(law_cause_to_string((LawCause) -1), "unknown");
        assert_string_equal(law_hold_to_string(_LAW_HOLD_MAX), "unknown");
}

static void test_description(void **userdata) {
        LawDecision d = {
                .changed = true, .quota_usec = 75 * MS, .burst_usec = 75 * MS, .cause = LAW_CAUSE_DEMAND_ABOVE_LIMIT,
                .throttled_permyriad = 3450, .usage_per_period_usec = 48250, .need_usec = 74900,
        };
        Bandwidth live = { 50 * MS, 100 * MS, 50 * MS };
        char text[400], small[20];

        law_decision_describe(&d, &live, text, sizeof(text));
        assert_string_equal(text, "used 48.2 ms of 50 ms per 100 ms, throttled in 34.5 % of periods: demand is above the limit; "
                                  "quota raised from 50 ms to 75 ms, burst 75 ms (needs 74.9 ms)");
        d.changed = false;
        d.hold = LAW_HOLD_CEILING;
        law_decision_describe(&d, &live, text, sizeof(text));
        assert_non_null(strstr(text, "held: the class's ceiling is reached"));

        /* cut, never overrun */
        memset(small, 'x', sizeof(small));
        law_decision_describe(&d, &live, small, 10);
        assert_int_equal(strlen(small), 9);
        assert_int_equal(small[10], 'x');
        law_decision_describe(&d, &live, small, 0);
        assert_int_equal(strlen(small), 9);

        for (int i = 0; i < _LAW_CAUSE_MAX; i++) {
                LawDecision each = { .cause = i };

                law_decision_describe(&each, &live, text, sizeof(text));
                assert_true(strlen(text) > 10);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_any_input_stays_within_bounds),
                cmocka_unit_test(test_writes_are_bounded),
                cmocka_unit_test(test_back_to_base_when_quiet),
                cmocka_unit_test(test_constant_load_does_not_oscillate),
                cmocka_unit_test(test_missing_data_holds),
                cmocka_unit_test(test_class_without_raise_stays_at_base),
                cmocka_unit_test(test_write_in_flight_blocks_the_next),
                cmocka_unit_test(test_foreign_change_is_taken_up),
                cmocka_unit_test(test_rounding_by_systemd_is_no_foreign_change),
                cmocka_unit_test(test_tokens_are_kept_for_raises),
                cmocka_unit_test(test_host_ceiling_for_the_sum),
                cmocka_unit_test(test_live_period_may_differ),
                cmocka_unit_test(test_unlimited_is_left_alone),
                cmocka_unit_test(test_static_and_burst),
                cmocka_unit_test(test_captain_raises_by_the_excess),
                cmocka_unit_test(test_captain_lowers_and_rolls_back),
                cmocka_unit_test(test_koordlet_steps),
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_description),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
