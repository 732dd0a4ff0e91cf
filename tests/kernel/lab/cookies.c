/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cookie that a task has, through all that can happen to it and its group while cpu.core_tag is used. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab.h"

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif
enum { GET, CREATE, SHARE_TO, SHARE_FROM };

static int failures;

static void check(bool good, const char *what) {
        printf("%s %s\n", good ? "ok  " : "FAIL", what);
        failures += !good;
}

static uint64_t cookie(pid_t pid) {
        uint64_t value = 0;

        if (prctl(PR_SCHED_CORE, GET, pid, 0, &value) < 0)
                die("cannot get the cookie of %d: %s", pid, strerror(errno));
        return value;
}

static void put(const char *group, const char *file, const char *value) {
        char path[512];
        int fd;

        snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/%s", group, file);
        fd = open(path, O_WRONLY);
        if (fd < 0 || write(fd, value, strlen(value)) < 0)
                die("%s: cannot write %s: %s", path, value, strerror(errno));
        close(fd);
}

static void tag(const char *group, bool on) {
        put(group, "cpu.core_tag", on ? "1" : "0");
}

static void move(pid_t pid, const char *group) {
        char text[16];

        snprintf(text, sizeof(text), "%d", pid);
        put(group, "cgroup.procs", text);
}

static void *thread(void *arg) {
        if (write(*(int *)arg, "", 1) != 1)
                die("a thread cannot report");
        for (;;)
                pause();
        return NULL;
}

/* A process with a few threads that only waits, in a group; "" for where we are. */
static pid_t sleeper(const char *group) {
        int ready[2];
        pid_t pid;
        char c;

        if (pipe(ready) < 0)
                die("no pipe");
        pid = spawn();
        if (!pid) {
                pthread_t t;

                if (*group)
                        group_join(group);
                for (int i = 0; i < 3; i++)
                        if (pthread_create(&t, NULL, thread, &ready[1]) != 0)
                                _exit(1);
                for (;;)
                        pause();
        }
        for (int i = 0; i < 3; i++)
                if (read(ready[0], &c, 1) != 1)
                        die("a sleeper did not start");
        close(ready[0]);
        close(ready[1]);
        return pid;
}

/* Do all threads of the group have this cookie? */
static bool all_have(const char *group, uint64_t wanted) {
        char path[512];
        bool good = true;
        FILE *f;
        int tid;

        snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/cgroup.threads", group);
        f = fopen(path, "re");
        if (!f)
                die("cannot read %s", path);
        while (fscanf(f, "%d", &tid) == 1) {
                uint64_t value = 0;

                /* one that has just ended has none */
                if (prctl(PR_SCHED_CORE, GET, tid, 0, &value) == 0)
                        good &= value == wanted;
        }
        fclose(f);
        return good;
}

static pid_t clone_into(const char *group) {
        struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
        char path[512];
        pid_t pid;
        int fd;

        snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", group);
        fd = open(path, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                die("cannot open %s", path);
        args.cgroup = fd;
        fflush(stdout);
        pid = syscall(SYS_clone3, &args, sizeof(args));
        if (pid < 0)
                die("clone3: %s", strerror(errno));
        if (!pid)
                for (;;)
                        pause();
        close(fd);
        return pid;
}

/* Runs in the group that is tagged: a child that is born here, and one that is born elsewhere. */
static void births(const char *a, const char *b, uint64_t cookie_a, uint64_t cookie_b) {
        int report[2];
        uint64_t values[3];
        pid_t pid;

        if (pipe(report) < 0)
                die("no pipe");
        pid = spawn();
        if (!pid) {
                pid_t child;

                group_join(a);
                child = spawn();
                if (!child)
                        for (;;)
                                pause();
                values[0] = cookie(child);
                reap(child);
                child = clone_into(b);
                values[1] = cookie(child);
                reap(child);
                child = clone_into("init.scope");
                values[2] = cookie(child);
                reap(child);
                _exit(write(report[1], values, sizeof(values)) != sizeof(values));
        }
        if (read(report[0], values, sizeof(values)) != sizeof(values))
                die("no report");
        waitpid(pid, NULL, 0);
        close(report[0]);
        close(report[1]);
        check(values[0] == cookie_a, "a child that is forked in a tagged group has its cookie");
        check(values[1] == cookie_b, "a child that is cloned into another tagged group has that one's");
        check(values[2] == 0, "a child that is cloned into an untagged group has none");
}

static void precedence(const char *a) {
        pid_t pid = sleeper(""), outside = sleeper("");
        uint64_t own, group, other;

        prctl(PR_SCHED_CORE, CREATE, pid, 1, 0);
        own = cookie(pid);
        check(own != 0, "a cookie of its own");
        tag(a, true);
        move(pid, a);
        group = cookie(pid);
        check(group != own && group != 0, "the group's cookie comes before the task's own");
        prctl(PR_SCHED_CORE, CREATE, pid, 1, 0);
        check(cookie(pid) == group, "... which can be changed meanwhile, without effect");
        move(pid, "init.scope");
        other = cookie(pid);
        check(other != group && other != own && other != 0, "... and takes effect outside");
        move(pid, a);
        check(cookie(pid) == group, "back in the group");
        tag(a, false);
        check(cookie(pid) == other, "... and untagged");
        tag(a, true);
        check(cookie(pid) != other && cookie(pid) != group && cookie(pid) != 0, "tagged again: another cookie");

        /* What is shared is the task's own, never the group's. */
        prctl(PR_SCHED_CORE, SHARE_FROM, pid, 0, 0);
        check(cookie(0) == other, "share-from takes a task's own cookie");
        prctl(PR_SCHED_CORE, SHARE_TO, outside, 1, 0);
        check(cookie(outside) == other, "share-to gives it");
        reap(outside);
        outside = sleeper(a);
        prctl(PR_SCHED_CORE, CREATE, 0, 0, 0);
        prctl(PR_SCHED_CORE, SHARE_TO, outside, 1, 0);
        check(cookie(outside) == cookie(pid) && cookie(outside) != cookie(0), "... and not into effect in a tagged group");
        tag(a, false);
        check(cookie(outside) == cookie(0), "... until that is untagged");
        reap(outside);
        outside = sleeper(""); /* has 0 only if we have */
        reap(outside);
        reap(pid);
}

/* Write the tag while tasks fork: whoever is there when the write has returned has the cookie. */
static void storm(const char *a) {
        bool good = true, cleared = true;
        pid_t pids[4];

        for (int i = 0; i < 4; i++) {
                pids[i] = spawn();
                if (!pids[i]) {
                        group_join(a);
                        for (;;) {
                                pid_t child = fork();

                                if (!child) {
                                        pid_t grandchild = fork();

                                        if (grandchild > 0)
                                                waitpid(grandchild, NULL, 0);
                                        _exit(0);
                                }
                                waitpid(child, NULL, 0);
                        }
                }
        }
        for (int i = 0; i < 100; i++) {
                tag(a, true);
                good &= all_have(a, cookie(pids[0])) && cookie(pids[0]) != 0;
                tag(a, false);
                cleared &= all_have(a, 0);
        }
        for (int i = 0; i < 4; i++)
                kill(pids[i], SIGKILL);
        put(a, "cgroup.kill", "1");
        for (int i = 0; i < 4; i++)
                waitpid(pids[i], NULL, 0);
        check(good, "tagged while tasks fork, a hundred times: nobody is missed");
        check(cleared, "... and untagged: nobody keeps it");
}

int lab_cookies(int argc, char **argv) {
        const char *a, *b, *parent, *child;
        uint64_t cookie_a, cookie_b, cookie_parent;
        char path[512];
        pid_t pid, other;

        if (argc != 5)
                die("cookies: four groups");
        a = argv[1], b = argv[2], parent = argv[3], child = argv[4];

        pid = sleeper(a);
        check(cookie(pid) == 0, "no tag, no cookie");
        tag(a, true);
        cookie_a = cookie(pid);
        check(cookie_a != 0, "a running process of a group that is tagged");
        check(all_have(a, cookie_a), "... with all threads");
        other = sleeper(a);
        check(cookie(other) == cookie_a && all_have(a, cookie_a), "one that joins");
        tag(b, true);
        move(other, b);
        cookie_b = cookie(other);
        check(cookie_b != 0 && cookie_b != cookie_a && all_have(b, cookie_b), "one that moves to another tagged group");
        births(a, b, cookie_a, cookie_b);
        move(other, "init.scope");
        check(cookie(other) == 0, "one that leaves");
        move(other, a);
        check(cookie(other) == cookie_a, "one that comes back");
        tag(a, true);
        check(cookie(other) == cookie_a, "tagged twice: the same cookie");
        tag(a, false);
        check(cookie(pid) == 0 && all_have(a, 0), "untagged");
        reap(other);
        reap(pid);

        pid = sleeper(child);
        tag(parent, true);
        cookie_parent = cookie(pid);
        check(cookie_parent != 0, "a descendant follows its ancestor");
        tag(child, true);
        check(cookie(pid) != 0 && cookie(pid) != cookie_parent, "... until it is tagged itself");
        tag(parent, false);
        check(cookie(pid) != 0 && cookie(pid) != cookie_parent, "... and stays so when the ancestor is not any more");
        tag(child, false);
        check(cookie(pid) == 0, "nothing left");
        tag(parent, true);
        snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/late", parent);
        if (mkdir(path, 0755) < 0)
                die("cannot make %s", path);
        snprintf(path, sizeof(path), "%s/late", parent);
        other = sleeper(path);
        check(cookie(other) == cookie(pid) && cookie(other) != 0, "a group that is made below a tagged one");
        reap(other);
        snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/late", parent);
        for (int i = 0; rmdir(path) < 0 && i < 50; i++)
                sleep_ns(20 * MSEC);
        tag(parent, false);
        reap(pid);

        /* The group goes while it is tagged. */
        tag(b, true);
        snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", b);
        check(rmdir(path) == 0 && mkdir(path, 0755) == 0, "a tagged group is removed, and made again");
        pid = sleeper(b);
        check(cookie(pid) == 0, "... and is not tagged");
        reap(pid);

        precedence(a);
        prctl(PR_SCHED_CORE, SHARE_FROM, 1, 0, 0); /* init has none: this is how to get rid of ours */
        check(cookie(0) == 0, "a cookie of 0 is copied from one that has none");
        storm(a);
        return failures ? 1 : 0;
}
