/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Amounts of CPU time, as documents say them: a word, or an object with one key that names the unit. A number without a unit
 * is no amount: 50 might be percent, milliseconds or CPUs. */

#include <inttypes.h>

#include "policies/document.h"
#include "policies/schema.h"

static const struct {
        const char *word;
        AmountKind kind;
} words[] = {
        { "keep", AMOUNT_KEEP },
        { "max", AMOUNT_MAX },
        { "full", AMOUNT_FULL },
};

static const struct {
        const char *key;
        AmountKind kind;
        uint64_t least, most; /* of usec, the least is the field's own */
} units[] = {
        { "percent_of_base", AMOUNT_PERCENT_OF_BASE, 1, PERCENT_OF_BASE_MAX },
        { "percent_of_cpu", AMOUNT_PERCENT_OF_CPU, 1, PERCENT_OF_CPU_MAX },
        { "percent_of_quota", AMOUNT_PERCENT_OF_QUOTA, 0, 100 },
        { "usec", AMOUNT_USEC, 0, QUOTA_MAX_USEC },
};

static int decode_word(const FieldReader *reader, const char *pointer, json_t *value, const Field *field, Amount *ret) {
        const char *s = json_string_value(value);

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (streq(s, words[i].word) && (field->allow & (1U << words[i].kind))) {
                        *ret = (Amount) { .kind = words[i].kind };
                        return 0;
                }
        field_complain(reader, pointer, value, field->allowed, "not an amount that this field takes");
        return -EINVAL;
}

int amount_decode(const FieldReader *reader, const char *pointer, json_t *value, const Field *field, void *slot) {
        Amount *ret = slot;
        const char *key;
        json_t *number;

        if (json_is_string(value))
                return decode_word(reader, pointer, value, field, ret);
        if (!json_is_object(value) || json_object_size(value) != 1) {
                field_complain(reader, pointer, value, field->allowed,
                               json_is_object(value) ? "an amount has exactly one unit" : "an amount needs a unit");
                return -EINVAL;
        }
        key = json_object_iter_key(json_object_iter(value));
        number = json_object_iter_value(json_object_iter(value));
        for (size_t i = 0; i < ELEMENTSOF(units); i++) {
                uint64_t least = units[i].kind == AMOUNT_USEC ? (uint64_t) field->least : units[i].least;
                _cleanup_free_ char *at = NULL;
                char limit[64];

                if (!streq(key, units[i].key) || !(field->allow & (1U << units[i].kind)))
                        continue;
                if (json_is_integer(number) && json_integer_value(number) >= (json_int_t) least &&
                    json_integer_value(number) <= (json_int_t) units[i].most) {
                        *ret = (Amount) { .kind = units[i].kind, .value = (uint64_t) json_integer_value(number) };
                        return 0;
                }
                at = pointer_to_key(pointer, key);
                (void) snprintf(limit, sizeof(limit), "integer, %" PRIu64 " to %" PRIu64, least, units[i].most);
                field_complain(reader, at, number, limit, json_is_integer(number) ? "out of range" : "wrong type");
                return -EINVAL;
        }
        field_complain(reader, pointer, value, field->allowed, "not an amount that this field takes");
        return -EINVAL;
}

json_t *amount_to_json(const Amount *a) {
        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (a->kind == words[i].kind)
                        return json_string(words[i].word);
        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                if (a->kind == units[i].kind)
                        return json_pack("{s:I}", units[i].key, (json_int_t) a->value);
        return json_null();
}

/* An amount with "keep" said as what it is: all of the base. */
static Amount plain(const Amount *a) {
        return a->kind == AMOUNT_KEEP ? (Amount) { AMOUNT_PERCENT_OF_BASE, 100 } : *a;
}

/* Whether a is surely more than b: the same kind, and a greater value. Different kinds only meet on a host. */
static bool is_above(const Amount *a, const Amount *b) {
        Amount x = plain(a), y = plain(b);

        return x.kind == y.kind && x.value > y.value;
}

static int complain(const FieldReader *reader, const char *pointer, const char *key, const Amount *value, const char *limit,
                    const char *message) {
        _cleanup_free_ char *at = pointer_to_key(pointer, key);
        json_auto_t *text = value ? amount_to_json(value) : NULL;

        field_complain(reader, at, text, limit, "%s", message);
        return -EINVAL;
}

/* The same, with another amount as the limit. */
static int complain_beyond(const FieldReader *reader, const char *pointer, const char *key, const Amount *value,
                           const char *at_what, const Amount *limit, const char *message) {
        json_auto_t *j = amount_to_json(limit);
        _cleanup_free_ char *amount = j ? json_dumps(j, JSON_ENCODE_ANY | JSON_COMPACT) : NULL, *text = NULL;

        if (amount && asprintf(&text, "%s the %s", at_what, amount) < 0)
                text = NULL;
        return complain(reader, pointer, key, value, text, message);
}

int bandwidth_words_check(const FieldReader *reader, const char *pointer, const Amount *quota, const Amount *burst,
                          const Amount *floor, const Amount *ceiling, const LawKind *law) {
        const Amount *q = quota;
        bool unlimited;
        int r = 0;

        /* Without a ceiling "max" is as much as the owner allows, and where the owner says nothing there is no limit at all: a
         * number that stands on it would mean something on one host and nothing on the next. */
        unlimited = q->kind == AMOUNT_MAX && (ceiling->kind == AMOUNT_MAX || (law && ceiling->kind == AMOUNT_UNSET));
        if (burst->kind == AMOUNT_USEC && q->kind == AMOUNT_USEC && burst->value > q->value)
                r = complain_beyond(reader, pointer, "burst", burst, "at most", q, "above the quota (the kernel refuses it)");
        if (unlimited && (burst->kind == AMOUNT_FULL || burst->value > 0))
                r = complain(reader, pointer, "burst", burst, "none, or a quota or ceiling other than \"max\"",
                             "a burst needs a limit that it goes beyond");
        if (unlimited && floor->kind != AMOUNT_UNSET)
                r = complain(reader, pointer, "floor", floor, "none, or a quota or ceiling other than \"max\"",
                             "a floor needs a limit that moves");
        if (unlimited && law && *law != LAW_STATIC) {
                _cleanup_free_ char *at = pointer_to_key(pointer, "law");
                json_auto_t *word = json_string(law_kind_to_string(*law));

                field_complain(reader, at, word, "\"static\", or a quota or ceiling other than \"max\"",
                               "this law needs a limit to work on");
                r = -EINVAL;
        }
        if (is_above(floor, ceiling))
                r = complain_beyond(reader, pointer, "floor", floor, "at most", ceiling, "above the ceiling");
        if (is_above(floor, q))
                r = complain_beyond(reader, pointer, "floor", floor, "at most", q, "above the quota");
        if (is_above(q, ceiling))
                r = complain_beyond(reader, pointer, "ceiling", ceiling, "at least", q, "below the quota");
        if (law && *law == LAW_BURST && burst->kind != AMOUNT_UNSET && burst->kind != AMOUNT_FULL)
                r = complain(reader, pointer, "burst", burst, "\"full\" or none", "the law \"burst\" makes it the quota");
        return r;
}
