/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Policy on disk: documents of the vendor's and the admin's directory and what the API stored, merged in name order; a file of a later directory
 * replaces one of the same name. A reload builds a new policy beside the old one and swaps only when all of it is good. */

#include "daemon/manager-internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define DOCUMENT_MAX (1U << 20)
#define DOCUMENTS_MAX 512
#define RUNTIME_FILE "runtime-policy.json"

typedef struct File {
        char *name, *path, *text;
        size_t length;
} File;

typedef struct Files {
        File *items;
        size_t n, capacity;
} Files;

static void files_clear(Files *f) {
        for (size_t i = 0; i < f->n; i++) {
                free(f->items[i].name);
                free(f->items[i].path);
                free(f->items[i].text);
        }
        free(f->items);
        *f = (Files) { 0 };
}

static int read_document(int dir_fd, const char *name, char **ret, size_t *ret_length) {
        _cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        _cleanup_free_ char *text = NULL;
        struct stat st;
        size_t length = 0;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        if (st.st_size > DOCUMENT_MAX)
                return -EFBIG;
        text = malloc(DOCUMENT_MAX + 1);
        if (!text)
                return -ENOMEM;
        for (;;) {
                ssize_t n = read(fd, text + length, DOCUMENT_MAX + 1 - length);

                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                length += (size_t) n;
                if (length > DOCUMENT_MAX)
                        return -EFBIG;
        }
        text[length] = 0;
        *ret = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}

static int by_name(const void *a, const void *b) {
        return strcmp(((const File *) a)->name, ((const File *) b)->name);
}

static int read_directory(const char *directory, Files *files, DiagList *list) {
        DIR *d = opendir(directory);
        int r = 0;

        if (!d)
                return errno == ENOENT ? 0 : -errno;
        for (struct dirent *e = readdir(d); e; e = readdir(d)) {
                File file = { 0 }, *slot = NULL;

                if (e->d_name[0] == '.' || !endswith(e->d_name, ".json"))
                        continue;
                if (files->n >= DOCUMENTS_MAX) {
                        diag_add(list, directory, 0, "", NULL, "512 files", "too many policy files");
                        r = -EINVAL;
                        break;
                }
                if (asprintf(&file.path, "%s/%s", directory, e->d_name) < 0) {
                        r = -ENOMEM;
                        break;
                }
                file.name = strdup(e->d_name);
                if (!file.name) {
                        free(file.path);
                        r = -ENOMEM;
                        break;
                }
                r = read_document(dirfd(d), e->d_name, &file.text, &file.length);
                if (r < 0) {
                        diag_add(list, file.path, 0, "", NULL, "a readable file of at most 1 MiB", "can't be read: %s", strerror(-r));
                        free(file.path);
                        free(file.name);
                        r = -EINVAL;
                        continue;
                }
                for (size_t i = 0; i < files->n; i++)
                        if (streq(files->items[i].name, file.name))
                                slot = &files->items[i];
                if (slot) {
                        free(slot->name);
                        free(slot->path);
                        free(slot->text);
                        *slot = file;
                        continue;
                }
                r = GROW_ARRAY(files->items, files->n, files->capacity);
                if (r < 0)
                        break;
                files->items[files->n++] = file;
        }
        (void) closedir(d);
        return list->n_items > 0 ? -EINVAL : r;
}

/* Builds a policy from the directories and a run-time document (NULL: none). */
static int build(Manager *m, json_t *runtime, Policy **ret, DiagList *list) {
        Files files = { 0 };
        _cleanup_free_ PolicyDocument *documents = NULL;
        _cleanup_free_ char *runtime_text = NULL;
        size_t n = 0;
        int r = 0;

        for (const char *const *d = m->config.policy_dirs; d && *d; d++) {
                r = read_directory(*d, &files, list);
                if (r < 0)
                        goto finish;
        }
        if (files.n > 1)
                qsort(files.items, files.n, sizeof(*files.items), by_name);
        documents = calloc(files.n + 1, sizeof(*documents));
        if (!documents) {
                r = -ENOMEM;
                goto finish;
        }
        for (; n < files.n; n++)
                documents[n] = (PolicyDocument) { files.items[n].path, files.items[n].text, files.items[n].length };
        if (runtime) {
                runtime_text = json_dumps(runtime, JSON_COMPACT);
                if (!runtime_text) {
                        r = -ENOMEM;
                        goto finish;
                }
                documents[n++] = (PolicyDocument) { RUNTIME_FILE, runtime_text, strlen(runtime_text) };
        }
        r = policy_build(documents, n, ret, list);
finish:
        files_clear(&files);
        return r;
}

/* Puts a new policy in force. Groups point into the old one, so all are classified anew before it is freed. */
static void swap(Manager *m, Policy *fresh) {
        Policy *old = m->policy;

        m->policy = fresh;
        m->policy_revision++;
        free(TAKE_PTR(m->policy_error));
        for (size_t i = 0; i < m->groups.n; i++) {
                Group *g = m->groups.items[i];

                if (m->units_awaited_usec)
                        continue;            /* none has a class yet */
                classify_and_plan(m, g);
                if (g->managed || g->unknown_class)
                        manager_mark_dirty(m, g);
        }
        (void) policy_free(old);
}

int policy_load(Manager *m, DiagList *list) {
        _cleanup_(policy_free_pointer) Policy *fresh = NULL;
        char error_text[256] = "", message[128];
        json_t *runtime = NULL;
        int r;

        r = state_read_json(m->state_fd, RUNTIME_FILE, DOCUMENT_MAX, &runtime, error_text, sizeof(error_text));
        if (r == -EBADMSG) {
                log_fields(LOG_ERR, MESSAGE_STATE_DAMAGED, "The policy that the API stored was damaged: it was put aside", "CPUCLASS_ERROR", error_text, NULL);
                (void) state_put_aside(m->state_fd, RUNTIME_FILE);
        } else if (r < 0 && r != -ENOENT)
                return r;
        r = build(m, runtime, &fresh, list);
        if (r < 0) {
                _cleanup_free_ char *text = list->n_items > 0 ? diag_to_string(&list->items[0]) : NULL;

                (void) free_and_strdup(&m->policy_error, text ? text : strerror(-r));
                if (runtime)
                        json_decref(runtime);
                return r;
        }
        if (m->runtime_policy)
                json_decref(m->runtime_policy);
        m->runtime_policy = runtime;
        (void) snprintf(message, sizeof(message), "Policy in force: %zu classes, %zu rules", fresh->n_classes, fresh->n_rules);
        swap(m, TAKE_PTR(fresh));
        log_fields(LOG_INFO, MESSAGE_POLICY_LOADED, message, NULL);
        return 0;
}

int manager_reload_policy(Manager *m, DiagList *list) {
        int r = policy_load(m, list);

        for (size_t i = 0; i < list->n_items; i++) {
                _cleanup_free_ char *text = diag_to_string(&list->items[i]);

                log_fields(LOG_ERR, MESSAGE_POLICY_REFUSED, text ? text : "bad policy", NULL);
        }
        if (r < 0)
                log_error("The policy was not reloaded: the old one stays in force");
        return r;
}

/* Tries a changed run-time document: checks, stores, swaps. On failure nothing has changed. */
static int change_runtime(Manager *m, json_t *document, DiagList *list) {
        _cleanup_(policy_free_pointer) Policy *fresh = NULL;
        int r = build(m, document, &fresh, list);

        if (r < 0)
                return r;
        r = state_write_json(m->state_fd, RUNTIME_FILE, document);
        if (r < 0) {
                diag_add(list, RUNTIME_FILE, 0, "", NULL, NULL, "could not be stored: %s", strerror(-r));
                return r;
        }
        if (m->runtime_policy)
                json_decref(m->runtime_policy);
        m->runtime_policy = json_incref(document);
        swap(m, TAKE_PTR(fresh));
        return 0;
}

static json_t *runtime_copy(const Manager *m) {
        json_t *copy = m->runtime_policy ? json_deep_copy(m->runtime_policy) : json_pack("{s:i}", "version", POLICY_VERSION);

        if (!copy)
                return NULL;
        if (!json_is_array(json_object_get(copy, "classes")))
                json_object_set_new(copy, "classes", json_array());
        if (!json_is_array(json_object_get(copy, "rules")))
                json_object_set_new(copy, "rules", json_array());
        return copy;
}

static size_t find_named(json_t *array, const char *name) {
        size_t i;
        json_t *o;

        json_array_foreach(array, i, o) {
                const char *s = json_string_value(json_object_get(o, "name"));

                if (s && streq(s, name))
                        return i;
        }
        return SIZE_MAX;
}

int manager_put_class(Manager *m, const char *name, json_t *json, bool *ret_created, DiagList *list) {
        json_t *document = runtime_copy(m), *copy = NULL, *classes;
        const char *named;
        size_t i;
        int r = -ENOMEM;

        if (!document)
                return -ENOMEM;
        if (!json_is_object(json)) {
                diag_add(list, "request body", 0, "", NULL, "an object", "a class must be a JSON object");
                r = -EINVAL;
                goto finish;
        }
        named = json_string_value(json_object_get(json, "name"));
        if (json_object_get(json, "name") && (!named || !streq(named, name))) {
                diag_add(list, "request body", 0, "/name", named, name, "differs from the name in the address");
                r = -EINVAL;
                goto finish;
        }
        copy = json_deep_copy(json);
        if (!copy || json_object_set_new(copy, "name", json_string(name)) < 0)
                goto finish;
        classes = json_object_get(document, "classes");
        i = find_named(classes, name);
        if (i == SIZE_MAX ? json_array_append(classes, copy) < 0 : json_array_set(classes, i, copy) < 0)
                goto finish;
        if (ret_created)
                *ret_created = !policy_find_class(m->policy, name);
        r = change_runtime(m, document, list);
finish:
        if (copy)
                json_decref(copy);
        json_decref(document);
        return r;
}

int manager_delete_class(Manager *m, const char *name, DiagList *list) {
        json_t *document = runtime_copy(m), *classes;
        size_t i;
        int r;

        if (!document)
                return -ENOMEM;
        classes = json_object_get(document, "classes");
        i = find_named(classes, name);
        if (i == SIZE_MAX) {
                json_decref(document);
                return policy_find_class(m->policy, name) ? -EPERM : -ENOENT;
        }
        (void) json_array_remove(classes, i);
        r = change_runtime(m, document, list);
        json_decref(document);
        return r;
}

int manager_put_rules(Manager *m, json_t *rules_array, DiagList *list) {
        json_t *document = runtime_copy(m);
        int r;

        if (!document)
                return -ENOMEM;
        if (!json_is_array(rules_array)) {
                diag_add(list, "request body", 0, "", NULL, "an array", "rules must be a JSON array");
                json_decref(document);
                return -EINVAL;
        }
        r = json_object_set(document, "rules", rules_array) < 0 ? -ENOMEM : change_runtime(m, document, list);
        json_decref(document);
        return r;
}
