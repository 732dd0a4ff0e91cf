/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Faults for tests of durable state: a scratch directory, and a failure or a death in front of the n-th file operation. */

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/state-io.h"

#define DEATH_STATUS 77 /* of a child that died at its fault point */

static char scratch_path[64];

/* An empty directory; returns its descriptor. In memory where that is possible: these tests sync thousands of times, and a death of the
 * process does not lose what the kernel has. */
static inline int scratch_open(void) {
        strcpy(scratch_path, access("/dev/shm", W_OK) == 0 ? "/dev/shm/cpuclass-state-XXXXXX" : "/tmp/cpuclass-state-XXXXXX");
        if (!mkdtemp(scratch_path))
                return -errno;
        return open(scratch_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

static inline void scratch_close(int fd) {
        (void) close(fd);
        (void) nftw(scratch_path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static unsigned fault_countdown; /* 1: the next step */
static int fault_error;          /* 0: die */
static unsigned fault_steps;     /* steps seen since fault_arm */

static int fault_hook(StateStep step) {
        fault_steps++;
        if (fault_countdown == 0 || --fault_countdown > 0)
                return 0;
        if (fault_error == 0)
                _exit(DEATH_STATUS);
        return fault_error;
}

/* The n-th step from now fails with error (negative errno), or ends the process when error is 0. n 0: only count. */
static inline void fault_arm(unsigned n, int error) {
        fault_countdown = n;
        fault_error = error;
        fault_steps = 0;
        state_fault = fault_hook;
}

static inline void fault_disarm(void) {
        state_fault = NULL;
}

/* Runs fn in a child that dies at its n-th step. Returns true when it died there, false when it ended before. */
static inline bool dies_at(unsigned n, void (*fn)(void *userdata), void *userdata) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                fault_arm(n, 0);
                fn(userdata);
                _exit(0);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
                abort();
        return WEXITSTATUS(status) == DEATH_STATUS;
}

static inline void write_raw(int dir_fd, const char *name, const void *data, size_t n) {
        int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (fd < 0 || write(fd, data, n) != (ssize_t) n)
                abort();
        (void) close(fd);
}

/* Reads a whole file; NULL when there is none. */
static inline char *read_raw(int dir_fd, const char *name, size_t *ret_length) {
        int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
        struct stat st;
        char *p;

        if (fd < 0)
                return NULL;
        if (fstat(fd, &st) < 0)
                abort();
        p = calloc(1, (size_t) st.st_size + 1);
        if (!p || read(fd, p, (size_t) st.st_size) != st.st_size)
                abort();
        (void) close(fd);
        if (ret_length)
                *ret_length = (size_t) st.st_size;
        return p;
}

static inline bool file_exists(int dir_fd, const char *name) {
        return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}
