/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finding out what this host can do. Every probe is an attempt: read the file, make the call on a thread of its own, look at what the kernel made of it. A version is
 * never asked, distributions carry patches.
 *
 * A sched_ext scheduler turns what works into what may not be enforced, so it is looked at last and lowers the facts that it touches. */

#include <fcntl.h>
#include <stdarg.h>

#include "daemon/cookie.h"
#include "daemon/host.h"
#include "daemon/slice.h"

static void set_fact(HostFacts *h, FactId id, FactState state, const char *format, ...) __attribute__((format(printf, 4, 5)));
static void set_fact(HostFacts *h, FactId id, FactState state, const char *format, ...) {
        HostFact *f = &h->facts[id];
        va_list ap;

        f->state = state;
        va_start(ap, format);
        (void) vsnprintf(f->reason, sizeof(f->reason), format, ap);
        va_end(ap);
}
/* A fact that holds needs no reason. */
static void set_yes(HostFacts *h, FactId id) {
        h->facts[id] = (HostFact) { .state = FACT_YES };
}

/* Reads the beginning of a small file below sysroot without its trailing newline. Returns its length or negative errno. */
static ssize_t read_text(const char *sysroot, const char *path, char *buffer, size_t size) {
        _cleanup_close_ int fd = -1;
        char full[512];
        ssize_t n;

        if ((size_t) snprintf(full, sizeof(full), "%s%s", sysroot, path) >= sizeof(full))
                return -ENAMETOOLONG;
        fd = open(full, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        do
                n = read(fd, buffer, size - 1);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        while (n > 0 && buffer[n - 1] == '\n')
                n--;
        buffer[n] = 0;
        return n;
}

static uint64_t read_number(const char *sysroot, const char *path) {
        char text[64];
        uint64_t value;
        ssize_t n = read_text(sysroot, path, text, sizeof(text));

        return n < 0 || number_parse(text, (size_t) n, &value) < 0 ? 0 : value;
}

/* "0-3,5": how many. 0 when it is no such list. */
static uint32_t count_cpu_list(const char *p) {
        uint64_t n = 0;

        while (*p) {
                uint64_t first, last;
                char *end;

                if (*p < '0' || *p > '9')
                        return 0;
                first = last = strtoull(p, &end, 10);
                if (*end == '-') {
                        p = end + 1;
                        if (*p < '0' || *p > '9')
                                return 0;
                        last = strtoull(p, &end, 10);
                }
                if (last < first || last > 1 << 20)
                        return 0;
                n += last - first + 1;
                if (*end == ',')
                        end++;
                else if (*end)
                        return 0;
                p = end;
        }
        return (uint32_t) MIN_OF(n, (uint64_t) UINT32_MAX);
}

static void probe_numbers(const char *sysroot, HostFacts *h) {
        char text[4096];

        if (read_text(sysroot, "/sys/devices/system/cpu/online", text, sizeof(text)) > 0)
                h->n_cpus = count_cpu_list(text);
        if (h->n_cpus == 0 && !*sysroot)
                h->n_cpus = (uint32_t) MAX_OF(sysconf(_SC_NPROCESSORS_ONLN), 1L);
        h->bandwidth_slice_usec = read_number(sysroot, "/proc/sys/kernel/sched_cfs_bandwidth_slice_us");
        h->base_slice_nsec = read_number(sysroot, "/sys/kernel/debug/sched/base_slice_ns");
        (void) read_text(sysroot, "/proc/sys/kernel/osrelease", h->kernel_release, sizeof(h->kernel_release));
        (void) read_text(sysroot, "/proc/sys/kernel/random/boot_id", h->boot_id, sizeof(h->boot_id));
}

/* Why a cgroup2 mount has no cpu controller: /proc/cgroups tells where it is (name, hierarchy, groups, enabled). */
static void explain_no_cpu(const char *sysroot, const CgroupRoot *root, HostFacts *h) {
        unsigned hierarchy = 0, enabled = 1;
        bool found = false;
        char text[4096], *save = NULL;

        if (read_text(sysroot, "/proc/cgroups", text, sizeof(text)) >= 0)
                for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
                        if (sscanf(line, "cpu %u %*u %u", &hierarchy, &enabled) == 2)
                                found = true;

        if (root->hybrid || (found && hierarchy != 0))
                set_fact(h, FACT_CPU_CONTROLLER, FACT_NO, "the cpu controller is bound to a cgroup v1 hierarchy");
        else if (found && !enabled)
                set_fact(h, FACT_CPU_CONTROLLER, FACT_NO, "the cpu controller is disabled on the kernel command line");
        else
                set_fact(h, FACT_CPU_CONTROLLER, FACT_NO, "the cgroup2 mount does not offer the cpu controller");
}

typedef struct GroupProbe {
        HostFacts *h;
        bool any, with_cpu, pressure_done;
} GroupProbe;

static void probe_pressure(int dir_fd, GroupProbe *p) {
        CpuPressure pressure;
        char text[512];
        ssize_t n = cgroup_read_file(dir_fd, "cpu.pressure", text, sizeof(text));

        if (n >= 0 && cpu_pressure_parse(text, (size_t) n, &pressure) >= 0) {
                set_yes(p->h, FACT_PRESSURE);
                p->pressure_done = true;
        } else if (n == -EOPNOTSUPP)
                set_fact(p->h, FACT_PRESSURE, FACT_NO, "pressure accounting is built in but switched off");
        else if (n == -ENOENT)
                set_fact(p->h, FACT_PRESSURE, FACT_NO, "groups have no cpu.pressure file");
        else
                set_fact(p->h, FACT_PRESSURE, FACT_NO, "cpu.pressure can't be used: %s", n < 0 ? strerror((int) -n) : "unknown content");
}

static bool file_exists(int dir_fd, const char *name) {
        return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The files of one group that has the controller speak for all. */
static void probe_cpu_files(int dir_fd, HostFacts *h) {
        static const struct {
                FactId id;
                const char *file;
        } files[] = {
                { FACT_BURST, "cpu.max.burst" },
                { FACT_LATENCY_NICE_FILE, "cpu.latency.nice" },
                { FACT_CORE_TAG_FILE, "cpu.core_tag" },
        };
        char text[1024];
        CpuStat stat;
        ssize_t n;

        for (size_t i = 0; i < ELEMENTSOF(files); i++)
                if (file_exists(dir_fd, files[i].file))
                        set_yes(h, files[i].id);
                else
                        set_fact(h, files[i].id, FACT_NO, "groups have no %s file", files[i].file);

        n = cgroup_read_file(dir_fd, "cpu.stat", text, sizeof(text));
        if (n < 0 || cpu_stat_parse(text, (size_t) n, &stat) < 0)
                set_fact(h, FACT_BANDWIDTH_LOSS, FACT_UNKNOWN, "cpu.stat can't be read");
        else if (stat.has_loss)
                set_yes(h, FACT_BANDWIDTH_LOSS);
        else
                set_fact(h, FACT_BANDWIDTH_LOSS, FACT_NO, "cpu.stat has no bw_parked_usec and bw_lost_usec");
}

/* Groups of the first level are enough: the controller is on there, or nowhere below. */
static int probe_group(const char *path, int dir_fd, uint64_t inode, void *userdata) {
        GroupProbe *p = userdata;

        if (!p->pressure_done)
                probe_pressure(dir_fd, p);
        if (streq(path, "/"))
                return 0;
        p->any = true;
        if (!p->with_cpu && file_exists(dir_fd, "cpu.max")) {
                p->with_cpu = true;
                probe_cpu_files(dir_fd, p->h);
        }
        return p->with_cpu && p->pressure_done ? -ECANCELED : 1;
}

static const FactId of_cpu[] = { FACT_BURST, FACT_LATENCY_NICE_FILE, FACT_CORE_TAG_FILE, FACT_BANDWIDTH_LOSS };

static void probe_cgroups(const char *sysroot, const CgroupRoot *root, HostFacts *h) {
        GroupProbe p = { .h = h };

        if (!root) {
                set_fact(h, FACT_CGROUP2, FACT_NO, "no cgroup2 file system is mounted");
                set_fact(h, FACT_CPU_CONTROLLER, FACT_NO, "no cgroup2 file system is mounted");
                set_fact(h, FACT_PRESSURE, FACT_NO, "no cgroup2 file system is mounted");
                for (size_t i = 0; i < ELEMENTSOF(of_cpu); i++)
                        set_fact(h, of_cpu[i], FACT_NO, "no cgroup2 file system is mounted");
                return;
        }
        set_yes(h, FACT_CGROUP2);
        (void) cgroup_walk(root, "/", probe_group, &p);
        if (root->has_cpu)
                set_yes(h, FACT_CPU_CONTROLLER);
        else
                explain_no_cpu(sysroot, root, h);
        if (p.with_cpu)
                return;
        for (size_t i = 0; i < ELEMENTSOF(of_cpu); i++)
                if (root->has_cpu)
                        set_fact(h, of_cpu[i], FACT_UNKNOWN, "no group has the cpu controller on, so its files can't be seen yet");
                else
                        set_fact(h, of_cpu[i], FACT_NO, "the cpu controller is not there");
}

static void probe_smt(const char *sysroot, HostFacts *h) {
        char active[16], control[32] = "", siblings[256];

        (void) read_text(sysroot, "/sys/devices/system/cpu/smt/control", control, sizeof(control));
        if (read_text(sysroot, "/sys/devices/system/cpu/smt/active", active, sizeof(active)) >= 0) {
                if (streq(active, "1"))
                        set_yes(h, FACT_SMT);
                else if (streq(control, "off") || streq(control, "forceoff"))
                        set_fact(h, FACT_SMT, FACT_NO, "SMT is switched off (%s)", control);
                else
                        set_fact(h, FACT_SMT, FACT_NO, "each core has one thread online");
                return;
        }
        for (uint32_t cpu = 0; cpu < h->n_cpus; cpu++) {
                char path[96];

                (void) snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
                if (read_text(sysroot, path, siblings, sizeof(siblings)) < 0)
                        continue;
                if (count_cpu_list(siblings) > 1) {
                        set_yes(h, FACT_SMT);
                        return;
                }
                set_fact(h, FACT_SMT, FACT_NO, "each core has one thread online");
        }
        if (h->facts[FACT_SMT].state == FACT_UNKNOWN)
                set_fact(h, FACT_SMT, FACT_UNKNOWN, "the kernel does not tell its topology");
}

static void probe_calls(HostFacts *h) {
        uint64_t base = 0;
        int r, error = 0;

        r = slice_probe(&base);
        if (r > 0) {
                set_yes(h, FACT_EEVDF_SLICE);
                h->base_slice_nsec = base;
        } else if (r == 0)
                set_fact(h, FACT_EEVDF_SLICE, FACT_NO, "the kernel takes a custom slice without an error and ignores it");
        else
                set_fact(h, FACT_EEVDF_SLICE, FACT_UNKNOWN, "the probe failed: %s", strerror(-r));

        r = cookie_probe(&error);
        if (r > 0)
                set_yes(h, FACT_CORE_SCHEDULING);
        else if (r < 0)
                set_fact(h, FACT_CORE_SCHEDULING, FACT_UNKNOWN, "the probe failed: %s", strerror(-r));
        else if (error == ENODEV)
                set_fact(h, FACT_CORE_SCHEDULING, FACT_NO, "no core has more than one thread online (SMT)");
        else if (error == EINVAL)
                set_fact(h, FACT_CORE_SCHEDULING, FACT_NO, "the kernel is built without CONFIG_SCHED_CORE");
        else
                set_fact(h, FACT_CORE_SCHEDULING, FACT_NO, "the kernel refuses: %s", strerror(error));
}

static void probe_namespaces(const char *sysroot, HostFacts *h) {
        /* The inodes of the first namespaces are fixed (include/uapi/linux/nsfs.h; before that linux/proc_ns.h PROC_*_INIT_INO). */
        static const struct {
                const char *path, *first, *name;
        } namespaces[] = {
                { "/proc/self/ns/pid", "pid:[4026531836]", "pid" },
                { "/proc/self/ns/cgroup", "cgroup:[4026531835]", "cgroup" },
        };

        for (size_t i = 0; i < ELEMENTSOF(namespaces); i++) {
                char path[512], target[64];
                ssize_t n;

                if ((size_t) snprintf(path, sizeof(path), "%s%s", sysroot, namespaces[i].path) >= sizeof(path) ||
                    (n = readlink(path, target, sizeof(target) - 1)) < 0) {
                        set_fact(h, FACT_HOST_NAMESPACES, FACT_UNKNOWN, "%s can't be read", namespaces[i].path);
                        return;
                }
                target[n] = 0;
                if (!streq(target, namespaces[i].first)) {
                        set_fact(h, FACT_HOST_NAMESPACES, FACT_NO, "this is another %s namespace than the host's", namespaces[i].name);
                        return;
                }
        }
        set_yes(h, FACT_HOST_NAMESPACES);
}

static void probe_schedstats(const char *sysroot, HostFacts *h) {
        char text[16];

        if (read_text(sysroot, "/proc/sys/kernel/sched_schedstats", text, sizeof(text)) < 0)
                set_fact(h, FACT_SCHEDSTATS, FACT_NO, "the kernel has no kernel.sched_schedstats");
        else if (streq(text, "1"))
                set_yes(h, FACT_SCHEDSTATS);
        else
                set_fact(h, FACT_SCHEDSTATS, FACT_NO, "kernel.sched_schedstats is %.8s", text);
}

static void lower(HostFacts *h, FactId id) {
        if (h->facts[id].state == FACT_YES)
                set_fact(h, id, FACT_NOT_ENFORCED, "the sched_ext scheduler %s runs", h->sched_ext_name);
}

/* What works may not be enforced while a sched_ext scheduler runs. */
static void lower_for_sched_ext(HostFacts *h) {
        if (!h->sched_ext_name[0])
                return;
        /* Cookies next to it have hung hosts, whatever it schedules. */
        lower(h, FACT_CORE_SCHEDULING);
        lower(h, FACT_CORE_TAG_FILE);
        /* One that has only the threads that asked for it leaves the rest to the fair class. */
        if (h->sched_ext_partial)
                return;
        lower(h, FACT_CPU_CONTROLLER);
        lower(h, FACT_BURST);
        lower(h, FACT_EEVDF_SLICE);
        lower(h, FACT_LATENCY_NICE_FILE);
}

static void probe_sched_ext(const char *sysroot, HostFacts *h) {
        char state[32], switch_all[16];

        /* No such directory: a kernel without sched_ext. The states are those of kernel/sched/ext.c scx_enable_state_str. */
        if (read_text(sysroot, "/sys/kernel/sched_ext/state", state, sizeof(state)) < 0 || streq(state, "disabled")) {
                set_yes(h, FACT_SCHED_EXT_OFF);
                return;
        }
        if (read_text(sysroot, "/sys/kernel/sched_ext/root/ops", h->sched_ext_name, sizeof(h->sched_ext_name)) <= 0)
                (void) snprintf(h->sched_ext_name, sizeof(h->sched_ext_name), "(%.16s)", state);
        h->sched_ext_partial = read_text(sysroot, "/sys/kernel/sched_ext/switch_all", switch_all, sizeof(switch_all)) >= 0 && streq(switch_all, "0");
        set_fact(h, FACT_SCHED_EXT_OFF, FACT_NOT_ENFORCED, "the sched_ext scheduler %s runs", h->sched_ext_name);
        lower_for_sched_ext(h);
}

bool host_probe_group(int dir_fd, HostFacts *facts) {
        FactState before[ELEMENTSOF(of_cpu)];
        bool changed = false;

        if (!file_exists(dir_fd, "cpu.max"))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(of_cpu); i++)
                before[i] = facts->facts[of_cpu[i]].state;
        probe_cpu_files(dir_fd, facts);
        lower_for_sched_ext(facts);
        for (size_t i = 0; i < ELEMENTSOF(of_cpu); i++)
                changed |= before[i] != facts->facts[of_cpu[i]].state;
        return changed;
}

void host_probe(const char *sysroot, const CgroupRoot *root, HostFacts *ret) {
        HostFacts h = {};

        probe_numbers(sysroot, &h);
        probe_cgroups(sysroot, root, &h);
        probe_smt(sysroot, &h);
        if (!*sysroot)
                probe_calls(&h);
        probe_namespaces(sysroot, &h);
        probe_schedstats(sysroot, &h);
        probe_sched_ext(sysroot, &h);
        *ret = h;
}

uint64_t host_fingerprint(const char *sysroot) {
        static const char *const files[] = {
                "/sys/devices/system/cpu/online",   "/sys/devices/system/cpu/smt/control", "/sys/devices/system/cpu/smt/active",
                "/sys/kernel/sched_ext/state",      "/sys/kernel/sched_ext/root/ops",      "/sys/kernel/sched_ext/switch_all",
                "/proc/sys/kernel/sched_schedstats",
        };
        uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                char text[1024];
                ssize_t n = read_text(sysroot, files[i], text, sizeof(text));

                /* An absent file and an empty one differ, and contents can't run into one another. */
                hash = (hash ^ (n < 0 ? 0x1ff : 0x100)) * UINT64_C(0x100000001b3);
                for (ssize_t j = 0; j < n; j++)
                        hash = (hash ^ (unsigned char) text[j]) * UINT64_C(0x100000001b3);
        }
        return hash;
}

int host_cpu_times(const char *sysroot, uint64_t *ret_busy, uint64_t *ret_total) {
        /* user nice system idle iowait irq softirq steal; guest time is in user and nice already (proc_stat(5)). */
        uint64_t v[8], busy = 0, total = 0;
        char text[512], *p;
        ssize_t n;

        n = read_text(sysroot, "/proc/stat", text, sizeof(text));
        if (n < 0)
                return (int) n;
        if (!startswith(text, "cpu "))
                return -EBADMSG;
        p = text + 3;
        for (size_t i = 0; i < ELEMENTSOF(v); i++) {
                p += strspn(p, " ");
                if (number_parse(p, strcspn(p, " \n"), &v[i]) < 0)
                        return -EBADMSG;
                p += strcspn(p, " \n");
                total += v[i];
                if (i != 3 && i != 4)
                        busy += v[i];
        }
        *ret_busy = busy;
        *ret_total = total;
        return 0;
}
