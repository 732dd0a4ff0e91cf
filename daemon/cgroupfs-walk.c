/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Walking the tree without recursion: a stack of open directories, so there are never more descriptors than the tree is deep, however wide
 * it is. Names come from getdents64(2), which tells directories from files, so that a group's forty files cost no call each. */

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>

#include "daemon/cgroupfs.h"

typedef struct Level {
        int fd;
        size_t path_length;   /* of this level's own path */
        char *buffer;         /* ENTRIES_SIZE bytes of entries, kept for the next directory of this depth */
        size_t position, filled;
} Level;

#define ENTRIES_SIZE 4096

typedef struct Walk {
        Level levels[CGROUP_WALK_DEPTH];
        size_t depth;                     /* open levels */
        char path[PATH_MAX];
} Walk;

static void walk_free(Walk **p) {
        if (!*p)
                return;
        for (size_t i = 0; i < CGROUP_WALK_DEPTH; i++) {
                if (i < (*p)->depth)
                        (void) close((*p)->levels[i].fd);
                free((*p)->levels[i].buffer);
        }
        free(*p);
}

/* The next subdirectory's name, or NULL at the end (also of a directory that was removed under us). The name is valid until the next call. */
static int next_directory(Level *l, const char **ret) {
        for (;;) {
                struct dirent64 *d;

                if (l->position >= l->filled) {
                        long n = syscall(SYS_getdents64, l->fd, l->buffer, ENTRIES_SIZE);

                        if (n < 0 && errno == EINTR)
                                continue;
                        if (n < 0 && errno != ENOENT && errno != ENODEV)
                                return -errno;
                        if (n <= 0) {
                                *ret = NULL;
                                return 0;
                        }
                        l->position = 0;
                        l->filled = (size_t) n;
                }
                d = (struct dirent64 *) (void *) (l->buffer + l->position);
                l->position += d->d_reclen;
                if (d->d_type != DT_DIR && d->d_type != DT_UNKNOWN)
                        continue;
                if (streq(d->d_name, ".") || streq(d->d_name, ".."))
                        continue;
                *ret = d->d_name;
                return 0;
        }
}

/* Opens the entries of a directory (taken over, also on failure) as the next level. */
static int push(Walk *w, int fd, size_t path_length) {
        Level *l = &w->levels[w->depth];

        if (!l->buffer && !(l->buffer = malloc(ENTRIES_SIZE))) {
                (void) close(fd);
                return -ENOMEM;
        }
        l->fd = fd;
        l->path_length = path_length;
        l->position = l->filled = 0;
        w->depth++;
        return 0;
}

/* Gives a directory (taken over) to fn and opens it for its children. */
static int visit(Walk *w, int dir_fd, size_t path_length, CgroupWalkFn fn, void *userdata) {
        _cleanup_close_ int fd = dir_fd;
        uint64_t inode;
        int r;

        r = cgroup_inode(fd, &inode);
        if (r < 0)
                return r;
        r = fn(w->path, fd, inode, userdata);
        if (r != 0)
                return r < 0 ? r : 0;
        if (w->depth >= CGROUP_WALK_DEPTH)
                return 0;
        return push(w, TAKE_FD(fd), path_length);
}

int cgroup_walk(const CgroupRoot *root, const char *path, CgroupWalkFn fn, void *userdata) {
        _cleanup_(walk_free) Walk *w = NULL;
        int fd, r;

        fd = cgroup_open(root, path);
        if (fd < 0)
                return fd;
        w = calloc(1, sizeof(*w));
        if (!w) {
                (void) close(fd);
                return -ENOMEM;
        }
        strcpy(w->path, path); /* cgroup_open() refuses what is longer */
        r = visit(w, fd, strlen(path), fn, userdata);

        while (r >= 0 && w->depth > 0) {
                Level *l = &w->levels[w->depth - 1];
                const char *name = NULL;
                size_t start, n;

                w->path[l->path_length] = 0;
                r = next_directory(l, &name);
                if (r < 0)
                        break;
                if (!name) {
                        (void) close(l->fd);
                        w->depth--;
                        continue;
                }
                start = l->path_length == 1 ? 0 : l->path_length; /* "/" has its slash already */
                n = strlen(name);
                if (start + 1 + n >= sizeof(w->path))
                        continue;
                fd = cgroup_open_beneath(l->fd, name);
                if (fd < 0) {
                        if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOSYS)
                                r = fd;
                        continue;
                }
                w->path[start] = '/';
                memcpy(w->path + start + 1, name, n + 1);
                r = visit(w, fd, start + 1 + n, fn, userdata);
        }
        return r;
}
