/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Thin covers of the system calls: restart what a signal broke off, finish short writes, and turn errno into a return value. */

#include "daemon/state-io.h"

#include <fcntl.h>
#include <sys/stat.h>

int (*state_fault)(StateStep step);

static int step(StateStep s) {
        return state_fault ? state_fault(s) : 0;
}

static bool name_is_plain(const char *name) {
        return name && name[0] && !strchr(name, '/') && !streq(name, ".") && !streq(name, "..");
}

int state_io_create(int dir_fd, const char *name) {
        int fd, r;

        if (!name_is_plain(name))
                return -EINVAL;
        r = state_io_unlink(dir_fd, name);
        if (r < 0)
                return r;
        r = step(STATE_STEP_CREATE);
        if (r < 0)
                return r;
        fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        return fd < 0 ? -errno : fd;
}

int state_io_open(int dir_fd, const char *name, int flags) {
        _cleanup_close_ int fd = -1;
        struct stat st;

        if (!name_is_plain(name))
                return -EINVAL;
        /* O_NONBLOCK: a pipe under this name must not hold us up. */
        fd = openat(dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return errno == ELOOP || errno == EISDIR || errno == ENXIO ? -EBADMSG : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EBADMSG;
        return TAKE_FD(fd);
}

int state_io_write(int fd, const void *data, size_t length, uint64_t offset) {
        const char *p = data;
        int r;

        r = step(STATE_STEP_WRITE);
        if (r < 0)
                return r;
        while (length > 0) {
                ssize_t n = pwrite(fd, p, length, (off_t) offset);

                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                if (n == 0)
                        return -EIO;
                p += n;
                length -= (size_t) n;
                offset += (uint64_t) n;
        }
        return 0;
}

int state_io_sync(int fd) {
        int r;

        r = step(STATE_STEP_SYNC);
        if (r < 0)
                return r;
        return fdatasync(fd) < 0 ? -errno : 0;
}

int state_io_sync_directory(int dir_fd) {
        _cleanup_close_ int fd = -1;
        int r;

        r = step(STATE_STEP_SYNC_DIRECTORY);
        if (r < 0)
                return r;
        /* The caller's descriptor may be O_PATH, which fsync() refuses. */
        fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (fsync(fd) < 0)
                /* Some file systems can't sync a directory (EINVAL, 9p): there is nothing better to do. */
                return errno == EINVAL ? 0 : -errno;
        return 0;
}

int state_io_rename(int dir_fd, const char *from, const char *to) {
        int r;

        if (!name_is_plain(from) || !name_is_plain(to))
                return -EINVAL;
        r = step(STATE_STEP_RENAME);
        if (r < 0)
                return r;
        return renameat(dir_fd, from, dir_fd, to) < 0 ? -errno : 0;
}

int state_io_unlink(int dir_fd, const char *name) {
        int r;

        if (!name_is_plain(name))
                return -EINVAL;
        r = step(STATE_STEP_UNLINK);
        if (r < 0)
                return r;
        return unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int state_io_link(int dir_fd, const char *from, const char *to) {
        int r;

        if (!name_is_plain(from) || !name_is_plain(to))
                return -EINVAL;
        r = step(STATE_STEP_LINK);
        if (r < 0)
                return r;
        return linkat(dir_fd, from, dir_fd, to, 0) < 0 ? -errno : 0;
}

int state_io_truncate(int fd, uint64_t length) {
        int r;

        r = step(STATE_STEP_TRUNCATE);
        if (r < 0)
                return r;
        return ftruncate(fd, (off_t) length) < 0 ? -errno : 0;
}

ssize_t state_io_read(int fd, void *buffer, size_t size, uint64_t offset) {
        size_t done = 0;

        while (done < size) {
                ssize_t n = pread(fd, (char *) buffer + done, size - done, (off_t) (offset + done));

                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                if (n == 0)
                        break;
                done += (size_t) n;
        }
        return (ssize_t) done;
}
