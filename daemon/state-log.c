/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The append log. What counts is the committed length: bytes beyond it were never acknowledged and are cut off by whoever sees them first, we
 * after an error or the next process after a crash. Each line carries its checksum, since a crash can also leave a hole in the middle of the last
 * write; one line is one unit of all-or-nothing. */

#include "daemon/statefile.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/state-io.h"

#define HEADER_PREFIX "cpuclass-log "
#define HEADER HEADER_PREFIX "1\n"
#define LINE_MAX_BYTES (UINT64_C(32) << 20)
#define FILE_MAX_BYTES (UINT64_C(256) << 20)
#define READ_CHUNK (UINT64_C(64) << 10)
#define CHECKSUM_LENGTH 9 /* 8 hex digits and a space */

struct StateLog {
        int dir_fd;
        int fd;
        char *name;
        uint64_t committed; /* all before this is durable */
        uint64_t size;      /* written, perhaps not durable */
        bool read_only;
        bool broken;        /* what lies at and after committed is in doubt */
};

/* CRC-32 of ISO 3309 (polynomial 0xedb88320, reflected). */
static uint32_t crc32_of(const void *data, size_t length) {
        static uint32_t table[256];
        const unsigned char *p = data;
        uint32_t crc = UINT32_MAX;

        if (table[1] == 0)
                for (uint32_t i = 0; i < 256; i++) {
                        uint32_t c = i;

                        for (unsigned k = 0; k < 8; k++)
                                c = c & 1 ? c >> 1 ^ UINT32_C(0xedb88320) : c >> 1;
                        table[i] = c;
                }
        for (size_t i = 0; i < length; i++)
                crc = table[(crc ^ p[i]) & 255] ^ crc >> 8;
        return ~crc;
}

/* A record or an array of them as a line, with checksum and end. */
static int format_line(const json_t *json, char **ret, size_t *ret_length) {
        _cleanup_free_ char *line = NULL;
        char checksum[CHECKSUM_LENGTH + 1];
        size_t n, m;

        n = json_dumpb(json, NULL, 0, JSON_COMPACT | JSON_PRESERVE_ORDER);
        if (n == 0)
                return -EINVAL;
        if (n + CHECKSUM_LENGTH + 1 > LINE_MAX_BYTES)
                return -EFBIG;
        line = malloc(CHECKSUM_LENGTH + n + 1);
        if (!line)
                return -ENOMEM;
        m = json_dumpb(json, line + CHECKSUM_LENGTH, n, JSON_COMPACT | JSON_PRESERVE_ORDER);
        if (m != n)
                return -ENOMEM;
        (void) snprintf(checksum, sizeof(checksum), "%08x ", crc32_of(line + CHECKSUM_LENGTH, n));
        memcpy(line, checksum, CHECKSUM_LENGTH);
        line[CHECKSUM_LENGTH + n] = '\n';
        *ret = TAKE_PTR(line);
        *ret_length = CHECKSUM_LENGTH + n + 1;
        return 0;
}

typedef struct Reader {
        int (*fn)(json_t *record, void *userdata);
        void *userdata;
        size_t n_damaged;
        bool header_seen;
} Reader;

static bool is_number(const char *s, size_t length) {
        for (size_t i = 0; i < length; i++)
                if (s[i] < '0' || s[i] > '9')
                        return false;
        return true;
}

/* One line without its end. Returns 0, fn's error, or -EPROTONOSUPPORT. */
static int read_line(Reader *reader, const char *line, size_t length) {
        char checksum[CHECKSUM_LENGTH + 1];
        json_error_t error;
        json_t *json;
        int r = 0;

        if (!reader->header_seen) {
                const size_t n = strlen(HEADER_PREFIX);

                reader->header_seen = true;
                if (length == strlen(HEADER) - 1 && memcmp(line, HEADER, length) == 0)
                        return 0;
                if (length > n && length < n + 10 && memcmp(line, HEADER_PREFIX, n) == 0 && is_number(line + n, length - n))
                        return -EPROTONOSUPPORT;
                /* A damaged first line: the lines after it vouch for themselves. */
        }
        if (length <= CHECKSUM_LENGTH) {
                reader->n_damaged++;
                return 0;
        }
        (void) snprintf(checksum, sizeof(checksum), "%08x ", crc32_of(line + CHECKSUM_LENGTH, length - CHECKSUM_LENGTH));
        if (memcmp(line, checksum, CHECKSUM_LENGTH) != 0) {
                reader->n_damaged++;
                return 0;
        }
        json = json_loadb(line + CHECKSUM_LENGTH, length - CHECKSUM_LENGTH, JSON_REJECT_DUPLICATES, &error);
        if (!json) {
                if (json_error_code(&error) == json_error_out_of_memory)
                        return -ENOMEM;
                reader->n_damaged++;
                return 0;
        }
        if (json_is_object(json))
                r = reader->fn(json, reader->userdata);
        else if (json_is_array(json))
                for (size_t i = 0; i < json_array_size(json) && r >= 0; i++) {
                        json_t *record = json_array_get(json, i);

                        if (json_is_object(record))
                                r = reader->fn(record, reader->userdata);
                        else
                                reader->n_damaged++;
                }
        else
                reader->n_damaged++;
        json_decref(json);
        return r < 0 ? r : 0;
}

/* Reads all lines; *ret_end is where the last whole line ends. */
static int read_lines(int fd, Reader *reader, uint64_t *ret_end) {
        _cleanup_free_ char *buffer = NULL;
        size_t allocated = 0, filled = 0;
        uint64_t offset = 0, end = 0;
        bool skipping = false; /* inside a line that is too long */

        for (;;) {
                size_t start = 0, searched = filled;
                ssize_t n;
                int r;

                if (allocated - filled < READ_CHUNK) {
                        size_t want = filled + READ_CHUNK > 2 * allocated ? filled + READ_CHUNK : 2 * allocated;
                        char *p = realloc(buffer, want);

                        if (!p)
                                return -ENOMEM;
                        buffer = p;
                        allocated = want;
                }
                n = state_io_read(fd, buffer + filled, READ_CHUNK, offset);
                if (n < 0)
                        return (int) n;
                if (n == 0)
                        break;
                offset += (uint64_t) n;
                filled += (size_t) n;

                for (;;) {
                        char *p = memchr(buffer + searched, '\n', filled - searched);

                        if (!p)
                                break;
                        if (skipping) {
                                skipping = false;
                                reader->n_damaged++;
                        } else {
                                r = read_line(reader, buffer + start, (size_t) (p - buffer) - start);
                                if (r < 0)
                                        return r;
                        }
                        start = searched = (size_t) (p - buffer) + 1;
                        end = offset - (filled - start);
                }
                filled -= start;
                if (start > 0)
                        memmove(buffer, buffer + start, filled);
                if (filled > LINE_MAX_BYTES) {
                        skipping = true;
                        filled = 0;
                }
        }
        *ret_end = end;
        return 0;
}

StateLog *state_log_close(StateLog *log) {
        if (!log)
                return NULL;
        if (log->fd >= 0)
                (void) close(log->fd);
        if (log->dir_fd >= 0)
                (void) close(log->dir_fd);
        free(log->name);
        free(log);
        return NULL;
}

static void log_close_pointer(StateLog **log) {
        (void) state_log_close(*log);
}

int state_log_open(int dir_fd, const char *name, int (*fn)(json_t *record, void *userdata), void *userdata, size_t *ret_damaged, StateLog **ret) {
        _cleanup_(log_close_pointer) StateLog *log = NULL;
        Reader reader = { .fn = fn, .userdata = userdata };
        struct stat st;
        int r;

        log = calloc(1, sizeof(*log));
        if (!log)
                return -ENOMEM;
        log->fd = -1;
        log->dir_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (log->dir_fd < 0)
                return -errno;
        log->name = strdup(name);
        if (!log->name)
                return -ENOMEM;

        log->fd = state_io_open(dir_fd, name, O_RDWR);
        if (log->fd == -EROFS) {
                log->read_only = true;
                log->fd = state_io_open(dir_fd, name, O_RDONLY);
        }
        if (log->fd == -ENOENT) {
                /* The first log comes like every later one: whole, under another name first. */
                if (!log->read_only) {
                        r = state_log_rewrite(log, NULL, NULL);
                        if (r == -EROFS)
                                log->read_only = true;
                        else if (r < 0)
                                return r;
                }
        } else if (log->fd < 0)
                return log->fd;
        else {
                if (fstat(log->fd, &st) < 0)
                        return -errno;
                if ((uint64_t) st.st_size > FILE_MAX_BYTES)
                        return -EBADMSG;
                r = read_lines(log->fd, &reader, &log->committed);
                if (r < 0)
                        return r;
                log->size = log->committed;
                if (!log->read_only && (uint64_t) st.st_size > log->committed) {
                        r = state_io_truncate(log->fd, log->committed);
                        if (r < 0)
                                return r;
                }
                /* Not even the header was whole (the file was made by somebody else, or cut down to nothing). */
                if (log->committed == 0)
                        log->broken = true;
        }

        if (ret_damaged)
                *ret_damaged = reader.n_damaged;
        *ret = TAKE_PTR(log);
        return 0;
}

void state_log_cancel(StateLog *log) {
        if (log->size == log->committed || log->broken)
                return;
        if (state_io_truncate(log->fd, log->committed) < 0)
                log->broken = true;
        log->size = log->committed;
}

int state_log_add(StateLog *log, json_t *records) {
        _cleanup_free_ char *line = NULL;
        size_t length;
        int r;

        if (log->read_only)
                return -EROFS;
        if (log->broken)
                return -EIO;
        if (!json_is_array(records))
                return -EINVAL;
        if (json_array_size(records) == 0)
                return 0;
        r = format_line(json_array_size(records) == 1 ? json_array_get(records, 0) : records, &line, &length);
        if (r >= 0 && log->size + length > FILE_MAX_BYTES)
                r = -EFBIG;
        if (r >= 0) {
                r = state_io_write(log->fd, line, length, log->size);
                log->size += length; /* also after an error: some of it may be there */
        }
        if (r < 0)
                state_log_cancel(log);
        return r;
}

int state_log_commit(StateLog *log) {
        int r;

        if (log->read_only)
                return -EROFS;
        if (log->broken)
                return -EIO;
        if (log->size == log->committed)
                return 0;
        r = state_io_sync(log->fd);
        if (r < 0) {
                state_log_cancel(log);
                /* After a failed sync the kernel forgets which pages were dirty: only a new file is sure. */
                log->broken = true;
                return r;
        }
        log->committed = log->size;
        return 0;
}

int state_log_append(StateLog *log, json_t *records) {
        int r;

        r = state_log_add(log, records);
        if (r < 0)
                return r;
        return state_log_commit(log);
}

/* Gathers lines, so that a rewrite of many small ones takes few calls. */
typedef struct Batch {
        char bytes[64 << 10];
        size_t filled;
        uint64_t offset; /* where bytes go in the file */
} Batch;

static int batch_flush(Batch *b, int fd) {
        int r;

        if (b->filled == 0)
                return 0;
        r = state_io_write(fd, b->bytes, b->filled, b->offset);
        b->offset += b->filled;
        b->filled = 0;
        return r;
}

static int batch_put(Batch *b, int fd, const char *line, size_t length) {
        int r;

        if (length > sizeof(b->bytes) - b->filled) {
                r = batch_flush(b, fd);
                if (r < 0)
                        return r;
        }
        if (length <= sizeof(b->bytes)) {
                memcpy(b->bytes + b->filled, line, length);
                b->filled += length;
                return 0;
        }
        r = state_io_write(fd, line, length, b->offset);
        b->offset += length;
        return r;
}

int state_log_rewrite(StateLog *log, int (*next)(void *userdata, json_t **ret), void *userdata) {
        _cleanup_free_ char *temporary = NULL;
        _cleanup_close_ int fd = -1;
        Batch batch = { .offset = strlen(HEADER) };
        int r;

        if (log->read_only)
                return -EROFS;
        if (asprintf(&temporary, "%s.tmp", log->name) < 0) {
                temporary = NULL;
                return -ENOMEM;
        }
        fd = state_io_create(log->dir_fd, temporary);
        if (fd < 0)
                return fd;

        r = state_io_write(fd, HEADER, strlen(HEADER), 0);
        while (r >= 0 && next) {
                _cleanup_free_ char *line = NULL;
                size_t length = 0;
                json_t *record = NULL;

                r = next(userdata, &record);
                if (r <= 0)
                        break;
                r = format_line(record, &line, &length);
                json_decref(record);
                if (r >= 0)
                        r = batch_put(&batch, fd, line, length);
        }
        if (r >= 0)
                r = batch_flush(&batch, fd);
        if (r >= 0)
                r = state_io_sync(fd);
        if (r >= 0)
                r = state_io_rename(log->dir_fd, temporary, log->name);
        if (r < 0) {
                (void) state_io_unlink(log->dir_fd, temporary);
                return r;
        }

        /* From here on the new file is the log, whatever becomes of the rest. */
        if (log->fd >= 0)
                (void) close(log->fd);
        log->fd = TAKE_FD(fd);
        log->committed = log->size = batch.offset;
        log->broken = false;
        r = state_io_sync_directory(log->dir_fd);
        if (r < 0)
                /* Until the name is durable, appends to this file are worth nothing. */
                log->broken = true;
        return r;
}

typedef struct ArrayCursor {
        json_t *records;
        size_t next;
} ArrayCursor;

static int next_of_array(void *userdata, json_t **ret) {
        ArrayCursor *c = userdata;

        if (c->next >= json_array_size(c->records))
                return 0;
        *ret = json_incref(json_array_get(c->records, c->next++));
        return 1;
}

int state_log_replace(StateLog *log, json_t *records) {
        ArrayCursor cursor = { .records = records };

        if (!json_is_array(records))
                return -EINVAL;
        return state_log_rewrite(log, next_of_array, &cursor);
}

bool state_log_needs_rewrite(const StateLog *log) {
        return log->broken;
}

int state_log_keep_copy(StateLog *log) {
        return log->read_only ? -EROFS : state_keep_copy(log->dir_fd, log->name);
}

uint64_t state_log_size(const StateLog *log) {
        return log->size;
}
