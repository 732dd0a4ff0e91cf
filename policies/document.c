/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* jansson says where a text stops to be JSON, but a value does not know the line that it came from. Errors are rare and
 * texts are short, so lines are found when they are needed: by walking the text again along the JSON pointer. The way
 * back, from the byte where the parser stopped to a pointer, serves syntax errors. */

#include "policies/document.h"
#include "policies/util.h"

#define WALK_DEPTH_MAX 64 /* deeper than any document of ours; below it the pointer just ends */

char *pointer_to_key(const char *parent, const char *key) {
        size_t n = 0, used;
        char *p;

        if (!parent)
                return NULL;
        for (const char *k = key; *k; k++)
                n += *k == '~' || *k == '/' ? 2 : 1;
        used = strlen(parent);
        p = malloc(used + 1 + n + 1);
        if (!p)
                return NULL;
        memcpy(p, parent, used);
        p[used++] = '/';
        for (; *key; key++)
                if (*key == '~' || *key == '/') {
                        p[used++] = '~';
                        p[used++] = *key == '~' ? '0' : '1';
                } else
                        p[used++] = *key;
        p[used] = 0;
        return p;
}

char *pointer_to_index(const char *parent, size_t index) {
        char *p;

        if (!parent || asprintf(&p, "%s/%zu", parent, index) < 0)
                return NULL;
        return p;
}

static bool is_space(char c) {
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_space(const char *p, const char *end) {
        while (p < end && is_space(*p))
                p++;
        return p;
}

/* p is on the opening quote; returns the byte after the closing one (or the end). */
static const char *skip_string(const char *p, const char *end) {
        for (p++; p < end && *p != '"'; p++)
                if (*p == '\\' && p + 1 < end)
                        p++;
        return p < end ? p + 1 : end;
}

/* Skips one value of valid JSON. */
static const char *skip_value(const char *p, const char *end) {
        size_t depth = 0;

        for (p = skip_space(p, end); p < end;) {
                if (*p == '"')
                        p = skip_string(p, end);
                else if (*p == '{' || *p == '[') {
                        depth++;
                        p++;
                } else if (*p == '}' || *p == ']') {
                        if (depth == 0)
                                return p;
                        depth--;
                        p++;
                } else if (depth == 0) {
                        while (p < end && !is_space(*p) && !strchr(",]}", *p))
                                p++;
                        return p;
                } else
                        p++;
                if (depth == 0)
                        return p;
        }
        return p;
}

/* The text of a string token (quotes included) as it is meant. Returns a new string, or NULL. */
static char *decode_string(const char *token, size_t length) {
        json_auto_t *s = NULL;

        if (length < 2)
                return NULL;
        if (!memchr(token, '\\', length))
                return strndup(token + 1, length - 2);
        s = json_loadb(token, length, JSON_DECODE_ANY, NULL);
        return s && json_is_string(s) ? strdup(json_string_value(s)) : NULL;
}

static unsigned line_at(const char *text, const char *at) {
        unsigned line = 1;

        for (; text < at; text++)
                line += *text == '\n';
        return line;
}

/* Whether a string token is the key that the first segment of the pointer names. */
static bool key_is_segment(const char *token, size_t length, const char *segment, size_t segment_length) {
        _cleanup_free_ char *key = decode_string(token, length), *escaped = NULL;

        if (!key)
                return false;
        escaped = pointer_to_key("", key);
        return escaped && strlen(escaped + 1) == segment_length && memcmp(escaped + 1, segment, segment_length) == 0;
}

/* Goes from a container to the member or element that the segment names. Returns where its value starts, and in *ret_at where
 * a person would point; NULL when it is not there. */
static const char *enter(const char *p, const char *end, const char *segment, size_t segment_length, const char **ret_at) {
        bool object = *p == '{';
        size_t index = 0, wanted = object ? 0 : strtoul(segment, NULL, 10);

        for (p = skip_space(p + 1, end); p < end && *p != '}' && *p != ']'; index++) {
                const char *at = p;
                bool found = index == wanted;

                if (object) {
                        if (*p != '"')
                                return NULL;
                        p = skip_string(p, end);
                        found = key_is_segment(at, p - at, segment, segment_length);
                        p = skip_space(p, end);
                        if (p >= end || *p != ':')
                                return NULL;
                        p = skip_space(p + 1, end);
                }
                if (found) {
                        *ret_at = at;
                        return p;
                }
                p = skip_space(skip_value(p, end), end);
                if (p >= end || *p != ',')
                        return NULL;
                p = skip_space(p + 1, end);
        }
        return NULL;
}

unsigned document_line(const char *text, size_t length, const char *pointer) {
        const char *end = text + length, *p = skip_space(text, end), *at = p;

        while (*pointer == '/' && p < end && (*p == '{' || *p == '[')) {
                size_t n = strcspn(pointer + 1, "/");

                p = enter(p, end, pointer + 1, n, &at);
                if (!p)
                        break;
                pointer += 1 + n;
        }
        return line_at(text, at);
}

void document_add_lines(DiagList *list, size_t first, const char *text, size_t length) {
        if (list->capacity == 0) /* the one item that stands for missing memory is not ours to write to */
                return;
        for (size_t i = first; i < list->n_items; i++)
                if (list->items[i].line == 0 && list->items[i].pointer)
                        list->items[i].line = document_line(text, length, list->items[i].pointer);
}

/* JSON pointer of the field that the parser was in when it stopped at this byte. Works on text that is broken there. */
static char *pointer_at(const char *text, size_t length, size_t stop) {
        const char *end = text + MIN_OF(length, stop), *p = text;
        struct {
                char *base; /* pointer of the container */
                bool object, in_value;
                size_t index;
        } stack[WALK_DEPTH_MAX];
        size_t depth = 0;
        char *current = strdup("");

        while (current && (p = skip_space(p, end)) < end) {
                const char *start = p;

                if (*p == '{' || *p == '[') {
                        if (depth == WALK_DEPTH_MAX)
                                break;
                        stack[depth].base = current;
                        stack[depth].object = *p == '{';
                        stack[depth].in_value = *p == '[';
                        stack[depth].index = 0;
                        depth++;
                        p++;
                        current = *start == '[' ? pointer_to_index(stack[depth - 1].base, 0) : strdup(stack[depth - 1].base);
                } else if (*p == '}' || *p == ']') {
                        if (depth == 0 || p + 1 == end) /* the last token is the one that is wrong here */
                                break;
                        free(current);
                        current = stack[--depth].base;
                        p++;
                } else if (*p == ',' && depth > 0) {
                        free(current);
                        if (stack[depth - 1].object) {
                                stack[depth - 1].in_value = false;
                                current = strdup(stack[depth - 1].base);
                        } else
                                current = pointer_to_index(stack[depth - 1].base, ++stack[depth - 1].index);
                        p++;
                } else if (*p == '"') {
                        p = skip_string(p, end);
                        if (depth > 0 && stack[depth - 1].object && !stack[depth - 1].in_value) {
                                _cleanup_free_ char *key = decode_string(start, p - start);

                                if (key) {
                                        free(current);
                                        current = pointer_to_key(stack[depth - 1].base, key);
                                }
                                stack[depth - 1].in_value = true;
                        }
                } else
                        p++;
        }
        while (depth > 0)
                free(stack[--depth].base);
        return current;
}

/* jansson's texts end in "near '...'", which may hold anything of the input: the pointer and the line say it better. */
static void add_syntax_error(const char *file, const char *text, size_t length, const json_error_t *error, DiagList *list) {
        _cleanup_free_ char *pointer = pointer_at(text, length, error->position > 0 ? (size_t) error->position : 0);
        const char *near = strstr(error->text, " near ");
        int n = near ? (int) (near - error->text) : (int) strlen(error->text);
        unsigned line = error->line > 0 ? (unsigned) error->line : 0;

        if (json_error_code(error) == json_error_duplicate_key)
                diag_add(list, file, line, pointer, NULL, NULL, "this key appears twice in its object");
        else
                diag_add(list, file, line, pointer, NULL, NULL, "not valid JSON: %.*s", n, error->text);
}

int document_load(const char *file, const char *text, size_t length, json_t **ret, json_t **ret_repeated, DiagList *list) {
        json_auto_t *root = NULL;
        bool repeated = false;
        json_error_t error;

        if (length > DOCUMENT_MAX_BYTES) {
                diag_add(list, file, 0, "", NULL, "4194304 bytes", "the document is too large (%zu bytes)", length);
                return -EINVAL;
        }
        root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
        if (!root) {
                if (json_error_code(&error) == json_error_out_of_memory)
                        return -ENOMEM;
                add_syntax_error(file, text, length, &error, list);
                if (json_error_code(&error) != json_error_duplicate_key || !ret_repeated)
                        return -EINVAL;
                repeated = true;
                root = json_loadb(text, length, 0, &error);
                if (!root) {
                        add_syntax_error(file, text, length, &error, list);
                        return -EINVAL;
                }
        }
        if (!json_is_object(root)) {
                diag_add(list, file, 1, "", NULL, "an object", "wrong type");
                return -EINVAL;
        }
        if (repeated) {
                *ret_repeated = TAKE_PTR(root);
                return -EINVAL;
        }
        *ret = TAKE_PTR(root);
        return 0;
}
