/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Undo, from the ledger alone: the same code serves a stop, an unassign and `cpuclassd --restore` after a crash.
 *
 * A value goes back only if it is still the one that we wrote; what somebody else has changed since is left alone. Records of what has been put back (or is no longer
 * ours) are dropped. */

#include "daemon/knob-threads.h"

#include <fcntl.h>

typedef struct Collected {
        LedgerRecord *items;        /* shallow copies: strings are copies too */
        size_t n, capacity;
        bool (*wanted)(const LedgerRecord *r, void *userdata);
        void *userdata;
} Collected;

static void record_clear(LedgerRecord *r) {
        free(r->key);
        free(r->original_text);
        free(r->written_text);
        free(r->dropin_path);
        free(r->period_original_text);
        free(r->period_written_text);
        free(r->period_dropin_path);
}

static int collect(const LedgerRecord *r, void *userdata) {
        Collected *c = userdata;
        LedgerRecord copy = *r;

        if (!c->wanted(r, c->userdata))
                return 0;
        if (GROW_ARRAY(c->items, c->n, c->capacity) < 0)
                return -ENOMEM;
        copy.key = r->key ? strdup(r->key) : NULL;
        copy.original_text = r->original_text ? strdup(r->original_text) : NULL;
        copy.written_text = r->written_text ? strdup(r->written_text) : NULL;
        copy.dropin_path = r->dropin_path ? strdup(r->dropin_path) : NULL;
        copy.period_original_text = r->period_original_text ? strdup(r->period_original_text) : NULL;
        copy.period_written_text = r->period_written_text ? strdup(r->period_written_text) : NULL;
        copy.period_dropin_path = r->period_dropin_path ? strdup(r->period_dropin_path) : NULL;
        c->items[c->n++] = copy;
        return 0;
}

/* Opens the directory that a record is about; -ESTALE when another group has its name now. */
static int open_recorded(const CgroupRoot *root, const LedgerRecord *r) {
        _cleanup_close_ int fd = cgroup_open(root, r->key);
        uint64_t inode;

        if (fd < 0)
                return fd;
        if (r->inode && (cgroup_inode(fd, &inode) < 0 || inode != r->inode))
                return -ESTALE;
        return TAKE_FD(fd);
}

static int restore_bandwidth(const CgroupRoot *root, const LedgerRecord *r) {
        _cleanup_close_ int fd = open_recorded(root, r);
        Bandwidth live, want;
        bool quota_ours, burst_ours;
        int n;

        if (fd < 0)
                return 0;                    /* gone: nothing to put back */
        n = bandwidth_read(fd, &live, NULL);
        if (n < 0)
                return n == -ENOENT || n == -ENODEV ? 0 : n;
        want = live;
        quota_ours = (live.quota_usec == r->written.quota_usec && live.period_usec == r->written.period_usec) ||
                     (r->previous.period_usec && live.quota_usec == r->previous.quota_usec && live.period_usec == r->previous.period_usec);
        if (!quota_ours && live.quota_usec != QUOTA_UNLIMITED && r->written.quota_usec != QUOTA_UNLIMITED && live.period_usec > r->written.period_usec &&
            r->written.period_usec > 0) {
                /* The kernel stretches a short period under load, quota and burst with it. */
                uint64_t stretched = (uint64_t) ((__uint128_t) r->written.quota_usec * live.period_usec / r->written.period_usec);

                quota_ours = live.quota_usec + stretched / 100 + 1 >= stretched && live.quota_usec <= stretched + stretched / 100 + 1;
        }
        burst_ours = live.burst_usec == r->written.burst_usec || (r->previous.period_usec && live.burst_usec == r->previous.burst_usec) || (quota_ours && live.period_usec != r->written.period_usec);
        if (quota_ours) {
                want.quota_usec = r->original.quota_usec;
                want.period_usec = r->original.period_usec;
        }
        if (burst_ours)
                want.burst_usec = r->original.burst_usec;
        if (want.quota_usec == QUOTA_UNLIMITED)
                want.burst_usec = burst_ours ? MIN_OF(want.burst_usec, r->original.burst_usec) : want.burst_usec;
        else
                want.burst_usec = MIN_OF(want.burst_usec, want.quota_usec);
        if (!quota_ours && !burst_ours)
                return bandwidth_equal(&live, &r->original) ? 0 : -EBUSY;
        if (bandwidth_equal(&live, &want))
                return 0;
        n = bandwidth_write(fd, &want, NULL);
        return n < 0 ? (n == -ENODEV ? 0 : n) : 1;
}

static int restore_number_file(const CgroupRoot *root, const LedgerRecord *r, const char *file) {
        _cleanup_close_ int fd = open_recorded(root, r);
        char text[32];
        int64_t live;
        ssize_t n;
        int k;

        if (fd < 0)
                return 0;
        n = cgroup_read_file(fd, file, text, sizeof(text));
        if (n < 0 || signed_parse(text, (size_t) n, &live) < 0)
                return 0;
        if (live == r->original_number)
                return 0;
        if (live != r->written_number && (r->previous_number == 0 || live != r->previous_number))
                return -EBUSY;
        (void) snprintf(text, sizeof(text), "%" PRId64, r->original_number);
        k = cgroup_write_file(fd, file, text);
        return k < 0 ? k : 1;
}

static int restore_slice(const LedgerRecord *r, uint64_t base_slice_nsec) {
        uint64_t start, slice;
        bool takes;
        int n;

        if (thread_start_time(r->tid, &start) < 0 || start != r->start_ticks)
                return 0;
        n = slice_read(NULL, r->tid, base_slice_nsec, &slice, &takes);
        if (n < 0 || slice == (uint64_t) r->original_number)
                return 0;
        if (!takes || (slice != (uint64_t) r->written_number && (r->previous_number == 0 || slice != (uint64_t) r->previous_number)))
                return -EBUSY;
        n = slice_apply(NULL, r->tid, (uint64_t) r->original_number, base_slice_nsec, NULL, NULL);
        return n == -ESRCH ? 0 : n < 0 ? n : 1;
}

static int restore_cookie(const LedgerRecord *r) {
        uint64_t start, id;
        int n;

        if (thread_start_time(r->tid, &start) < 0 || start != r->start_ticks || cookie_read(r->tid, &id) < 0 || id == 0)
                return 0;
        if (id != (uint64_t) r->written_number)
                return -EBUSY;
        n = cookie_clear(r->tid, COOKIE_SCOPE_THREAD);
        return n == -ESRCH ? 0 : n < 0 ? n : 1;
}

/* Threads that were born in the group after the last walk carry our value by inheritance, without a record. */
static size_t restore_unrecorded(const CgroupRoot *root, const LedgerRecord *r, uint64_t base_slice_nsec) {
        _cleanup_close_ int fd = cgroup_open(root, r->key);
        _cleanup_free_ pid_t *tids = NULL;
        size_t n = 0, restored = 0;

        if (fd < 0)
                return 0;
        for (unsigned round = 0; round < 3; round++) {
                size_t before = restored;

                free(TAKE_PTR(tids));
                if (group_threads(fd, &tids, &n, NULL) < 0)
                        return restored;
                for (size_t i = 0; i < n; i++) {
                        uint64_t value;
                        bool takes;

                        if (r->kind == LEDGER_THREAD_SLICE) {
                                if (r->written_number != 0 && slice_read(NULL, tids[i], base_slice_nsec, &value, &takes) >= 0 && takes &&
                                    value == (uint64_t) r->written_number && slice_apply(NULL, tids[i], 0, base_slice_nsec, NULL, NULL) >= 0)
                                        restored++;
                        } else if (cookie_read(tids[i], &value) >= 0 && value != 0 && value == (uint64_t) r->written_number &&
                                   cookie_clear(tids[i], COOKIE_SCOPE_PROCESS) >= 0)
                                restored++;
                }
                if (restored == before)
                        break;               /* a fork may have slipped between list and write: look again until nothing is found */
        }
        return restored;
}

static int undo_property(const LedgerRecord *r, const char *property, const char *original) {
        _cleanup_free_ char *path = NULL, *content = NULL;
        int k = units_read_dropin(r->key, property, &path, &content);

        if (k == -ENOENT)
                return 0;
        if (k < 0)
                return k;
        if (!record_owns_dropin(r, property, content))
                return original && streq(content, original) ? 0 : -EBUSY;
        return units_undo_dropin(path, content, original);
}

/* A unit's property: our drop-ins go, or what stood there before comes back. The reload that follows makes systemd see it. */
static int restore_unit(const LedgerRecord *r) {
        int k, period;

        if (r->kind == LEDGER_UNIT_WEIGHT)
                return undo_property(r, "CPUWeight", r->original_text);
        k = undo_property(r, "CPUQuota", r->original_text);
        period = undo_property(r, "CPUQuotaPeriodSec", r->period_original_text);
        if (k < 0 && k != -EBUSY)
                return k;
        /* Where only one of the two is still ours, a reload is due for that one all the same. */
        return k > 0 || period > 0 ? MAX_OF(k, period) : k;
}

static int restore_switch(const LedgerRecord *r) {
        _cleanup_close_ int fd = -1;
        char text[256];
        ssize_t n;

        if (!r->dropin_path || !r->original_text || !r->written_text)
                return 0;
        fd = open(r->dropin_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        n = pread(fd, text, sizeof(text) - 1, 0);
        if (n < 0)
                return -errno;
        while (n > 0 && text[n - 1] == '\n')
                n--;
        text[n] = 0;
        if (streq(text, r->original_text))
                return 0;
        if (!streq(text, r->written_text))
                return -EBUSY;
        n = (ssize_t) strlen(r->original_text);
        return pwrite(fd, r->original_text, (size_t) n, 0) == n ? 1 : -errno;
}

void restore_records(Ledger *ledger, const CgroupRoot *root, uint64_t base_slice_nsec, bool (*wanted)(const LedgerRecord *r, void *userdata), void *userdata,
                     RestoreResult *ret) {
        Collected c = { .wanted = wanted, .userdata = userdata };
        size_t n_drop = 0;

        (void) ledger_for_each(ledger, _LEDGER_KIND_MAX, collect, &c);
        for (size_t i = 0; i < c.n; i++) {
                LedgerRecord *r = &c.items[i];
                int k = 0;

                switch (r->kind) {
                case LEDGER_BANDWIDTH:
                        k = restore_bandwidth(root, r);
                        break;
                case LEDGER_LATENCY_FILE:
                        k = restore_number_file(root, r, "cpu.latency.nice");
                        break;
                case LEDGER_CORE_TAG:
                        k = restore_number_file(root, r, "cpu.core_tag");
                        break;
                case LEDGER_THREAD_SLICE:
                        k = restore_slice(r, base_slice_nsec);
                        break;
                case LEDGER_THREAD_COOKIE:
                        k = restore_cookie(r);
                        break;
                case LEDGER_UNIT_QUOTA:
                case LEDGER_UNIT_WEIGHT:
                        k = restore_unit(r);
                        if (k > 0)
                                ret->reload_due = true;
                        break;
                case LEDGER_SWITCH:
                        k = restore_switch(r);
                        break;
                default:
                        break;
                }
                if (k > 0)
                        ret->n_restored++;
                else if (k == -EBUSY)
                        ret->n_left++;
                else if (k < 0) {
                        /* It stays on record: the next restore tries again. */
                        ret->n_failed++;
                        log_warning("Putting back %s of %s failed: %s", ledger_kind_to_string(r->kind), r->key ? r->key : "a thread", strerror(-k));
                        continue;
                }
                if (r->kind == LEDGER_THREAD_SLICE || r->kind == LEDGER_THREAD_COOKIE) {
                        bool first = true;

                        /* Backwards: the records of a group mostly stand together. */
                        for (size_t j = i; j-- > 0 && first;)
                                first = !(c.items[j].kind == r->kind && c.items[j].written_number == r->written_number && streq_null(c.items[j].key, r->key));
                        if (first && r->key)
                                ret->n_restored += restore_unrecorded(root, r, base_slice_nsec);
                }
                if (n_drop != i) {
                        LedgerRecord swap = c.items[n_drop];

                        c.items[n_drop] = c.items[i];
                        c.items[i] = swap;
                }
                n_drop++;
        }
        if (n_drop > 0)
                (void) ledger_drop_many(ledger, c.items, n_drop);
        for (size_t i = 0; i < c.n; i++)
                record_clear(&c.items[i]);
        free(c.items);
}
