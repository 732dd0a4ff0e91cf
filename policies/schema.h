/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The shape of policy documents as tables: one source for the decoder, the documentation, and the tests of both.
 * Inner header of the room and its tests; others use policy.h. */

#include "policies/fields.h"
#include "policies/policy.h"

/* Bounds of what a document may say. Reasons:
 * - a percent of a CPU up to 10,000 CPUs: more than any host has;
 * - a quota in microseconds up to half of what the kernel takes (QUOTA_MAX_USEC), so that a burst of one quota fits too. */
#define PERCENT_OF_BASE_MAX 10000
#define PERCENT_OF_CPU_MAX 1000000
#define CLASSES_MAX 256
#define RULES_MAX 4096
#define PATCHES_MAX 256

/* A class while it is read. The class comes first: the tables' offsets are good for both. */
typedef struct ClassDraft {
        ServiceClass service_class;
        bool has_law;
} ClassDraft;

/* The top of a document; borrowed references. */
typedef struct DocumentDraft {
        int version;
        json_t *classes;
        json_t *rules;
        json_t *patches;
} DocumentDraft;

/* All tables, for the documentation and its test. name is how the documentation calls the object. */
typedef struct SchemaTable {
        const char *name;
        const Field *fields;
} SchemaTable;
extern const SchemaTable schema_tables[];
extern const size_t n_schema_tables;

extern const Field document_fields[]; /* DocumentDraft */
extern const Field class_fields[];    /* ClassDraft */
extern const Field match_fields[];    /* Rule: its "match" */
extern const Field rule_fields[];     /* Rule */
extern const Field override_fields[]; /* Overrides */

/* Amounts (amount.c). A field's "allow" holds the kinds it takes (1 << AMOUNT_...), its "least" the least usec. */
int amount_decode(const FieldReader *reader, const char *pointer, json_t *value, const Field *field, void *slot);
#define QUOTA_KINDS (1 << AMOUNT_KEEP | 1 << AMOUNT_MAX | 1 << AMOUNT_PERCENT_OF_BASE | 1 << AMOUNT_PERCENT_OF_CPU | 1 << AMOUNT_USEC)
#define BURST_KINDS (1 << AMOUNT_KEEP | 1 << AMOUNT_FULL | 1 << AMOUNT_PERCENT_OF_QUOTA | 1 << AMOUNT_USEC)
#define FLOOR_KINDS (1 << AMOUNT_PERCENT_OF_BASE | 1 << AMOUNT_PERCENT_OF_CPU | 1 << AMOUNT_USEC)
#define CEILING_KINDS (1 << AMOUNT_MAX | FLOOR_KINDS)
#define FLOOR_TEXT "{\"percent_of_base\": 1 to 10000}, {\"percent_of_cpu\": 1 to 1000000} or {\"usec\": 1000 to 8796093022207}"
#define QUOTA_TEXT "\"keep\", \"max\", " FLOOR_TEXT
#define CEILING_TEXT "\"max\", " FLOOR_TEXT
#define BURST_TEXT "\"keep\", \"full\", {\"percent_of_quota\": 0 to 100} or {\"usec\": 0 to 8796093022207}"

/* The fields of a "cpu" object that a class and an assignment share, for a struct with members quota, period_usec, burst, floor, ceiling. */
#define CPU_NUMBER_FIELDS(holder)                                                                                     \
        { .name = "quota", .type = FIELD_CUSTOM, .offset = offsetof(holder, quota), .decode = amount_decode,          \
          .allow = QUOTA_KINDS, .least = QUOTA_MIN_USEC, .allowed = QUOTA_TEXT, .help = "CPU time per period" },           \
        { .name = "period_usec", .type = FIELD_UINT64, .offset = offsetof(holder, period_usec),                       \
          .least = PERIOD_MIN_USEC, .most = PERIOD_MAX_USEC, .help = "length of a period; absent: the live one stays" },   \
        { .name = "burst", .type = FIELD_CUSTOM, .offset = offsetof(holder, burst), .decode = amount_decode,          \
          .allow = BURST_KINDS, .least = 0, .allowed = BURST_TEXT, .help = "unused time that may be saved up" },           \
        { .name = "floor", .type = FIELD_CUSTOM, .offset = offsetof(holder, floor), .decode = amount_decode,          \
          .allow = FLOOR_KINDS, .least = QUOTA_MIN_USEC, .allowed = FLOOR_TEXT, .help = "least quota for feedback" },      \
        { .name = "ceiling", .type = FIELD_CUSTOM, .offset = offsetof(holder, ceiling), .decode = amount_decode,      \
          .allow = CEILING_KINDS, .least = QUOTA_MIN_USEC, .allowed = CEILING_TEXT, .help = "most quota for feedback" }

/* What the numbers of a "cpu" object mean together. law NULL: unknown (an assignment's overrides), and then an unset amount
 * is unknown too. Reports at pointer (of the "cpu" object); returns 0 or -EINVAL. */
int bandwidth_words_check(const FieldReader *reader, const char *pointer, const Amount *quota, const Amount *burst,
                          const Amount *floor, const Amount *ceiling, const LawKind *law);

/* Class and rule names: NULL when valid, else what is allowed. */
const char *name_check(const char *name);
/* Whether a glob has no wildcard. */
bool glob_is_exact(const char *glob);

/* One class or rule of a document. Returns 0, -EINVAL with diagnoses (the result holds what could be read), or -ENOMEM. */
int class_decode(const FieldReader *reader, const char *pointer, json_t *o, ServiceClass *ret);
void class_clear(ServiceClass *c);
int rule_decode(const FieldReader *reader, const char *pointer, json_t *o, Rule *ret);
void rule_clear(Rule *r);
