/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* State on disk that survives kill -9 and power loss: whole-file replacement (temporary file, fsync, rename, fsync of the directory) and
 * an append-only log whose torn last line is no error. Every file opens with a version and is checked when it is read. */

#include <jansson.h>

#include "policies/util.h"

/* Writes a JSON document to dir_fd/name atomically and durably (mode 0600). 0 or negative errno (-ENOSPC, -EROFS ...); on failure the
 * old file is whole and no temporary file stays. */
int state_write_json(int dir_fd, const char *name, json_t *document);
/* Reads a JSON document, at most max bytes. New reference in *ret. -ENOENT: there is none; -EBADMSG: damaged (message in error_text, may be NULL). */
int state_read_json(int dir_fd, const char *name, size_t max, json_t **ret, char *error_text, size_t error_size);
/* Puts a damaged file aside as NAME.damaged-N (N small, oldest kept) so that nothing is lost and we can go on. */
int state_put_aside(int dir_fd, const char *name);

/* The append log: one JSON object a line. */
typedef struct StateLog StateLog;
/* Opens (creates) the log and gives every whole line to fn; a torn or damaged line is skipped and counted. fn < 0 ends with that error. */
int state_log_open(int dir_fd, const char *name, int (*fn)(json_t *record, void *userdata), void *userdata, size_t *ret_damaged, StateLog **ret);
/* Appends records of an array and makes them durable with one fdatasync. All or nothing as seen by a reader: on failure the file is cut back to its old
 * length. 0 or negative errno. */
int state_log_append(StateLog *log, json_t *records);
/* Replaces the log's content by the records of an array (compaction), atomically. */
int state_log_replace(StateLog *log, json_t *records);
/* Bytes in the log now. */
uint64_t state_log_size(const StateLog *log);
StateLog *state_log_close(StateLog *log);
