/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The file operations of the durable state, each behind one function: what is on disk is what these did, in this order. A test can put a
 * fault (an error, or the end of the process) in front of each of them. */

#include <sys/types.h>

#include "policies/util.h"

typedef enum StateStep {
        STATE_STEP_CREATE = 0,
        STATE_STEP_WRITE,
        STATE_STEP_SYNC,
        STATE_STEP_SYNC_DIRECTORY,
        STATE_STEP_RENAME,
        STATE_STEP_LINK,
        STATE_STEP_UNLINK,
        STATE_STEP_TRUNCATE,
        _STATE_STEP_MAX,
} StateStep;

/* Called before each step; a negative errno makes the step fail with it, undone. NULL (the product): no such thing. */
extern int (*state_fault)(StateStep step);

/* All take a plain file name below dir_fd (-EINVAL with a slash) and return 0 (or a descriptor) or a negative errno. */

/* A new empty file for reading and writing, mode 0600; what had the name is removed first. */
int state_io_create(int dir_fd, const char *name);
/* Opens a regular file, never through a link; flags O_RDONLY or O_RDWR. -EBADMSG when it is not a regular file. */
int state_io_open(int dir_fd, const char *name, int flags);
/* Writes all bytes at this offset. */
int state_io_write(int fd, const void *data, size_t length, uint64_t offset);
/* Data and the size are on the disk when it returns 0. */
int state_io_sync(int fd);
int state_io_sync_directory(int dir_fd);
/* Replaces to by from. */
int state_io_rename(int dir_fd, const char *from, const char *to);
/* Removes a file; one that is not there is no error. */
int state_io_unlink(int dir_fd, const char *name);
/* A second name for the same file; -EEXIST when the name is taken. */
int state_io_link(int dir_fd, const char *from, const char *to);
int state_io_truncate(int fd, uint64_t length);
/* Reads up to size bytes at this offset; short only at the end of the file. */
ssize_t state_io_read(int fd, void *buffer, size_t size, uint64_t offset);
