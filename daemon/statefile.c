/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whole documents. A reader sees the old file or the new one, never a mixture: the new content is on the disk before it gets the name, and
 * the name is on the disk before anybody is told so. */

#include "daemon/statefile.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/state-io.h"

#define DAMAGED_SLOTS 9

static bool has_version(const json_t *document) {
        json_t *v = json_object_get(document, "version");

        return json_is_integer(v) && json_integer_value(v) > 0;
}

int state_write_json(int dir_fd, const char *name, json_t *document) {
        _cleanup_free_ char *temporary = NULL, *text = NULL;
        _cleanup_close_ int fd = -1;
        size_t length;
        int r;

        if (!has_version(document))
                return -EINVAL;
        text = json_dumps(document, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
        if (!text)
                return -ENOMEM;
        length = strlen(text);
        text[length++] = '\n'; /* in place of the NUL: the length rules from here on */
        if (asprintf(&temporary, "%s.tmp", name) < 0) {
                temporary = NULL;
                return -ENOMEM;
        }

        fd = state_io_create(dir_fd, temporary);
        if (fd < 0)
                return fd;
        r = state_io_write(fd, text, length, 0);
        if (r >= 0)
                r = state_io_sync(fd);
        if (r >= 0)
                r = state_io_rename(dir_fd, temporary, name);
        if (r < 0) {
                (void) state_io_unlink(dir_fd, temporary);
                return r;
        }
        return state_io_sync_directory(dir_fd);
}

static void say(char *error_text, size_t error_size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(char *error_text, size_t error_size, const char *format, ...) {
        va_list ap;

        if (!error_text || error_size == 0)
                return;
        va_start(ap, format);
        (void) vsnprintf(error_text, error_size, format, ap);
        va_end(ap);
        /* jansson quotes the damaged bytes. */
        for (char *p = error_text; *p; p++)
                if ((unsigned char) *p < 0x20 || (unsigned char) *p >= 0x7f)
                        *p = '?';
}

int state_read_json(int dir_fd, const char *name, size_t max, json_t **ret, char *error_text, size_t error_size) {
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int fd = -1;
        struct stat st;
        json_error_t error;
        json_t *document;
        ssize_t n;

        fd = state_io_open(dir_fd, name, O_RDONLY);
        if (fd < 0) {
                if (fd == -EBADMSG)
                        say(error_text, error_size, "not a regular file");
                return fd;
        }
        if (fstat(fd, &st) < 0)
                return -errno;
        if ((uint64_t) st.st_size > max) {
                say(error_text, error_size, "larger than %zu bytes", max);
                return -EBADMSG;
        }
        text = malloc((size_t) st.st_size + 1);
        if (!text)
                return -ENOMEM;
        n = state_io_read(fd, text, (size_t) st.st_size, 0);
        if (n < 0)
                return (int) n;

        document = json_loadb(text, (size_t) n, JSON_REJECT_DUPLICATES, &error);
        if (!document) {
                say(error_text, error_size, "line %d, column %d: %s", error.line, error.column, error.text);
                return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EBADMSG;
        }
        if (!has_version(document)) {
                say(error_text, error_size, "no \"version\"");
                json_decref(document);
                return -EBADMSG;
        }
        *ret = document;
        return 0;
}

/* Finds the name for a damaged file: the first that is free, or the last. */
static int damaged_name(int dir_fd, const char *name, char **ret) {
        for (unsigned i = 1; i <= DAMAGED_SLOTS; i++) {
                char *candidate;
                struct stat st;

                if (asprintf(&candidate, "%s.damaged-%u", name, i) < 0)
                        return -ENOMEM;
                if (i == DAMAGED_SLOTS || (fstatat(dir_fd, candidate, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)) {
                        *ret = candidate;
                        return 0;
                }
                free(candidate);
        }
        return -EEXIST;
}

int state_put_aside(int dir_fd, const char *name) {
        _cleanup_free_ char *aside = NULL;
        int r;

        r = damaged_name(dir_fd, name, &aside);
        if (r < 0)
                return r;
        r = state_io_rename(dir_fd, name, aside);
        if (r < 0)
                return r;
        return state_io_sync_directory(dir_fd);
}

int state_keep_copy(int dir_fd, const char *name) {
        _cleanup_free_ char *aside = NULL;
        int r;

        r = damaged_name(dir_fd, name, &aside);
        if (r < 0)
                return r;
        r = state_io_unlink(dir_fd, aside);
        if (r >= 0)
                r = state_io_link(dir_fd, name, aside);
        if (r < 0)
                return r;
        return state_io_sync_directory(dir_fd);
}

json_t *state_string_to_json(const char *s) {
        static const char digits[] = "0123456789abcdef";
        _cleanup_free_ char *hex = NULL;
        json_t *j;
        size_t n;

        if (!s)
                return json_null();
        j = json_string(s); /* NULL when it is not UTF-8 */
        if (j)
                return j;
        n = strlen(s);
        hex = malloc(2 * n + 1);
        if (!hex)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                hex[2 * i] = digits[(unsigned char) s[i] >> 4];
                hex[2 * i + 1] = digits[s[i] & 15];
        }
        hex[2 * n] = 0;
        return json_pack("{s:s}", "hex", hex);
}

static int hex_digit(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int state_string_from_json(const json_t *j, char **ret) {
        _cleanup_free_ char *s = NULL;
        const char *hex;
        size_t n;

        if (!j || json_is_null(j)) {
                *ret = NULL;
                return 0;
        }
        if (json_is_string(j)) {
                s = strdup(json_string_value(j));
                if (!s)
                        return -ENOMEM;
                *ret = TAKE_PTR(s);
                return 0;
        }
        hex = json_string_value(json_object_get(j, "hex"));
        if (!hex)
                return -EBADMSG;
        n = strlen(hex);
        if (n % 2 != 0)
                return -EBADMSG;
        s = malloc(n / 2 + 1);
        if (!s)
                return -ENOMEM;
        for (size_t i = 0; i < n; i += 2) {
                int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);

                if (high < 0 || low < 0 || (high == 0 && low == 0))
                        return -EBADMSG;
                s[i / 2] = (char) (high << 4 | low);
        }
        s[n / 2] = 0;
        *ret = TAKE_PTR(s);
        return 0;
}
