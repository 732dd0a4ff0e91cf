/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "client/policy-files.h"

#define DOCUMENT_MAX (1U << 20)
#define DOCUMENTS_MAX 512

static void file_clear(PolicyFile *one) {
        free(one->name);
        free(one->path);
        free(one->text);
        *one = (PolicyFile) {};
}

void policy_files_clear(PolicyFiles *f) {
        for (size_t i = 0; i < f->n_items; i++)
                file_clear(&f->items[i]);
        free(f->items);
        *f = (PolicyFiles) {};
}

static int read_text(int fd, char **ret, size_t *ret_length) {
        _cleanup_free_ char *text = malloc(DOCUMENT_MAX + 2);
        size_t length = 0;
        ssize_t n;

        if (!text)
                return -ENOMEM;
        do {
                n = read(fd, text + length, DOCUMENT_MAX + 1 - length);
                if (n < 0 && errno != EINTR)
                        return -errno;
                length += n > 0 ? (size_t) n : 0;
                if (length > DOCUMENT_MAX)
                        return -EFBIG;
        } while (n != 0);
        text[length] = 0;
        *ret = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}

/* Takes over fd. */
static int add_file(PolicyFiles *f, int fd, const char *path, DiagList *list) {
        _cleanup_close_ int owned = fd;
        _cleanup_(file_clear) PolicyFile one = {};
        const char *slash = strrchr(path, '/');
        int r;

        r = read_text(owned, &one.text, &one.length);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                diag_add(list, path, 0, "", NULL, "a readable file of at most 1 MiB", "can't be read: %s", strerror(-r));
                return -EINVAL;
        }
        one.path = strdup(path);
        one.name = strdup(slash ? slash + 1 : path);
        if (!one.path || !one.name)
                return -ENOMEM;
        for (size_t i = 0; i < f->n_items; i++)
                if (streq(f->items[i].name, one.name)) {
                        file_clear(&f->items[i]);
                        f->items[i] = one;
                        one = (PolicyFile) {};
                        return 0;
                }
        if (f->n_items >= DOCUMENTS_MAX) {
                diag_add(list, path, 0, "", NULL, "512 files", "too many policy files");
                return -EINVAL;
        }
        r = GROW_ARRAY(f->items, f->n_items, f->capacity);
        if (r < 0)
                return r;
        f->items[f->n_items++] = one;
        one = (PolicyFile) {};
        return 0;
}

static int add_directory(PolicyFiles *f, DIR *d, const char *path, DiagList *list) {
        int r = 0;

        for (const struct dirent *e; (e = readdir(d));) {
                _cleanup_free_ char *below = NULL;
                int fd, k;

                if (e->d_name[0] == '.' || !endswith(e->d_name, ".json"))
                        continue;
                if (asprintf(&below, "%s/%s", path, e->d_name) < 0) {
                        below = NULL;
                        return -ENOMEM;
                }
                fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
                if (fd < 0) {
                        diag_add(list, below, 0, "", NULL, NULL, "can't be read: %s", strerror(errno));
                        r = -EINVAL;
                        continue;
                }
                k = add_file(f, fd, below, list);
                if (k == -ENOMEM)
                        return k;
                r = k < 0 ? k : r;
        }
        return r;
}

static void closedir_pointer(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

int policy_files_add(PolicyFiles *f, const char *path, bool optional, DiagList *list) {
        _cleanup_(closedir_pointer) DIR *d = NULL;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0) {
                int error = errno;

                if (fd >= 0)
                        (void) close(fd);
                if (optional && error == ENOENT)
                        return 0;
                diag_add(list, path, 0, "", NULL, NULL, "can't be read: %s", strerror(error));
                return -EINVAL;
        }
        if (!S_ISDIR(st.st_mode))
                return add_file(f, fd, path, list);
        d = fdopendir(fd);
        if (!d) {
                (void) close(fd);
                return -ENOMEM;
        }
        return add_directory(f, d, path, list);
}

static int by_name(const void *a, const void *b) {
        return strcmp(((const PolicyFile *) a)->name, ((const PolicyFile *) b)->name);
}

int policy_files_build(PolicyFiles *f, Policy **ret, DiagList *list) {
        _cleanup_free_ PolicyDocument *documents = calloc(f->n_items + 1, sizeof(*documents));

        if (!documents)
                return -ENOMEM;
        if (f->n_items > 1)
                qsort(f->items, f->n_items, sizeof(*f->items), by_name);
        for (size_t i = 0; i < f->n_items; i++)
                documents[i] = (PolicyDocument) { f->items[i].path, f->items[i].text, f->items[i].length };
        return policy_build(documents, f->n_items, ret, list);
}
