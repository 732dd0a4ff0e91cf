/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every parser of kernel text on the same bytes: whatever they are, a failure touches nothing, a success keeps its promises, and the same numbers written the
 * kernel's way are read again. */

#include <inttypes.h>

#include "daemon/cgtext.h"
#include "tests/fuzz/fuzz.h"

static int count(pid_t tid, void *userdata) {
        must(tid >= 0);
        (*(size_t *) userdata)++;
        return 0;
}

/* All bytes of *value are still 0x5a. */
static bool untouched(const void *value, size_t size) {
        for (size_t i = 0; i < size; i++)
                if (((const unsigned char *) value)[i] != 0x5a)
                        return false;
        return true;
}

static void check_stat(const char *text, size_t size) {
        CpuStat s, again;
        char buffer[1024];
        size_t n;

        memset(&s, 0x5a, sizeof(s));
        if (cpu_stat_parse(text, size, &s) < 0) {
                must(untouched(&s, sizeof(s)));
                return;
        }
        must(s.has_bandwidth || (s.nr_periods == 0 && s.nr_throttled == 0 && s.throttled_usec == 0));
        must(s.has_bursts || (s.nr_bursts == 0 && s.burst_usec == 0));
        must(s.has_force_idle || s.force_idle_usec == 0);
        must(s.has_loss || (s.parked_usec == 0 && s.lost_usec == 0));
        n = (size_t) snprintf(buffer, sizeof(buffer), "usage_usec %" PRIu64 "\n", s.usage_usec);
        if (s.has_force_idle)
                n += (size_t) snprintf(buffer + n, sizeof(buffer) - n, "core_sched.force_idle_usec %" PRIu64 "\n", s.force_idle_usec);
        if (s.has_bandwidth)
                n += (size_t) snprintf(buffer + n, sizeof(buffer) - n, "nr_periods %" PRIu64 "\nnr_throttled %" PRIu64 "\nthrottled_usec %" PRIu64 "\n",
                                       s.nr_periods, s.nr_throttled, s.throttled_usec);
        if (s.has_bursts)
                n += (size_t) snprintf(buffer + n, sizeof(buffer) - n, "nr_bursts %" PRIu64 "\nburst_usec %" PRIu64 "\n", s.nr_bursts, s.burst_usec);
        if (s.has_loss)
                n += (size_t) snprintf(buffer + n, sizeof(buffer) - n, "bw_parked_usec %" PRIu64 "\nbw_lost_usec %" PRIu64 "\n", s.parked_usec, s.lost_usec);
        must(cpu_stat_parse(buffer, n, &again) == 0);
        must(again.usage_usec == s.usage_usec && again.nr_periods == s.nr_periods && again.nr_throttled == s.nr_throttled &&
             again.throttled_usec == s.throttled_usec && again.nr_bursts == s.nr_bursts && again.burst_usec == s.burst_usec &&
             again.force_idle_usec == s.force_idle_usec && again.parked_usec == s.parked_usec && again.lost_usec == s.lost_usec);
        must(again.has_bandwidth == s.has_bandwidth && again.has_bursts == s.has_bursts && again.has_force_idle == s.has_force_idle && again.has_loss == s.has_loss);
}

static void check_pressure(const char *text, size_t size) {
        CpuPressure p, again;
        char buffer[512];
        size_t n;

        memset(&p, 0x5a, sizeof(p));
        if (cpu_pressure_parse(text, size, &p) < 0) {
                must(untouched(&p, sizeof(p)));
                return;
        }
        must(p.has_full || (p.full_total_usec == 0 && p.full_avg10_permyriad == 0));
        n = (size_t) snprintf(buffer, sizeof(buffer), "some avg10=%u.%02u avg60=0.00 avg300=0.00 total=%" PRIu64 "\n", p.some_avg10_permyriad / 100,
                              p.some_avg10_permyriad % 100, p.some_total_usec);
        if (p.has_full)
                n += (size_t) snprintf(buffer + n, sizeof(buffer) - n, "full avg10=%u.%02u avg60=0.00 avg300=0.00 total=%" PRIu64 "\n",
                                       p.full_avg10_permyriad / 100, p.full_avg10_permyriad % 100, p.full_total_usec);
        must(cpu_pressure_parse(buffer, n, &again) == 0);
        must(again.some_total_usec == p.some_total_usec && again.some_avg10_permyriad == p.some_avg10_permyriad && again.has_full == p.has_full &&
             again.full_total_usec == p.full_total_usec && again.full_avg10_permyriad == p.full_avg10_permyriad);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *text = (const char *) data;
        uint64_t a = 77, b = 77;
        int64_t s = 77;
        size_t n = 0;
        int r;

        check_stat(text, size);
        check_pressure(text, size);

        r = cpu_max_parse(text, size, &a, &b);
        must(r == 0 ? b > 0 : r == -EBADMSG && a == 77 && b == 77);

        a = 77;
        r = number_parse(text, size, &a);
        must(r == 0 || (r == -EBADMSG && a == 77));
        if (signed_parse(text, size, &s) < 0)
                must(s == 77);
        else if (r == 0)
                must(s >= 0 && (uint64_t) s == a);

        r = tids_parse(text, size, count, &n);
        must((r == 0 || r == -EBADMSG) && n <= size);

        r = populated_parse(text, size);
        must(r == 0 || r == 1 || r == -EBADMSG);
        must(!word_list_contains(text, size, "cpu") || size >= 3);
        return 0;
}
