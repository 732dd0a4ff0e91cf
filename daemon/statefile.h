/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* State on disk that survives kill -9 and power loss: whole-file replacement (temporary file, fsync, rename, fsync of the directory) and
 * an append-only log whose torn last line is no error. Every file opens with a version and is checked when it is read. */

#include <jansson.h>

#include "policies/util.h"

/* Writes a JSON document to dir_fd/name atomically and durably (mode 0600). The document is an object with a positive integer "version"
 * (-EINVAL otherwise). 0 or negative errno (-ENOSPC, -EROFS ...); on failure the
 * old file is whole and no temporary file stays (only when the very last step failed, the sync of the directory, is the new one there already). */
int state_write_json(int dir_fd, const char *name, json_t *document);
/* Reads a JSON document, at most max bytes. New reference in *ret. -ENOENT: there is none; -EBADMSG: damaged, too big, not a regular file or without a version
 * (printable message in error_text, may be NULL). */
int state_read_json(int dir_fd, const char *name, size_t max, json_t **ret, char *error_text, size_t error_size);
/* Puts a damaged file aside as NAME.damaged-N so that nothing is lost and we can go on. N is 1 to 9; the first eight stay for good, the
 * ninth gives way to a newer one. -ENOENT when there is no such file. */
int state_put_aside(int dir_fd, const char *name);

/* The append log: a line is a checksum (CRC-32 of the rest, 8 hex digits), a space, and one JSON object, or an array of objects that were appended together.
 * The first line names the format and its version. */
typedef struct StateLog StateLog;
/* Opens (creates) the log and gives every whole record to fn. A last line without its end was never acknowledged and is cut off silently; any other line that is
 * damaged is skipped and counted in *ret_damaged (may be NULL). fn < 0 ends with that error. On a read-only file system the log can be read, and
 * each change answers -EROFS. -EPROTONOSUPPORT: a newer version wrote it; -EBADMSG: too big, or no regular file. */
int state_log_open(int dir_fd, const char *name, int (*fn)(json_t *record, void *userdata), void *userdata, size_t *ret_damaged, StateLog **ret);
/* Appends records of an array and makes them durable with one fdatasync. All or nothing as seen by a reader, also after a crash: on failure the file is cut back to its old
 * length. 0 or negative errno. */
int state_log_append(StateLog *log, json_t *records);
/* The same in parts, for more records than are good to hold as JSON at once: each part is all or nothing, and durable only after the commit. When an add or the commit
 * fails, all parts since the last commit are cut off. */
int state_log_add(StateLog *log, json_t *records);
int state_log_commit(StateLog *log);
/* Cuts off the parts since the last commit. */
void state_log_cancel(StateLog *log);
/* Replaces the log's content by the records of an array (compaction), atomically. */
int state_log_replace(StateLog *log, json_t *records);
/* The same with records made one at a time: next returns 1 with a new reference in *ret, 0 at the end, negative errno. */
int state_log_rewrite(StateLog *log, int (*next)(void *userdata, json_t **ret), void *userdata);
/* True when a disk error left the end of the log in doubt: it takes no appends (-EIO) until it is replaced. */
bool state_log_needs_rewrite(const StateLog *log);
/* Keeps the log's present content as NAME.damaged-N (see state_put_aside) while the log stays in use. Call before the rewrite. */
int state_log_keep_copy(StateLog *log);
/* The same for a file by its name. */
int state_keep_copy(int dir_fd, const char *name);
/* Bytes in the log now. */
uint64_t state_log_size(const StateLog *log);
StateLog *state_log_close(StateLog *log);

/* A string of any bytes as JSON and back: text where it is UTF-8, else {"hex": ...} (cgroup names and unit files may hold anything but NUL). NULL gives JSON null.
 * state_string_from_json: 0 and a new string (NULL for null or a missing value), -EBADMSG, -ENOMEM. */
json_t *state_string_to_json(const char *s);
int state_string_from_json(const json_t *j, char **ret);
