/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A cgroup that gives its controllers to children can't hold processes itself (cgroup-v2.rst, "No Internal Process Constraint"), so the holder sits in a leaf. */

#include "daemon/pools-holder.h"

#include "daemon/cgroupfs.h"
#include "daemon/log.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

int pools_hold(void) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int dir_fd = -1, leaf_fd = -1;
        CgroupRoot root;
        sigset_t mask;
        int r, signal_number;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGTERM);
        (void) sigaddset(&mask, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &mask, NULL);
        r = cgroup_root_open(NULL, &root);
        if (r < 0) {
                log_error("No cgroup2 mount: %s", strerror(-r));
                return r;
        }
        r = cgroup_of_pid(getpid(), &path);
        if (r < 0)
                goto finish;
        /* A restart of the holder begins in the leaf's parent again: systemd puts it there. */
        dir_fd = cgroup_open(&root, path);
        if (dir_fd < 0) {
                r = dir_fd;
                goto finish;
        }
        if (mkdirat(dir_fd, "holder", 0755) < 0 && errno != EEXIST) {
                r = -errno;
                goto finish;
        }
        leaf_fd = openat(dir_fd, "holder", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (leaf_fd < 0) {
                r = -errno;
                goto finish;
        }
        r = cgroup_write_file(leaf_fd, "cgroup.procs", "0");
        if (r < 0)
                goto finish;
        r = cgroup_write_file(dir_fd, "cgroup.subtree_control", "+cpu");
        if (r < 0)
                log_warning("The cpu controller can't be turned on for pools: %s", strerror(-r));
        (void) sd_notify(false, "READY=1\nSTATUS=Holding the subtree of the pools");
        (void) sigwait(&mask, &signal_number);
        r = 0;
finish:
        if (r < 0)
                log_error("The subtree of the pools can't be held: %s", strerror(-r));
        cgroup_root_close(&root);
        return r;
}
