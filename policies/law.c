/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The frame around every law: it turns a sample into one view in fixed units, lets the law propose, and makes a decision of the
 * proposal. All guards are here and nowhere else, so a law can be wrong but not dangerous.
 *
 * Amounts inside are per period of the base. The live period may be another one (the kernel stretches a short period under load, an owner may
 * choose his own), so limits are compared and scaled as ratios. */

#include <limits.h>

#include "policies/law-internal.h"
#include "policies/law-tuning.h"

bool law_is_moving(LawKind law) {
        return law == LAW_KOORDLET || law == LAW_CAPTAIN || law == LAW_ADAPTIVE;
}

uint64_t law_interval_usec(LawKind law) {
        return law_is_moving(law) ? LAW_SAMPLE_USEC : LAW_SLOW_SAMPLE_USEC;
}

uint32_t law_window_throttled_permyriad(const LawState *state) {
        if (state->window_periods == 0)
                return state->window_throttled > 0 ? 10000 : 0;
        return (uint32_t) MIN_OF(mul_div(state->window_throttled, 10000, state->window_periods), UINT64_C(10000));
}

uint64_t law_window_use(const LawState *state, uint64_t period_usec) {
        return state->window_usec == 0 ? 0 : mul_div(state->window_usage_usec, period_usec, state->window_usec);
}

void law_window_restart(LawState *state, uint64_t now_usec) {
        state->window_periods = state->window_throttled = state->window_usage_usec = state->window_usec = 0;
        state->last_decision_usec = now_usec;
}

uint64_t law_history_use(const LawState *state, uint32_t age, uint64_t period_usec) {
        uint32_t i = (state->history_next + LAW_HISTORY - 1 - age) % LAW_HISTORY;

        return state->history_window_usec[i] == 0 ? 0 :
                mul_div(state->history_usage_usec[i], period_usec, state->history_window_usec[i]);
}

/* The burst for a quota: law "burst" means all of it, else the class's rule. */
static uint64_t burst_for(const LawConfig *config, uint64_t quota_usec) {
        return config->law == LAW_BURST ? quota_usec : resolve_burst(&config->burst, quota_usec, config->base.burst_usec);
}

static uint64_t effective_ceiling(const LawConfig *config) {
        uint64_t ceiling = MAX_OF(config->ceiling_usec, QUOTA_MIN_USEC);

        return config->may_raise ? ceiling : MIN_OF(ceiling, MAX_OF(MAX_OF(config->base.quota_usec, config->floor_usec), QUOTA_MIN_USEC));
}

static uint64_t effective_floor(const LawConfig *config) {
        return MIN_OF(MAX_OF(config->floor_usec, QUOTA_MIN_USEC), effective_ceiling(config));
}

void law_start(const LawConfig *config, Bandwidth *ret) {
        *ret = config->base;
        ret->burst_usec = 0;
        if (config->base.quota_usec == QUOTA_UNLIMITED)
                return;
        ret->quota_usec = CLAMP_TO(config->base.quota_usec, effective_floor(config), effective_ceiling(config));
        ret->burst_usec = burst_for(config, ret->quota_usec);
}

void law_config_from_class(const ServiceClass *c, const BandwidthPlan *plan, uint32_t n_cpus, LawConfig *ret) {
        *ret = (LawConfig) {
                .law = c->law,
                .targets = c->targets,
                .base = plan->start,
                .floor_usec = plan->floor_usec,
                .ceiling_usec = plan->ceiling_usec,
                .burst = plan->burst,
                .may_raise = c->priority >= LAW_RAISE_FROM_PRIORITY,
                .has_latency_nice = c->has_latency_nice,
                .latency_nice = c->latency_nice,
                .priority = c->priority,
                .n_cpus = n_cpus,
        };
}

void law_reset(const LawConfig *config, LawState *state) {
        Bandwidth start;

        law_start(config, &start);
        memset(state, 0, sizeof(*state));
        state->quota_usec = start.quota_usec;
        state->burst_usec = start.burst_usec;
        state->latency_nice = config->latency_nice;
}

static void add_history(LawState *state, const LawSample *s) {
        state->history_usage_usec[state->history_next] = s->usage_usec;
        state->history_window_usec[state->history_next] = s->window_usec;
        state->history_next = (state->history_next + 1) % LAW_HISTORY;
        if (state->history_count < LAW_HISTORY)
                state->history_count++;

        state->window_periods = add_saturating(state->window_periods, s->nr_periods);
        state->window_throttled = add_saturating(state->window_throttled, s->nr_throttled);
        state->window_usage_usec = add_saturating(state->window_usage_usec, s->usage_usec);
        state->window_usec = add_saturating(state->window_usec, s->window_usec);
        if (s->nr_throttled > 0)
                state->last_throttled_usec = s->now_usec;
}

/* Inside a throttled period the kernel's counters of throttling stand still while pressure moves: a stall is only known to be none of our own
 * making after a whole period without throttling. */
static void watch_contention(const LawConfig *config, LawState *state, const LawView *view) {
        const LawSample *s = view->sample;
        uint64_t patience = add_saturating(s->live.period_usec, s->window_usec);
        bool stalled = s->has_pressure && s->some_usec >= mul_div(s->window_usec, LAW_STALLED_PERMYRIAD, 10000);

        state->witness = false;
        if (!stalled || s->nr_throttled > 0 || s->ancestor_throttled || s->host_busy_permyriad < LAW_HOST_BUSY_PERMYRIAD) {
                state->stalled_since_usec = 0;
                return;
        }
        if (state->stalled_since_usec == 0)
                state->stalled_since_usec = MAX_OF(sub_floored(s->now_usec, s->window_usec), UINT64_C(1));
        state->witness = law_since(s->now_usec, state->stalled_since_usec) >= patience &&
                         law_since(s->now_usec, state->last_throttled_usec) >= patience;
}

bool law_is_witness(const LawState *state) {
        return state->witness;
}

void law_choose_who_gives_way(const LawPeer *peers, size_t n, bool *ret) {
        int highest_witness = INT_MIN, giver = INT_MAX;

        for (size_t i = 0; i < n; i++)
                if (peers[i].witness)
                        highest_witness = MAX_OF(highest_witness, peers[i].priority);
        for (size_t i = 0; i < n; i++)
                if (peers[i].can_give && peers[i].priority < highest_witness)
                        giver = MIN_OF(giver, peers[i].priority);
        for (size_t i = 0; i < n; i++)
                ret[i] = peers[i].priority < highest_witness && peers[i].priority <= giver;
}

static void refill_tokens(LawState *state, uint64_t now_usec) {
        const uint64_t full = LAW_WRITE_BUCKET * UINT64_C(1000);

        if (state->tokens_updated_usec == 0)
                state->write_tokens_milli = full;
        else {
                uint64_t elapsed = sub_floored(now_usec, state->tokens_updated_usec);
                uint64_t earned = mul_div(elapsed, LAW_WRITES_PER_MINUTE * UINT64_C(1000), 60 * USEC_PER_SEC);

                if (earned == 0)
                        return; /* keep the fraction for later */
                state->write_tokens_milli = MIN_OF(add_saturating(state->write_tokens_milli, earned), full);
        }
        state->tokens_updated_usec = now_usec;
}

/* Takes a write from the bucket. What raises may use all of it. */
static bool take_token(LawState *state, bool raise) {
        uint64_t keep = raise ? 0 : LAW_WRITE_RESERVE * UINT64_C(1000);

        if (state->write_tokens_milli < keep + 1000)
                return false;
        state->write_tokens_milli -= 1000;
        return true;
}

static bool nearly_same(uint64_t a, uint64_t b, uint64_t period_usec) {
        uint64_t difference = a > b ? a - b : b - a;

        return difference <= mul_div(period_usec, LAW_ROUNDING_PERMYRIAD, 10000);
}

typedef enum Arrival { ARRIVED, IN_FLIGHT, FOREIGN } Arrival;

/* Compares the live limit with what was asked for last. What is neither that nor the value before is somebody else's. */
static Arrival check_arrival(LawState *state, const LawView *view) {
        bool first = state->started_usec == view->now_usec;

        if (nearly_same(view->limit_usec, state->quota_usec, view->period_usec))
                return ARRIVED;
        if (first || (nearly_same(view->limit_usec, state->written_from_usec, view->period_usec) &&
                      law_since(view->now_usec, state->last_write_usec) < LAW_WRITE_SETTLE_USEC))
                return IN_FLIGHT;

        /* It goes on from what is there: a refused write may be tried again, a foreign one is respected. */
        bool foreign = !nearly_same(view->limit_usec, state->written_from_usec, view->period_usec);
        state->quota_usec = view->limit_usec;
        state->burst_usec = view->burst_usec;
        state->previous_quota_usec = 0;
        state->last_lower_usec = 0;
        return foreign ? FOREIGN : ARRIVED;
}

/* Fills a decision from amounts per base period. The scale is the same for the bounds, so they hold there too. */
static void fill_live(const LawView *view, uint64_t quota, uint64_t burst, LawDecision *ret) {
        uint64_t live_period = view->sample->live.period_usec;

        ret->changed = true;
        ret->quota_usec = MAX_OF(mul_div(quota, live_period, view->period_usec), QUOTA_MIN_USEC);
        ret->burst_usec = MIN_OF(mul_div(burst, live_period, view->period_usec), ret->quota_usec);
}

/* The first step of a law that never moves, and only that, asks for its start value. */
static bool wants_start(const LawConfig *config, const LawState *state, const LawView *view, LawDecision *ret) {
        if (law_is_moving(config->law) || state->started_usec != view->now_usec)
                return false;
        if (view->limit_usec == state->quota_usec && view->burst_usec == state->burst_usec)
                return false;
        fill_live(view, state->quota_usec, state->burst_usec, ret);
        return true;
}

/* Cuts a proposal (per base period) to what the guards allow. */
static uint64_t bounded_quota(const LawView *view, const LawConfig *config, uint64_t quota, LawHold *hold) {
        const LawSample *s = view->sample;
        uint64_t most = mul_div(view->limit_usec, LAW_STEP_UP_PERCENT, 100);
        uint64_t least = mul_div(view->limit_usec, LAW_STEP_DOWN_PERCENT, 100);

        quota = CLAMP_TO(quota, least, most);

        if (s->has_host_room && quota > view->limit_usec) {
                uint64_t room = mul_div(s->host_room_usec, view->period_usec, s->live.period_usec);
                uint64_t have = add_saturating(view->limit_usec, view->burst_usec);
                uint64_t may = add_saturating(have, room);

                if (add_saturating(quota, burst_for(config, quota)) > may) {
                        /* The burst grows with the quota, or stands still: in both cases this stays within the room. */
                        uint64_t grown = burst_for(config, quota) > view->burst_usec ? room / 2 : room;

                        quota = MAX_OF(add_saturating(view->limit_usec, grown), MIN_OF(quota, view->base_usec));
                        *hold = LAW_HOLD_HOST_CEILING;
                }
        }

        if (quota > view->ceiling_usec) {
                quota = view->ceiling_usec;
                *hold = config->may_raise ? LAW_HOLD_CEILING : LAW_HOLD_NO_RAISE;
        }
        if (quota < view->floor_usec) {
                quota = view->floor_usec;
                *hold = LAW_HOLD_FLOOR;
        }
        return quota;
}

/* Turns a proposal into a decision and commits it to the state. */
static void decide_bandwidth(const LawConfig *config, LawState *state, const LawView *view, LawDecision *ret) {
        uint64_t quota, burst;
        bool raise;

        if (!ret->changed)
                return;
        ret->changed = false;
        quota = bounded_quota(view, config, ret->quota_usec, &ret->hold);
        burst = burst_for(config, quota);
        if (quota == state->quota_usec && burst == state->burst_usec)
                return;

        raise = quota > view->limit_usec || (quota == view->limit_usec && burst > view->burst_usec);
        if (!take_token(state, raise)) {
                ret->hold = LAW_HOLD_WRITE_BUDGET;
                return;
        }

        if (quota < view->limit_usec) {
                state->previous_quota_usec = view->limit_usec;
                state->last_lower_usec = view->now_usec;
        } else if (raise) {
                state->last_raise_usec = view->now_usec;
                state->previous_quota_usec = 0;
        }
        state->written_from_usec = view->limit_usec;
        state->last_write_usec = view->now_usec;
        state->quota_usec = quota;
        state->burst_usec = burst;

        fill_live(view, quota, burst, ret);
}

static void decide_latency(const LawConfig *config, LawState *state, const LawView *view, LawDecision *ret) {
        int nice = CLAMP_TO(ret->latency_nice, LATENCY_NICE_MIN, LATENCY_NICE_MAX);

        if (!ret->latency_nice_changed)
                return;
        ret->latency_nice_changed = false;
        if (!config->has_latency_nice || nice == state->latency_nice)
                return;
        if (!take_token(state, nice < state->latency_nice)) {
                ret->hold = LAW_HOLD_WRITE_BUDGET;
                return;
        }
        state->latency_nice = nice;
        state->latency_since_usec = view->now_usec;
        ret->latency_nice = nice;
        ret->latency_nice_changed = true;
}

static bool sample_is_usable(const LawConfig *config, const LawSample *s) {
        return s->valid && s->window_usec > 0 && s->live.period_usec > 0 && config->base.period_usec > 0;
}

void law_step(const LawConfig *config, LawState *state, const LawSample *sample, LawDecision *ret) {
        Bandwidth start;
        LawView view;

        *ret = (LawDecision) {};
        if (!sample_is_usable(config, sample)) {
                state->witness = false;
                state->stalled_since_usec = 0;
                ret->cause = LAW_CAUSE_MISSING_DATA;
                return;
        }
        /* Nothing to steer where nothing limits. */
        if (config->base.quota_usec == QUOTA_UNLIMITED)
                return;
        if (sample->live.quota_usec == QUOTA_UNLIMITED) {
                ret->cause = LAW_CAUSE_FOREIGN_CHANGE;
                return;
        }

        law_start(config, &start);
        view = (LawView) {
                .now_usec = sample->now_usec,
                .period_usec = config->base.period_usec,
                .limit_usec = mul_div(sample->live.quota_usec, config->base.period_usec, sample->live.period_usec),
                .burst_usec = mul_div(sample->live.burst_usec, config->base.period_usec, sample->live.period_usec),
                .floor_usec = effective_floor(config),
                .ceiling_usec = effective_ceiling(config),
                .base_usec = start.quota_usec,
                .use_usec = mul_div(sample->usage_usec, config->base.period_usec, sample->window_usec),
                .sample = sample,
        };

        if (state->started_usec == 0) {
                state->started_usec = MAX_OF(sample->now_usec, UINT64_C(1));
                state->last_write_usec = state->last_decision_usec = state->started_usec;
                state->written_from_usec = view.limit_usec;
        }
        refill_tokens(state, sample->now_usec);
        add_history(state, sample);
        watch_contention(config, state, &view);
        if (config->law == LAW_ADAPTIVE)
                law_adaptive_observe(config, state, &view);

        if (wants_start(config, state, &view, ret))
                return;

        switch (check_arrival(state, &view)) {
        case IN_FLIGHT:
                ret->hold = LAW_HOLD_IN_FLIGHT;
                return;
        case FOREIGN:
                ret->cause = LAW_CAUSE_FOREIGN_CHANGE;
                return;
        case ARRIVED:
                break;
        }

        switch (config->law) {
        case LAW_STATIC:
        case LAW_BURST:
                law_static_step(config, state, &view, ret);
                break;
        case LAW_KOORDLET:
                law_koordlet_step(config, state, &view, ret);
                break;
        case LAW_CAPTAIN:
                law_captain_step(config, state, &view, ret);
                break;
        case LAW_ADAPTIVE:
                law_adaptive_step(config, state, &view, ret);
                break;
        case _LAW_KIND_MAX:
                break;
        }

        decide_bandwidth(config, state, &view, ret);
        decide_latency(config, state, &view, ret);
}
