/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a unit's files to its owner's word: what they say without our own run-time drop-in.
 *
 * Drop-ins apply in the order of their file names, whatever directory they are in; of two with the same name only the one in the directory that comes
 * first in the search path counts. systemd appends a fresh run-time drop-in at the end of DropInPaths and sorts it in only at the next reload, so the order is
 * made anew here. */

#include "daemon/units-internal.h"

#include <fcntl.h>
#include <sys/stat.h>

#define QUOTA_DROPIN "50-CPUQuota.conf"
#define PERIOD_DROPIN "50-CPUQuotaPeriodSec.conf"
#define DROPINS_MAX 512
#define PERSISTENT_CONTROL "/etc/systemd/system.control/" /* systemctl set-property without --runtime */

int unit_file_read(const char *path, size_t max, char **ret, size_t *ret_length) {
        _cleanup_close_ int place = -1, fd = -1;
        _cleanup_free_ char *text = NULL;
        char by_fd[40];
        struct stat st;
        size_t n = 0;

        /* Look before opening: opening a device or a pipe may do something. */
        place = open(path, O_PATH | O_CLOEXEC);
        if (place < 0)
                return -errno;
        if (fstat(place, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EBADMSG;
        if ((uint64_t) st.st_size > max)
                return -EFBIG;
        (void) snprintf(by_fd, sizeof(by_fd), "/proc/self/fd/%d", place);
        fd = open(by_fd, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        text = malloc((size_t) st.st_size + 1);
        if (!text)
                return -ENOMEM;
        while (n < (size_t) st.st_size) {
                ssize_t k = read(fd, text + n, (size_t) st.st_size - n);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                if (k == 0)
                        break;
                n += (size_t) k;
        }
        text[n] = 0;
        *ret = TAKE_PTR(text);
        if (ret_length)
                *ret_length = n;
        return 0;
}

static const char *base_name(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* A file that counts: a path, or a text that stands for what would be there without us. */
typedef struct Source {
        const char *path;
        const char *text; /* NULL: read the path */
        size_t rank;      /* of its directory, lower wins among the same name */
} Source;

static int compare_sources(const void *x, const void *y) {
        const Source *a = x, *b = y;
        int c = strcmp(base_name(a->path), base_name(b->path));

        return c ? c : a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Precedence of a path's directory in systemd's search path; unknown ones come last. */
static size_t rank_of(const char *path, char *const *search_path) {
        size_t i = 0;

        for (; search_path && search_path[i]; i++) {
                size_t n = strlen(search_path[i]);

                if (strncmp(path, search_path[i], n) == 0 && path[n] == '/')
                        return i;
        }
        if (!search_path)
                /* The two that matter here, when systemd has not told yet. */
                return startswith(path, PERSISTENT_CONTROL) ? 0 : startswith(path, RUNTIME_CONTROL "/") ? 1 : startswith(path, RUNTIME_TRANSIENT "/") ? 2 : 3;
        return i;
}

/* The drop-in DIRECTORY/NAME.d/FILE or, for an instance, of its template; a new path, NULL when there is none. */
static char *find_dropin(const char *directory, const char *name, const char *file) {
        const char *at = strchr(name, '@'), *dot = strrchr(name, '.');
        struct stat st;
        char *path;

        if (asprintf(&path, "%s/%s.d/%s", directory, name, file) < 0)
                return NULL;
        if (stat(path, &st) == 0)
                return path;
        free(path);
        if (!at || !dot || asprintf(&path, "%s/%.*s%s.d/%s", directory, (int) (at + 1 - name), name, dot, file) < 0)
                return NULL;
        if (stat(path, &st) == 0)
                return path;
        free(path);
        return NULL;
}

/* What our drop-in hides: the file of the same name in the best of the directories behind its own, for any name of the unit. */
static char *find_hidden(const UnitInfo *info, char *const *search_path, size_t behind_rank, const char *file) {
        for (size_t d = 0; search_path && search_path[d]; d++)
                for (size_t i = 0; d > behind_rank && info->names && info->names[i]; i++) {
                        char *path = find_dropin(search_path[d], info->names[i], file);

                        if (path)
                                return path;
                }
        return NULL;
}

/* Whether a path is the unit's own run-time drop-in of this name. */
static bool is_runtime_dropin(const UnitInfo *info, const char *path, const char *name) {
        const char *p = path;

        if (startswith(p, RUNTIME_CONTROL "/"))
                p += strlen(RUNTIME_CONTROL "/");
        else if (startswith(p, RUNTIME_TRANSIENT "/"))
                p += strlen(RUNTIME_TRANSIENT "/");
        else
                return false;
        if (!startswith(p, info->id))
                return false;
        p += strlen(info->id);
        return startswith(p, ".d/") && streq(p + 3, name);
}

/* One of our two possible drop-ins: if it is ours, what counts in its place. Returns 1 when source was changed, 0 when it stays or is gone (*ret_gone). */
static int see_own(const UnitInfo *info, Source *source, char *const *search_path, OwnDropin own, void *userdata, char **ret_hidden, bool *ret_gone) {
        const char *property = streq(base_name(source->path), QUOTA_DROPIN) ? "CPUQuota" : "CPUQuotaPeriodSec", *original = NULL;
        _cleanup_free_ char *content = NULL;
        int r;

        *ret_gone = false;
        r = unit_file_read(source->path, UNIT_FILE_MAX_BYTES, &content, NULL);
        if (r == -ENOENT) {
                *ret_gone = true;
                return 0;
        }
        if (r < 0 || !own || !own(info->id, property, content, &original, userdata))
                return r == -ENOMEM ? r : 0;
        if (original) {
                source->text = original;
                return 1;
        }
        *ret_hidden = find_hidden(info, search_path, source->rank, base_name(source->path));
        if (!*ret_hidden) {
                *ret_gone = true;
                return 0;
        }
        source->path = *ret_hidden;
        source->rank = rank_of(source->path, search_path);
        return 1;
}

/* Whether a drop-in wins against the one that systemd writes for us, once it has read its files again. */
static bool beats_ours(const Source *s, size_t own_rank) {
        int c = strcmp(base_name(s->path), QUOTA_DROPIN);

        return c > 0 || (c == 0 && s->rank < own_rank);
}

int unit_files_load(UnitInfo *info, char *const *search_path, OwnDropin own, void *userdata) {
        const UnitType *type = unit_type_of(info->id);
        _cleanup_free_ Source *sources = NULL;
        _cleanup_free_ char *overriding = NULL;
        char *hidden[2] = { NULL, NULL };
        size_t n = 0, n_paths = 0, n_hidden = 0, own_rank;
        bool known = true;
        UnitWords words;
        int r = 0;

        if (!type)
                return -EINVAL;
        unit_words_init(&words);
        own_rank = rank_of(info->transient ? RUNTIME_TRANSIENT "/" : RUNTIME_CONTROL "/", search_path);
        while (info->dropin_paths && info->dropin_paths[n_paths] && n_paths < DROPINS_MAX)
                n_paths++;
        if (info->dropin_paths && info->dropin_paths[n_paths])
                known = false;
        sources = calloc(n_paths + 1, sizeof(*sources));
        if (!sources)
                return -ENOMEM;
        for (size_t i = 0; i < n_paths; i++) {
                Source s = { .path = info->dropin_paths[i], .rank = rank_of(info->dropin_paths[i], search_path) };
                bool gone = false;

                if ((is_runtime_dropin(info, s.path, QUOTA_DROPIN) || is_runtime_dropin(info, s.path, PERIOD_DROPIN)) && n_hidden < ELEMENTSOF(hidden)) {
                        char *found = NULL;

                        r = see_own(info, &s, search_path, own, userdata, &found, &gone);
                        if (found)
                                hidden[n_hidden++] = found;
                        if (r < 0)
                                goto finish;
                }
                if (!gone)
                        sources[n++] = s;
        }
        qsort(sources, n, sizeof(*sources), compare_sources);

        for (size_t i = 0; i <= n; i++) { /* the unit's main file first */
                const Source fragment = { .path = info->fragment_path }, *s = i == 0 ? &fragment : &sources[i - 1];
                _cleanup_free_ char *read_text = NULL;
                const char *text = s->text;
                size_t length = text ? strlen(text) : 0;

                if (!s->path || !s->path[0])
                        continue;
                if (i > 1 && streq(base_name(s->path), base_name(s[-1].path)))
                        continue; /* hidden by the one before */
                if (!text) {
                        r = unit_file_read(s->path, UNIT_FILE_MAX_BYTES, &read_text, &length);
                        if (r == -ENOMEM)
                                goto finish;
                        if (r < 0) {
                                /* A file that is gone or masked (a link to /dev/null) says nothing; one that we can't read may say anything. */
                                known = known && (r == -ENOENT || r == -EBADMSG);
                                continue;
                        }
                        text = read_text;
                }
                words.says_quota = false;
                r = unit_words_parse(&words, text, length, type->section);
                if (r < 0)
                        goto finish;
                if (i > 0 && words.says_quota && beats_ours(s, own_rank)) {
                        r = free_and_strdup(&overriding, s->path);
                        if (r < 0)
                                goto finish;
                }
        }

        free(info->class_word);
        free(info->overriding_dropin);
        info->class_word = TAKE_PTR(words.class_word);
        info->overriding_dropin = TAKE_PTR(overriding);
        info->owner_quota_known = known;
        info->owner_quota_per_sec_usec = words.quota_per_sec_usec;
        info->owner_quota_period_usec = words.quota_period_usec;
        r = 0;
finish:
        unit_words_clear(&words);
        for (size_t i = 0; i < ELEMENTSOF(hidden); i++)
                free(hidden[i]);
        return r;
}
