/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A change of cpu.max and cpu.max.burst is a short loop: look at what the kernel has, take the first step of the way from there to
 * what is wanted, look again. Each step is legal from where it starts, so no order of old and new values is refused; what an old kernel does to the
 * burst behind our back, or another writer in between, is only another place to start from. The loop is bounded. */

#include <inttypes.h>

#include "daemon/bandwidth-ops.h"

/* Burst down, quota, burst up, and one more burst for a kernel that divides it. */
#define WRITES_MOST 4

static const char file_max[] = "cpu.max", file_burst[] = "cpu.max.burst";

static ssize_t read_at(const char *file, char *buffer, size_t size, void *userdata) {
        return cgroup_read_file(*(const int *) userdata, file, buffer, size);
}

static int write_at(const char *file, const char *text, void *userdata) {
        return cgroup_write_file(*(const int *) userdata, file, text);
}

int bandwidth_read_with(const BandwidthOps *ops, Bandwidth *ret, bool *ret_has_burst) {
        bool has_burst = true;
        Bandwidth b = {};
        char text[128];
        ssize_t n;
        int r;

        n = ops->read(file_max, text, sizeof(text), ops->userdata);
        if (n < 0)
                return (int) n;
        r = cpu_max_parse(text, (size_t) n, &b.quota_usec, &b.period_usec);
        if (r < 0)
                return r;
        n = ops->read(file_burst, text, sizeof(text), ops->userdata);
        if (n == -ENOENT)
                has_burst = false;
        else if (n < 0)
                return (int) n;
        else {
                r = number_parse(text, (size_t) n, &b.burst_usec);
                if (r < 0)
                        return r;
        }
        *ret = b;
        if (ret_has_burst)
                *ret_has_burst = has_burst;
        return 0;
}

static bool same_limit(const Bandwidth *a, const Bandwidth *b) {
        return a->quota_usec == b->quota_usec && a->period_usec == b->period_usec;
}

static void burst_step(BandwidthStep *step, uint64_t burst_usec) {
        step->file = file_burst;
        (void) snprintf(step->text, sizeof(step->text), "%" PRIu64, burst_usec);
}

size_t bandwidth_plan_steps(const Bandwidth *have, const Bandwidth *want, bool has_burst, BandwidthStep ret[4]) {
        uint64_t burst = have->burst_usec;
        size_t n = 0;

        /* Downwards always first: a smaller burst is right under any quota, and the quota may be about to go below the old burst. */
        if (has_burst && want->burst_usec < burst) {
                burst = want->burst_usec;
                burst_step(&ret[n++], burst);
        }
        if (!same_limit(have, want)) {
                ret[n].file = file_max;
                /* Both numbers in one write: half of it would keep or lose the period. */
                if (want->quota_usec == QUOTA_UNLIMITED)
                        (void) snprintf(ret[n].text, sizeof(ret[n].text), "max %" PRIu64, want->period_usec);
                else
                        (void) snprintf(ret[n].text, sizeof(ret[n].text), "%" PRIu64 " %" PRIu64, want->quota_usec, want->period_usec);
                n++;
        }
        if (has_burst && want->burst_usec > burst)
                burst_step(&ret[n++], want->burst_usec);
        return n;
}

/* What the kernel would refuse in any case is refused before anything is touched (tg_set_cfs_bandwidth, kernel/sched/core.c). */
static bool bandwidth_is_possible(const Bandwidth *b) {
        if (b->period_usec < PERIOD_MIN_USEC || b->period_usec > PERIOD_MAX_USEC)
                return false;
        return b->quota_usec == QUOTA_UNLIMITED || (b->quota_usec >= QUOTA_MIN_USEC && b->burst_usec <= b->quota_usec);
}

static bool is_gone(int error) {
        return error == -ENOENT || error == -ENODEV;
}

typedef struct Journey {
        Bandwidth live;      /* as last read */
        unsigned n_writes;
        bool foreign;        /* a refused write found something else than what we had left there */
} Journey;

/* Goes from j->live to want. Returns 0 or what stopped it. */
static int go(const BandwidthOps *ops, const Bandwidth *want, bool has_burst, Journey *j) {
        BandwidthStep last = {};
        unsigned n_refused = 0;

        for (;;) {
                Bandwidth before = j->live;
                BandwidthStep steps[4];
                int r, q;

                if (bandwidth_plan_steps(&j->live, want, has_burst, steps) == 0)
                        return 0;
                /* The same step twice in a row: the kernel takes it and shows something else. */
                if (j->n_writes >= WRITES_MOST || (last.file == steps[0].file && streq(last.text, steps[0].text)))
                        return -ESTALE;

                r = ops->write(steps[0].file, steps[0].text, ops->userdata);
                if (is_gone(r))
                        return r;
                q = bandwidth_read_with(ops, &j->live, NULL);
                if (q < 0)
                        return r < 0 ? r : q;
                if (r < 0) {
                        /* Legal from where we thought we were: a refusal with another live value is another writer's doing, so look again. */
                        bool moved = !bandwidth_equal(&before, &j->live);

                        j->foreign |= moved;
                        if (r == -EINVAL && moved && n_refused++ == 0)
                                continue;
                        return r;
                }
                last = steps[0];
                j->n_writes++;
        }
}

int bandwidth_write_with(const BandwidthOps *ops, const Bandwidth *want, Bandwidth *ret_observed) {
        Bandwidth original;
        bool has_burst;
        Journey j = {};
        int r;

        r = bandwidth_read_with(ops, &original, &has_burst);
        if (r < 0)
                return r;
        j.live = original;
        if (!bandwidth_is_possible(want))
                r = -EINVAL;
        else if (want->burst_usec > 0 && !has_burst)
                r = -EOPNOTSUPP;
        else
                r = go(ops, want, has_burst, &j);

        /* Refused half-way: back to where it was, unless somebody else has moved it. */
        if (r < 0 && r != -ESTALE && !is_gone(r) && j.n_writes > 0 && !j.foreign) {
                Journey back = { .live = j.live };

                (void) go(ops, &original, has_burst, &back);
                j.live = back.live;
        }
        if (ret_observed)
                *ret_observed = j.live;
        return r < 0 ? r : (int) j.n_writes;
}

int bandwidth_write_burst_with(const BandwidthOps *ops, uint64_t burst_usec, Bandwidth *ret_observed) {
        unsigned n_writes = 0;
        bool has_burst;
        Bandwidth live;
        int r;

        r = bandwidth_read_with(ops, &live, &has_burst);
        if (r < 0)
                return r;
        if (!has_burst)
                r = burst_usec == 0 ? 0 : -EOPNOTSUPP;
        else if (burst_usec != live.burst_usec) {
                BandwidthStep step;

                burst_step(&step, burst_usec);
                if (live.quota_usec != QUOTA_UNLIMITED && burst_usec > live.quota_usec)
                        r = -EINVAL;
                else
                        r = ops->write(step.file, step.text, ops->userdata);
                if (r >= 0) {
                        n_writes++;
                        r = bandwidth_read_with(ops, &live, NULL);
                        if (r >= 0 && live.burst_usec != burst_usec)
                                r = -ESTALE;
                } else if (!is_gone(r))
                        (void) bandwidth_read_with(ops, &live, NULL);
        }
        if (ret_observed)
                *ret_observed = live;
        return r < 0 ? r : (int) n_writes;
}

int bandwidth_read(int dir_fd, Bandwidth *ret, bool *ret_has_burst) {
        return bandwidth_read_with(&(BandwidthOps) { read_at, write_at, &dir_fd }, ret, ret_has_burst);
}

int bandwidth_write(int dir_fd, const Bandwidth *want, Bandwidth *ret_observed) {
        return bandwidth_write_with(&(BandwidthOps) { read_at, write_at, &dir_fd }, want, ret_observed);
}

int bandwidth_write_burst(int dir_fd, uint64_t burst_usec, Bandwidth *ret_observed) {
        return bandwidth_write_burst_with(&(BandwidthOps) { read_at, write_at, &dir_fd }, burst_usec, ret_observed);
}

/* a gives less CPU than b. */
static bool is_tighter(const Bandwidth *a, const Bandwidth *b) {
        if (a->quota_usec == QUOTA_UNLIMITED)
                return false;
        if (b->quota_usec == QUOTA_UNLIMITED)
                return true;
        return (unsigned __int128) a->quota_usec * b->period_usec < (unsigned __int128) b->quota_usec * a->period_usec;
}

int bandwidth_effective(const CgroupRoot *root, const char *path, Bandwidth *ret, char **ret_path) {
        Bandwidth least = { QUOTA_UNLIMITED, PERIOD_DEFAULT_USEC, 0 };
        _cleanup_free_ char *level = NULL, *found = NULL;
        int r;

        level = strdup(path);
        if (!level)
                return -ENOMEM;
        for (bool first = true;; first = false) {
                _cleanup_close_ int fd = cgroup_open(root, level);
                Bandwidth b;
                char *slash;

                if (fd < 0)
                        return fd;
                r = bandwidth_read(fd, &b, NULL);
                /* No cpu.max: the controller is off up there (or this is the root), so nothing limits. */
                if (r < 0 && r != -ENOENT)
                        return r;
                if (r >= 0 && (is_tighter(&b, &least) || first)) {
                        least = b;
                        if (b.quota_usec != QUOTA_UNLIMITED) {
                                r = free_and_strdup(&found, level);
                                if (r < 0)
                                        return r;
                        }
                }
                slash = strrchr(level, '/');
                if (!slash || streq(level, "/"))
                        break;
                slash[slash == level] = 0;
        }
        *ret = least;
        if (ret_path)
                *ret_path = TAKE_PTR(found);
        return 0;
}
