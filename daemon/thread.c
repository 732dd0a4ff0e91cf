/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who a thread is, from /proc: its start time, which with the id names it for good, and its process. */

#include <fcntl.h>
#include <limits.h>

#include "daemon/cgtext.h"
#include "daemon/slice.h"

/* The beginning of /proc/TID/NAME, NUL-terminated. Both files are one read; a name in them is at most 64 bytes. */
static int read_start(pid_t tid, const char *name, char *buffer, size_t size) {
        _cleanup_close_ int fd = -1;
        char path[64];
        ssize_t n;

        if (tid <= 0)
                return -ESRCH;
        (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) tid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        do
                n = read(fd, buffer, size - 1);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        buffer[n] = 0;
        return 0;
}

int thread_start_time(pid_t tid, uint64_t *ret_ticks) {
        char text[1024], *p;
        int r;

        r = read_start(tid, "stat", text, sizeof(text));
        if (r < 0)
                return r;
        /* Field 2 is the name in brackets and may hold anything, brackets and blanks too: count from the last one. */
        p = strrchr(text, ')');
        if (!p)
                return -EBADMSG;
        p++;
        for (unsigned field = 3; field < 22; field++) {
                p += strspn(p, " ");
                p += strcspn(p, " ");
        }
        p += strspn(p, " ");
        return number_parse(p, strcspn(p, " \n"), ret_ticks);
}

int thread_group_of(pid_t tid, pid_t *ret_tgid) {
        char text[2048], *p;
        uint64_t tgid;
        int r;

        r = read_start(tid, "status", text, sizeof(text));
        if (r < 0)
                return r;
        /* A newline in the name is escaped (fs/proc/array.c proc_task_name), so the start of a line is one. */
        p = strstr(text, "\nTgid:\t");
        if (!p)
                return -EBADMSG;
        p += strlen("\nTgid:\t");
        r = number_parse(p, strcspn(p, "\n"), &tgid);
        if (r < 0)
                return r;
        if (tgid == 0 || tgid > INT_MAX)
                return -EBADMSG;
        *ret_tgid = (pid_t) tgid;
        return 0;
}
