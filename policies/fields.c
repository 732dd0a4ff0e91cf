/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The decoder goes through the table, not through the object: what a table names is taken and checked, then what is left in
 * the object is unknown. It never stops at a mistake. */

#include <inttypes.h>

#include "policies/document.h"
#include "policies/fields.h"
#include "policies/util.h"

#define WORD_MAX 64   /* longer keys get no "did you mean" */
#define FIELDS_MAX 64 /* members of one table */

void field_complain(const FieldReader *reader, const char *pointer, json_t *value, const char *limit, const char *format, ...) {
        _cleanup_free_ char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL, *message = NULL;
        va_list ap;

        va_start(ap, format);
        if (vasprintf(&message, format, ap) < 0)
                message = NULL;
        va_end(ap);
        diag_add(reader->list, reader->file, 0, pointer, text, limit, "%s", message ?: "invalid");
}

const char *field_limit(const Field *f, char *buffer, size_t size) {
        size_t used;

        switch (f->type) {
        case FIELD_STRING:
                (void) snprintf(buffer, size, "string, %" PRId64 " to %" PRId64 " bytes", f->least, f->most);
                break;
        case FIELD_BOOL:
                (void) snprintf(buffer, size, "true or false");
                break;
        case FIELD_INT:
        case FIELD_UINT32:
        case FIELD_UINT64:
                (void) snprintf(buffer, size, "integer, %" PRId64 " to %" PRId64, f->least, f->most);
                break;
        case FIELD_WORD:
                used = 0;
                buffer[0] = 0;
                for (const char *const *w = f->words; *w && used < size; w++)
                        used += (size_t) snprintf(buffer + used, size - used, "%s\"%s\"",
                                                  w == f->words ? "" : w[1] ? ", " : " or ", *w);
                break;
        case FIELD_OBJECT:
                (void) snprintf(buffer, size, "an object");
                break;
        case FIELD_LIST:
                (void) snprintf(buffer, size, "array, %" PRId64 " to %" PRId64 " elements", f->least, f->most);
                break;
        case FIELD_MAP:
                (void) snprintf(buffer, size, "object, %" PRId64 " to %" PRId64 " members", f->least, f->most);
                break;
        case FIELD_COMMENT:
                (void) snprintf(buffer, size, "a string or an array of strings");
                break;
        case FIELD_CUSTOM:
                (void) snprintf(buffer, size, "%s", f->allowed);
                break;
        }
        return buffer;
}

/* Edits (insert, delete, replace, swap of neighbours) from a to b: the optimal string alignment distance. */
static unsigned distance(const char *a, const char *b) {
        size_t n = strlen(a), m = strlen(b);
        unsigned rows[3][WORD_MAX + 1];

        for (size_t j = 0; j <= m; j++)
                rows[0][j] = (unsigned) j;
        for (size_t i = 1; i <= n; i++) {
                unsigned *row = rows[i % 3];
                const unsigned *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];

                row[0] = (unsigned) i;
                for (size_t j = 1; j <= m; j++) {
                        unsigned d = above[j - 1] + (a[i - 1] != b[j - 1]);

                        d = MIN_OF(d, MIN_OF(above[j], row[j - 1]) + 1);
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                d = MIN_OF(d, above2[j - 2] + 1);
                        row[j] = d;
                }
        }
        return rows[n % 3][m];
}

const char *nearest_word(const char *typed, const char *const *words, size_t n_words) {
        size_t n = strlen(typed);
        unsigned best = n < 4 ? 2 : n < 8 ? 3 : 4; /* a third of the letters may be wrong; one below each of these counts */
        const char *found = NULL;

        if (n > WORD_MAX)
                return NULL;
        for (size_t i = 0; i < n_words; i++) {
                unsigned d;

                if (!words[i] || strlen(words[i]) > WORD_MAX)
                        continue;
                d = distance(typed, words[i]);
                if (d < best) {
                        best = d;
                        found = words[i];
                }
        }
        return found;
}

static int wrong(const FieldReader *reader, const char *pointer, json_t *value, const Field *f, const char *message) {
        char limit[256];

        field_complain(reader, pointer, value, field_limit(f, limit, sizeof(limit)), "%s", message);
        return -EINVAL;
}

static int decode_integer(const FieldReader *reader, const char *pointer, json_t *value, const Field *f, void *slot) {
        json_int_t i;

        if (!json_is_integer(value))
                return wrong(reader, pointer, value, f, "wrong type");
        i = json_integer_value(value);
        if (i < f->least || i > f->most)
                return wrong(reader, pointer, value, f, "out of range");
        if (f->type == FIELD_INT)
                *(int *) slot = (int) i;
        else if (f->type == FIELD_UINT32)
                *(uint32_t *) slot = (uint32_t) i;
        else
                *(uint64_t *) slot = (uint64_t) i;
        return 0;
}

static int decode_string(const FieldReader *reader, const char *pointer, json_t *value, const Field *f, void *slot) {
        const char *limit, *s;
        size_t n;

        if (!json_is_string(value))
                return wrong(reader, pointer, value, f, "wrong type");
        s = json_string_value(value);
        n = json_string_length(value);
        if (n < (size_t) f->least || n > (size_t) f->most)
                return wrong(reader, pointer, value, f, n == 0 ? "must not be empty" : "wrong length");
        limit = f->check ? f->check(s) : NULL;
        if (limit) {
                field_complain(reader, pointer, value, limit, "not a valid value");
                return -EINVAL;
        }
        return free_and_strdup(slot, s);
}

static int decode_word(const FieldReader *reader, const char *pointer, json_t *value, const Field *f, void *slot) {
        const char *near, *s;
        char limit[256];
        size_t n = 0;

        if (!json_is_string(value))
                return wrong(reader, pointer, value, f, "wrong type");
        s = json_string_value(value);
        for (; f->words[n]; n++)
                if (streq(f->words[n], s)) {
                        *(int *) slot = (int) n;
                        return 0;
                }
        near = nearest_word(s, f->words, n);
        if (!near)
                return wrong(reader, pointer, value, f, "unknown word");
        field_complain(reader, pointer, value, field_limit(f, limit, sizeof(limit)), "unknown word; did you mean \"%s\"?", near);
        return -EINVAL;
}

static int decode_container(const FieldReader *reader, const char *pointer, json_t *value, const Field *f, void *slot) {
        bool list = f->type == FIELD_LIST;
        size_t n;

        if (list ? !json_is_array(value) : !json_is_object(value))
                return wrong(reader, pointer, value, f, "wrong type");
        n = list ? json_array_size(value) : json_object_size(value);
        if (n < (size_t) f->least || n > (size_t) f->most) {
                char limit[256];

                field_complain(reader, pointer, NULL, field_limit(f, limit, sizeof(limit)), "too %s (%zu)",
                               n < (size_t) f->least ? "few" : "many", n);
                return -EINVAL;
        }
        *(json_t **) slot = value;
        return 0;
}

static int decode_comment(const FieldReader *reader, const char *pointer, json_t *value, const Field *f) {
        json_t *line;
        size_t i;

        if (json_is_string(value))
                return 0;
        if (!json_is_array(value))
                return wrong(reader, pointer, value, f, "wrong type");
        json_array_foreach(value, i, line)
                if (!json_is_string(line)) {
                        _cleanup_free_ char *at = pointer_to_index(pointer, i);

                        return wrong(reader, at, line, f, "wrong type");
                }
        return 0;
}

static int decode_one(const FieldReader *reader, const char *pointer, json_t *value, const Field *f, void *target) {
        void *slot = (char *) target + f->offset;

        switch (f->type) {
        case FIELD_STRING:
                return decode_string(reader, pointer, value, f, slot);
        case FIELD_BOOL:
                if (!json_is_boolean(value))
                        return wrong(reader, pointer, value, f, "wrong type");
                *(bool *) slot = json_is_true(value);
                return 0;
        case FIELD_INT:
        case FIELD_UINT32:
        case FIELD_UINT64:
                return decode_integer(reader, pointer, value, f, slot);
        case FIELD_WORD:
                return decode_word(reader, pointer, value, f, slot);
        case FIELD_OBJECT:
                return fields_decode(reader, pointer, value, f->fields, target);
        case FIELD_LIST:
        case FIELD_MAP:
                return decode_container(reader, pointer, value, f, slot);
        case FIELD_COMMENT:
                return decode_comment(reader, pointer, value, f);
        case FIELD_CUSTOM:
                return f->decode(reader, pointer, value, f, slot);
        }
        return -EINVAL;
}

/* Reports what the table does not know. */
static int complain_unknown(const FieldReader *reader, const char *pointer, json_t *object, const Field *fields) {
        const char *names[FIELDS_MAX], *key;
        size_t n = 0;
        json_t *value;
        int r = 0;

        for (const Field *f = fields; f->name && n < FIELDS_MAX; f++)
                names[n++] = f->name;
        json_object_foreach(object, key, value) {
                _cleanup_free_ char *at = NULL;
                const char *near;
                size_t i = 0;

                while (i < n && !streq(names[i], key))
                        i++;
                if (i < n)
                        continue;
                r = -EINVAL;
                at = pointer_to_key(pointer, key);
                near = nearest_word(key, names, n);
                if (near)
                        field_complain(reader, at, NULL, NULL, "unknown key; did you mean \"%s\"?", near);
                else
                        field_complain(reader, at, NULL, NULL, "unknown key");
        }
        return r;
}

int fields_decode(const FieldReader *reader, const char *pointer, json_t *object, const Field *fields, void *target) {
        int result = 0;

        if (!json_is_object(object)) {
                field_complain(reader, pointer, object, "an object", "wrong type");
                return -EINVAL;
        }
        for (const Field *f = fields; f->name; f++) {
                json_t *value = json_object_get(object, f->name);
                _cleanup_free_ char *at = NULL;
                int r = 0;

                if (!value && !(f->flags & FIELD_REQUIRED))
                        continue;
                at = pointer_to_key(pointer, f->name);
                if (!at)
                        return -ENOMEM;
                if (!value)
                        r = wrong(reader, at, NULL, f, "missing");
                else {
                        r = decode_one(reader, at, value, f, target);
                        if (f->flags & FIELD_HAS)
                                *(bool *) ((char *) target + f->has_offset) = true;
                }
                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        result = r;
        }
        if (complain_unknown(reader, pointer, object, fields) < 0)
                result = -EINVAL;
        return result;
}

void fields_clear(const Field *fields, void *target) {
        for (const Field *f = fields; f->name; f++) {
                char **slot = (char **) ((char *) target + f->offset);

                if (f->type == FIELD_OBJECT)
                        fields_clear(f->fields, target);
                else if (f->type == FIELD_STRING) {
                        free(*slot);
                        *slot = NULL;
                }
        }
}
