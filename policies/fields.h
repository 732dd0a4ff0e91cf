/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* From JSON to a struct, by a table: one line a field says its name, type, bounds and place.
 *
 * The same table serves the decoder, the diagnoses, the documentation and its test, so they can't drift apart.
 * Integers only, no reals. Whatever the table does not name is an error. */

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/diag.h"

typedef enum FieldType {
        FIELD_STRING = 1, /* char *: a copy that the target owns; least and most are bytes */
        FIELD_BOOL,       /* bool */
        FIELD_INT,        /* int */
        FIELD_UINT32,     /* uint32_t */
        FIELD_UINT64,     /* uint64_t, up to INT64_MAX (JSON integers are signed 64 bits in jansson) */
        FIELD_WORD,       /* int or enum: the index of the word in "words" */
        FIELD_OBJECT,     /* nothing of its own: "fields" of the inner object, in the same target */
        FIELD_LIST,       /* json_t *: borrowed array of least to most elements */
        FIELD_MAP,        /* json_t *: borrowed object of least to most members */
        FIELD_CUSTOM,     /* "decode" reads it */
        FIELD_COMMENT,    /* a string or an array of strings, for people: checked and dropped */
} FieldType;

typedef enum FieldFlags {
        FIELD_REQUIRED = 1 << 0,
        FIELD_HAS = 1 << 1, /* has_offset is a bool that tells whether the field was there */
} FieldFlags;

typedef struct Field Field;

/* Where a decoder is: what it reports with. */
typedef struct FieldReader {
        const char *file; /* for the diagnoses; may be NULL */
        DiagList *list;
} FieldReader;

struct Field {
        const char *name; /* NULL ends a table */
        FieldType type;
        int64_t least, most;
        unsigned flags;
        size_t offset;
        size_t has_offset;
        const char *const *words; /* NULL-terminated */
        const Field *fields;      /* of FIELD_OBJECT */
        /* FIELD_STRING: returns NULL for a good value, else what is allowed, as a text. */
        const char *(*check)(const char *value);
        /* FIELD_CUSTOM: fills the slot (target + offset). Returns 0, -EINVAL after reporting, -ENOMEM. */
        int (*decode)(const FieldReader *reader, const char *pointer, json_t *value, const Field *field, void *slot);
        unsigned allow;      /* for decode: what this field takes */
        const char *allowed; /* FIELD_CUSTOM: what is allowed, as a text */
        const char *help;    /* one phrase for the documentation */
};

/* Decodes an object into target by a table. pointer is the object's own JSON pointer in its document. Fields that are absent leave the
 * target as it was: fill in defaults before. All errors are reported, each with pointer, value and limit.
 * Returns 0, -EINVAL with diagnoses, or -ENOMEM. On failure the target is partly filled: release it as usual, don't use it. */
int fields_decode(const FieldReader *reader, const char *pointer, json_t *object, const Field *fields, void *target);

/* Frees all strings that a table put into the target, and forgets them. */
void fields_clear(const Field *fields, void *target);

/* What a field allows, as a text for people ("integer, -20 to 19"), cut to size bytes. Returns the buffer. */
const char *field_limit(const Field *field, char *buffer, size_t size);

/* Reports a wrong value with its JSON text. value may be NULL. */
void field_complain(const FieldReader *reader, const char *pointer, json_t *value, const char *limit, const char *format, ...)
        __attribute__((format(printf, 5, 6)));

/* The one of n words that was probably meant by a mistyped one, or NULL when none is near. Pointer into words. */
const char *nearest_word(const char *typed, const char *const *words, size_t n_words);
