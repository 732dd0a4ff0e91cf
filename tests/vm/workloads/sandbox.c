/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a unit's sandbox lets through: does what the daemon must do and what nothing in its place may do, and prints one line for each,
 * "NAME ok" or "NAME ERRNO". Usage: sandbox OTHER_PID GROUP, where GROUP is a group below a unit that another user was delegated. */

#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "policies/util.h"

typedef struct SchedAttr {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
        uint32_t util_min, util_max;
} SchedAttr;

static void tell(const char *name, long result) {
        if (result >= 0)
                (void) printf("%s ok\n", name);
        else
                (void) printf("%s %s\n", name, strerrorname_np(errno));
}

/* Writes text (NULL: what the file holds now) to a file that exists. */
static long write_file(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
        char now[256];
        ssize_t n;

        if (fd < 0)
                return -1;
        if (!text) {
                n = pread(fd, now, sizeof(now), 0);
                return n < 0 ? -1 : pwrite(fd, now, (size_t) n, 0);
        }
        return write(fd, text, strlen(text));
}

static long read_file(const char *path) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        char byte;

        return fd < 0 ? -1 : read(fd, &byte, 1);
}

static long make_file(const char *path) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        return fd < 0 ? -1 : unlink(path);
}

static long give_slice(pid_t pid) {
        SchedAttr a = { .size = sizeof(a) };

        if (syscall(SYS_sched_getattr, pid, &a, sizeof(a), 0) < 0)
                return -1;
        a.runtime = 5000000;
        return syscall(SYS_sched_setattr, pid, &a, 0);
}

/* The kernel may lack core scheduling or SMT: only a refusal of rights counts. */
static long read_cookie(pid_t pid) {
        unsigned long cookie;
        long r = prctl(PR_SCHED_CORE, PR_SCHED_CORE_GET, pid, PR_SCHED_CORE_SCOPE_THREAD, &cookie);

        return r < 0 && (errno == EINVAL || errno == ENODEV) ? 0 : r;
}

static long open_beneath(const char *directory, const char *name) {
        _cleanup_close_ int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };

        return fd < 0 ? -1 : syscall(SYS_openat2, fd, name, &how, sizeof(how));
}

static long connect_unix(const char *path) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        union {
                struct sockaddr_un un;
                struct sockaddr any;
        } a = { .un.sun_family = AF_UNIX };

        (void) strncpy(a.un.sun_path, path, sizeof(a.un.sun_path) - 1);
        return fd < 0 ? -1 : connect(fd, &a.any, sizeof(a.un));
}

int main(int argc, char **argv) {
        _cleanup_free_ char *cpu_max = NULL, *pressure = NULL, *maps = NULL, *threads = NULL;
        struct sched_param fifo = { .sched_priority = 1 };
        pid_t other;

        if (argc != 3)
                return 2;
        other = (pid_t) atoi(argv[1]);
        if (asprintf(&cpu_max, "/sys/fs/cgroup%s/cpu.max", argv[2]) < 0 || asprintf(&pressure, "/sys/fs/cgroup%s/cpu.pressure", argv[2]) < 0 ||
            asprintf(&threads, "/sys/fs/cgroup%s/cgroup.threads", argv[2]) < 0 || asprintf(&maps, "/proc/%d/stat", other) < 0)
                return 1;

        tell("must:slice-of-another-user", give_slice(other));
        tell("must:cookie-of-another-user", read_cookie(other));
        tell("must:stat-of-another-user", read_file(maps));
        tell("must:pidfd", syscall(SYS_pidfd_open, other, 0));
        tell("must:quota-of-a-users-group", write_file(cpu_max, "30000 100000"));
        tell("must:threads-of-a-users-group", read_file(threads));
        tell("must:short-pressure-window", write_file(pressure, "some 50000 500000"));
        tell("must:make-a-dropin-and-undo-it", make_file("/run/systemd/system.control/cpuclass-test"));
        tell("must:state", make_file("/var/lib/cpuclass/test"));
        tell("must:runtime", make_file("/run/cpuclass/test"));
        tell("must:logs", make_file("/var/log/cpuclass/test"));
        tell("must:bandwidth-slice", write_file("/proc/sys/kernel/sched_cfs_bandwidth_slice_us", NULL));
        tell("must:schedstats", read_file("/proc/sys/kernel/sched_schedstats"));
        tell("must:host-statistics", read_file("/proc/stat"));
        tell("must:unit-files", read_file("/etc/systemd/system/vm.target"));
        tell("must:openat2", open_beneath("/sys/fs/cgroup", "system.slice"));
        tell("must:inotify", inotify_init1(IN_CLOEXEC));
        tell("must:bus", connect_unix("/run/dbus/system_bus_socket"));

        tell("never:write-etc", make_file("/etc/cpuclass-test"));
        tell("never:write-usr", make_file("/usr/cpuclass-test"));
        tell("never:other-tunable", write_file("/proc/sys/kernel/panic", NULL));
        tell("never:internet", socket(AF_INET, SOCK_STREAM, 0));
        tell("never:netlink", socket(AF_NETLINK, SOCK_RAW, 0));
        tell("never:mount", mount("none", "/mnt", "tmpfs", 0, NULL));
        tell("never:setuid", setuid(1));
        tell("never:realtime", sched_setscheduler(0, SCHED_FIFO, &fifo));
        tell("never:executable-memory", mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
        tell("never:namespace", unshare(CLONE_NEWUSER));
        tell("never:kill", kill(other, SIGUSR1));
        return 0;
}
