/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every change of quota, period and burst against a kernel that keeps the real one's rules (tg_set_cfs_bandwidth), with the fault that old ones have, and with
 * others who write, refuse or take the group away in between. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>

#include "daemon/bandwidth-ops.h"
#include "tests/unit/files.h"

typedef struct Kernel {
        Bandwidth b;
        bool no_burst;            /* before 5.14 */
        bool divides_burst;       /* before 49217ea147df */
        int gone_after;           /* calls until every call is ENODEV; 0 never */
        unsigned n_calls, n_writes, n_refused;
        char log[16][80];         /* what was written */
        /* Called before the write of that number (1, 2, ...). */
        unsigned meddle_at;
        void (*meddle)(struct Kernel *k);
        void (*after)(struct Kernel *k, const char *file); /* after each write */
        int refuse_at, refuse_error;
        bool rescales;            /* as the period timer does: what is read back is 1.15 times what was written */
} Kernel;

static bool is_gone(Kernel *k) {
        return k->gone_after > 0 && ++k->n_calls > (unsigned) k->gone_after;
}

static ssize_t kernel_read(const char *file, char *buffer, size_t size, void *userdata) {
        Kernel *k = userdata;

        if (is_gone(k))
                return -ENODEV;
        if (streq(file, "cpu.max.burst"))
                return k->no_burst ? -ENOENT : snprintf(buffer, size, "%" PRIu64 "\n", k->b.burst_usec);
        assert_string_equal(file, "cpu.max");
        if (k->b.quota_usec == QUOTA_UNLIMITED)
                return snprintf(buffer, size, "max %" PRIu64 "\n", k->b.period_usec);
        return snprintf(buffer, size, "%" PRIu64 " %" PRIu64 "\n", k->b.quota_usec, k->b.period_usec);
}

static int kernel_set(Kernel *k, Bandwidth b) {
        const uint64_t most = (UINT64_C(1) << 44) - 1; /* MAX_BW */

        if (b.quota_usec < 1000 || b.period_usec < 1000 || b.period_usec > 1000000)
                return -EINVAL;
        if (b.quota_usec != QUOTA_UNLIMITED && (b.quota_usec > most || b.burst_usec > b.quota_usec || b.burst_usec + b.quota_usec > most))
                return -EINVAL;
        k->b = b;
        return 0;
}

static int kernel_write(const char *file, const char *text, void *userdata) {
        Kernel *k = userdata;
        Bandwidth b;
        int r;

        if (is_gone(k))
                return -ENODEV;
        assert_true(k->n_writes < ELEMENTSOF(k->log));
        (void) snprintf(k->log[k->n_writes++], sizeof(k->log[0]), "%s=%s", file, text);
        if (k->meddle && k->n_writes == k->meddle_at)
                k->meddle(k);
        if (k->refuse_at > 0 && k->n_writes == (unsigned) k->refuse_at) {
                k->n_refused++;
                return k->refuse_error;
        }
        b = k->b;
        if (streq(file, "cpu.max.burst")) {
                assert_false(k->no_burst);
                assert_int_equal(number_parse(text, strlen(text), &b.burst_usec), 0);
        } else {
                assert_string_equal(file, "cpu.max");
                assert_int_equal(cpu_max_parse(text, strlen(text), &b.quota_usec, &b.period_usec), 0);
                if (k->divides_burst)
                        b.burst_usec /= 1000;
        }
        r = kernel_set(k, b);
        if (r < 0)
                k->n_refused++;
        else if (k->rescales && streq(file, "cpu.max"))
                k->b.quota_usec = b.quota_usec * 115 / 100, k->b.period_usec = b.period_usec * 115 / 100;
        if (k->after)
                k->after(k, file);
        return r;
}

#define OPS(k) (&(BandwidthOps) { kernel_read, kernel_write, (k) })

static void assert_bandwidth(const Bandwidth *a, uint64_t quota, uint64_t period, uint64_t burst) {
        assert_int_equal(a->quota_usec, quota);
        assert_int_equal(a->period_usec, period);
        assert_int_equal(a->burst_usec, burst);
}

/* From everything to everything: never refused, always exact, no needless write. */
static void test_every_order(void **state) {
        static const uint64_t quotas[] = { 1000, 20000, 50000, 100000, 400000, QUOTA_UNLIMITED }, periods[] = { 1000, 100000, 1000000 };
        static const uint64_t bursts[] = { 0, 1, 1000, 20000, 50000, 100000, 400000, UINT64_C(9000000000) };
        Bandwidth all[256];
        size_t n = 0;

        for (size_t q = 0; q < ELEMENTSOF(quotas); q++)
                for (size_t p = 0; p < ELEMENTSOF(periods); p++)
                        for (size_t b = 0; b < ELEMENTSOF(bursts); b++)
                                if (quotas[q] == QUOTA_UNLIMITED || bursts[b] <= quotas[q])
                                        all[n++] = (Bandwidth) { quotas[q], periods[p], bursts[b] };
        assert_true(n > 80);
        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < n; j++)
                        for (int divides = 0; divides < 2; divides++) {
                                Kernel k = { .b = all[i], .divides_burst = divides };
                                unsigned least = (all[i].burst_usec != all[j].burst_usec) +
                                                 (all[i].quota_usec != all[j].quota_usec || all[i].period_usec != all[j].period_usec);
                                Bandwidth observed = {};
                                int r = bandwidth_write_with(OPS(&k), &all[j], &observed);

                                if (r < 0 || k.n_refused > 0 || !bandwidth_equal(&k.b, &all[j]))
                                        fail_msg("%" PRIu64 " %" PRIu64 " %" PRIu64 " -> %" PRIu64 " %" PRIu64 " %" PRIu64 ": %d", all[i].quota_usec,
                                                 all[i].period_usec, all[i].burst_usec, all[j].quota_usec, all[j].period_usec, all[j].burst_usec, r);
                                assert_true(bandwidth_equal(&observed, &all[j]));
                                assert_int_equal(r, k.n_writes);
                                if (divides)
                                        assert_true(k.n_writes <= least + 1);
                                else
                                        assert_int_equal(k.n_writes, least);
                        }
}

static void test_order(void **state) {
        static const struct {
                Bandwidth have, want;
                const char *log[3];
        } cases[] = {
                /* lowering: burst first */
                { { 100000, 100000, 50000 }, { 20000, 100000, 10000 }, { "cpu.max.burst=10000", "cpu.max=20000 100000" } },
                /* raising: quota first */
                { { 20000, 100000, 10000 }, { 100000, 100000, 50000 }, { "cpu.max=100000 100000", "cpu.max.burst=50000" } },
                /* no limit: the burst goes first */
                { { 20000, 100000, 10000 }, { QUOTA_UNLIMITED, 100000, 0 }, { "cpu.max.burst=0", "cpu.max=max 100000" } },
                /* from "max" with a burst that would block every quota */
                { { QUOTA_UNLIMITED, 100000, 900000 }, { 20000, 50000, 5000 }, { "cpu.max.burst=5000", "cpu.max=20000 50000" } },
                { { 20000, 100000, 10000 }, { 20000, 50000, 10000 }, { "cpu.max=20000 50000" } },
                { { 20000, 100000, 10000 }, { 20000, 100000, 20000 }, { "cpu.max.burst=20000" } },
                { { 20000, 100000, 10000 }, { 20000, 100000, 10000 }, {} },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Kernel k = { .b = cases[i].have };
                BandwidthStep steps[4];
                size_t n = bandwidth_plan_steps(&cases[i].have, &cases[i].want, true, steps);

                assert_int_equal(bandwidth_write_with(OPS(&k), &cases[i].want, NULL), n);
                assert_int_equal(k.n_writes, n);
                for (size_t j = 0; j < n; j++) {
                        char step[96];

                        assert_non_null(cases[i].log[j]);
                        assert_string_equal(k.log[j], cases[i].log[j]);
                        (void) snprintf(step, sizeof(step), "%s=%s", steps[j].file, steps[j].text);
                        assert_string_equal(step, cases[i].log[j]);
                }
                assert_true(n == 3 || !cases[i].log[n]);
        }
}

static void test_impossible(void **state) {
        static const Bandwidth wants[] = {
                { 999, 100000, 0 }, { 0, 100000, 0 }, { 20000, 999, 0 }, { 20000, 1000001, 0 }, { 20000, 0, 0 }, { 20000, 100000, 20001 },
                { QUOTA_UNLIMITED, 0, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(wants); i++) {
                Kernel k = { .b = { 50000, 100000, 25000 } };
                Bandwidth observed = {};

                assert_int_equal(bandwidth_write_with(OPS(&k), &wants[i], &observed), -EINVAL);
                assert_int_equal(k.n_writes, 0);
                assert_bandwidth(&observed, 50000, 100000, 25000);
        }
}

/* What only the kernel knows to be wrong is refused there, and everything is as before. */
static void test_refused(void **state) {
        const uint64_t huge = UINT64_C(1) << 44;
        Kernel k = { .b = { 50000, 100000, 25000 } };
        Bandwidth observed = {};

        assert_int_equal(bandwidth_write_with(OPS(&k), &(Bandwidth) { huge, 100000, 10 }, &observed), -EINVAL);
        assert_int_equal(k.n_refused, 1);
        assert_bandwidth(&k.b, 50000, 100000, 25000);
        assert_true(bandwidth_equal(&observed, &k.b));

        /* On a kernel that divides the burst, too. */
        k = (Kernel) { .b = { 50000, 100000, 25000 }, .divides_burst = true, .refuse_at = 2, .refuse_error = -EPERM };
        assert_int_equal(bandwidth_write_with(OPS(&k), &(Bandwidth) { 60000, 100000, 30000 }, &observed), -EPERM);
        assert_bandwidth(&k.b, 50000, 100000, 25000);
        assert_true(bandwidth_equal(&observed, &k.b));
}

static void set_quota_foreign(Kernel *k) {
        assert_int_equal(kernel_set(k, (Bandwidth) { 30000, 100000, 0 }), 0);
}

static void raise_burst_foreign(Kernel *k) {
        assert_int_equal(kernel_set(k, (Bandwidth) { 100000, 100000, 90000 }), 0);
}

static void refuse_and_meddle(Kernel *k) {
        assert_int_equal(kernel_set(k, (Bandwidth) { 70000, 50000, 7 }), 0);
}

static void test_foreign_writer(void **state) {
        Bandwidth observed = {};
        Kernel k;

        /* Somebody sets another quota just before our burst: seen, and set again. */
        k = (Kernel) { .b = { 20000, 100000, 0 }, .meddle_at = 2, .meddle = set_quota_foreign };
        assert_int_equal(bandwidth_write_with(OPS(&k), &(Bandwidth) { 50000, 100000, 20000 }, &observed), 3);
        assert_bandwidth(&k.b, 50000, 100000, 20000);

        /* Somebody raises the burst so that our lower quota is refused: from there the way begins with the burst. */
        k = (Kernel) { .b = { 100000, 100000, 10000 }, .meddle_at = 1, .meddle = raise_burst_foreign };
        assert_int_equal(bandwidth_write_with(OPS(&k), &(Bandwidth) { 20000, 100000, 10000 }, &observed), 2);
        assert_int_equal(k.n_refused, 1);
        assert_bandwidth(&k.b, 20000, 100000, 10000);
        assert_true(bandwidth_equal(&observed, &k.b));

        /* Refused for another reason while somebody else wrote: what is there now is theirs and stays. */
        k = (Kernel) { .b = { 20000, 100000, 0 }, .refuse_at = 2, .refuse_error = -EPERM, .meddle_at = 2, .meddle = refuse_and_meddle };
        assert_int_equal(bandwidth_write_with(OPS(&k), &(Bandwidth) { 50000, 100000, 20000 }, &observed), -EPERM);
        assert_bandwidth(&k.b, 70000, 50000, 7);
        assert_true(bandwidth_equal(&observed, &k.b));
}

static void raise_quota_always(Kernel *k, const char *file) {
        k->b.quota_usec += 1000;
}

static void other_file_always(Kernel *k, const char *file) {
        if (streq(file, "cpu.max"))
                k->b.burst_usec = 1;
        else
                k->b.quota_usec = 30000;
}

static void test_never_ends_wrong(void **state) {
        Bandwidth observed = {};
        Kernel k;

        /* The kernel shows something else than what it took. */
        k = (Kernel) { .b = { QUOTA_UNLIMITED, 100000, 0 }, .rescales = true };
        assert_int_equal(bandwidth_write_with(OPS(&k), &(Bandwidth) { 1000, 20000, 0 }, &observed), -ESTALE);
        assert_bandwidth(&observed, 1150, 23000, 0);
        assert_int_equal(k.n_writes, 1);

        /* Writers who never stop: bounded. */
        k = (Kernel) { .b = { 20000, 100000, 0 }, .after = raise_quota_always };
        assert_int_equal(bandwidth_write_with(OPS(&k), &(Bandwidth) { 90000, 100000, 0 }, &observed), -ESTALE);
        assert_int_equal(k.n_writes, 1);
        assert_bandwidth(&observed, 91000, 100000, 0);
        k = (Kernel) { .b = { 20000, 100000, 0 }, .after = other_file_always };
        assert_int_equal(bandwidth_write_with(OPS(&k), &(Bandwidth) { 90000, 100000, 200 }, &observed), -ESTALE);
        assert_int_equal(k.n_writes, 4);
        assert_bandwidth(&observed, 30000, 100000, 200);
        k = (Kernel) { .b = { 20000, 100000, 0 }, .after = other_file_always };
        assert_int_equal(bandwidth_write_burst_with(OPS(&k), 500, &observed), 1);
        assert_bandwidth(&observed, 30000, 100000, 500);
}

static void test_vanishing(void **state) {
        /* Whichever call finds the group gone, that is the answer; nothing is tried after it. */
        for (int after = 1; after <= 12; after++) {
                Kernel k = { .b = { 20000, 100000, 10000 }, .gone_after = after };
                int r = bandwidth_write_with(OPS(&k), &(Bandwidth) { 50000, 100000, 20000 }, NULL);

                /* two reads, then a write and two reads twice */
                assert_int_equal(r, after < 8 ? -ENODEV : 2);
                assert_true(k.n_calls <= (unsigned) after + 1);
        }
}

static void test_no_burst_file(void **state) {
        Kernel k = { .b = { 20000, 100000, 0 }, .no_burst = true };
        bool has_burst = true;
        Bandwidth b;

        assert_int_equal(bandwidth_read_with(OPS(&k), &b, &has_burst), 0);
        assert_false(has_burst);
        assert_bandwidth(&b, 20000, 100000, 0);
        assert_int_equal(bandwidth_write_with(OPS(&k), &(Bandwidth) { 50000, 100000, 0 }, NULL), 1);
        assert_int_equal(bandwidth_write_with(OPS(&k), &(Bandwidth) { 60000, 100000, 1 }, NULL), -EOPNOTSUPP);
        assert_bandwidth(&k.b, 50000, 100000, 0);
        assert_int_equal(bandwidth_write_burst_with(OPS(&k), 0, NULL), 0);
        assert_int_equal(bandwidth_write_burst_with(OPS(&k), 1, NULL), -EOPNOTSUPP);
        assert_int_equal(k.n_writes, 1);
}

static void test_burst_only(void **state) {
        Bandwidth observed = {};
        Kernel k = { .b = { 50000, 100000, 0 } };

        assert_int_equal(bandwidth_write_burst_with(OPS(&k), 50000, &observed), 1);
        assert_bandwidth(&observed, 50000, 100000, 50000);
        assert_int_equal(bandwidth_write_burst_with(OPS(&k), 50000, &observed), 0);
        assert_int_equal(bandwidth_write_burst_with(OPS(&k), 50001, &observed), -EINVAL);
        assert_bandwidth(&observed, 50000, 100000, 50000);
        assert_int_equal(k.n_writes, 1);
        /* Never the quota: whoever changes it meanwhile keeps it. */
        k = (Kernel) { .b = { 50000, 100000, 0 }, .meddle_at = 1, .meddle = set_quota_foreign };
        assert_int_equal(bandwidth_write_burst_with(OPS(&k), 40000, &observed), -EINVAL);
        assert_bandwidth(&k.b, 30000, 100000, 0);
        assert_true(bandwidth_equal(&observed, &k.b));
        k = (Kernel) { .b = { QUOTA_UNLIMITED, 100000, 70000 } };
        assert_int_equal(bandwidth_write_burst_with(OPS(&k), 0, NULL), 1);
        assert_bandwidth(&k.b, QUOTA_UNLIMITED, 100000, 0);
}

/* ---- on directories ---- */

static void test_files(void **state) {
        _cleanup_(cgroup_root_close) CgroupRoot root = { .fd = -1 };
        char directory[64];
        Bandwidth b;
        bool has_burst;
        char *path;
        int fd;

        temporary_directory(directory);
        put_file(directory, "cgroup.controllers", "cpu\n");
        put_file(directory, "a.slice/cpu.max", "150000 100000\n");
        put_file(directory, "a.slice/cpu.max.burst", "100\n");
        put_file(directory, "a.slice/b.service/cpu.max", "60000 50000\n");
        put_file(directory, "a.slice/b.service/cpu.max.burst", "7\n");
        put_file(directory, "a.slice/b.service/worker/cpu.max", "max 20000\n");
        put_file(directory, "a.slice/off/cpu.stat", "usage_usec 1\n");
        put_file(directory, "free/cpu.max", "max 100000\n");
        put_file(directory, "a.slice/same/cpu.max", "75000 50000\n");
        assert_int_equal(cgroup_root_open_at(directory, &root), 0);

        fd = cgroup_open(&root, "/a.slice/b.service");
        assert_true(fd >= 0);
        assert_int_equal(bandwidth_read(fd, &b, &has_burst), 0);
        assert_true(has_burst);
        assert_bandwidth(&b, 60000, 50000, 7);
        assert_int_equal(bandwidth_write(fd, &(Bandwidth) { 60000, 50000, 7 }, NULL), 0);
        close(fd);
        fd = cgroup_open(&root, "/a.slice/off");
        assert_int_equal(bandwidth_read(fd, &b, NULL), -ENOENT);
        assert_int_equal(bandwidth_write(fd, &(Bandwidth) { 60000, 50000, 7 }, NULL), -ENOENT);
        close(fd);

        /* 60/50 is less than 150/100, though its quota per CPU second is written with other numbers. */
        assert_int_equal(bandwidth_effective(&root, "/a.slice/b.service/worker", &b, &path), 0);
        assert_bandwidth(&b, 60000, 50000, 7);
        assert_string_equal(path, "/a.slice/b.service");
        free(path);
        assert_int_equal(bandwidth_effective(&root, "/a.slice/off", &b, &path), 0);
        assert_bandwidth(&b, 150000, 100000, 100);
        assert_string_equal(path, "/a.slice");
        free(path);
        /* Equal ratios: the nearest limits. */
        assert_int_equal(bandwidth_effective(&root, "/a.slice/same", &b, &path), 0);
        assert_string_equal(path, "/a.slice/same");
        free(path);
        path = (char *) "x";
        assert_int_equal(bandwidth_effective(&root, "/free", &b, &path), 0);
        assert_bandwidth(&b, QUOTA_UNLIMITED, 100000, 0);
        assert_null(path);
        assert_int_equal(bandwidth_effective(&root, "/", &b, NULL), 0);
        assert_bandwidth(&b, QUOTA_UNLIMITED, 100000, 0);
        assert_int_equal(bandwidth_effective(&root, "/gone", &b, NULL), -ENOENT);
        assert_int_equal(bandwidth_effective(&root, "/../etc", &b, NULL), -EINVAL);
        put_file(directory, "a.slice/cpu.max", "what\n");
        assert_int_equal(bandwidth_effective(&root, "/a.slice/off", &b, NULL), -EBADMSG);
        temporary_directory_remove(directory);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_order), cmocka_unit_test(test_order),      cmocka_unit_test(test_impossible),
                cmocka_unit_test(test_refused),     cmocka_unit_test(test_foreign_writer), cmocka_unit_test(test_never_ends_wrong),
                cmocka_unit_test(test_vanishing),   cmocka_unit_test(test_no_burst_file),  cmocka_unit_test(test_burst_only),
                cmocka_unit_test(test_files),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
