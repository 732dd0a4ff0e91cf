/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ledger's records as lines of its log. Each line carries the boot it belongs to, so that it can be judged without any other line. Numbers that
 * need all 64 bits (an inode, QUOTA_UNLIMITED) are stored as the signed integer of the same bits; a field that is absent is 0. */

#include "daemon/ledger-internal.h"

static const char *const kind_names[_LEDGER_KIND_MAX] = {
        [LEDGER_UNIT_QUOTA] = "unit-quota",
        [LEDGER_BANDWIDTH] = "bandwidth",
        [LEDGER_LATENCY_FILE] = "latency-file",
        [LEDGER_CORE_TAG] = "core-tag",
        [LEDGER_THREAD_SLICE] = "thread-slice",
        [LEDGER_THREAD_COOKIE] = "thread-cookie",
        [LEDGER_SWITCH] = "switch",
        [LEDGER_UNIT_WEIGHT] = "unit-weight",
};

const char *ledger_kind_to_string(LedgerKind k) {
        return k >= 0 && k < _LEDGER_KIND_MAX ? kind_names[k] : "unknown";
}

bool ledger_kind_is_thread(LedgerKind k) {
        return k == LEDGER_THREAD_SLICE || k == LEDGER_THREAD_COOKIE;
}

bool ledger_record_is_valid(const LedgerRecord *r) {
        if ((int) r->kind < 0 || r->kind >= _LEDGER_KIND_MAX)
                return false;
        if (ledger_kind_is_thread(r->kind))
                return r->tid > 0;
        return r->key && r->key[0];
}

/* The texts of a record and their names on disk, in one place. */
#define N_TEXTS 6
static const char *const text_names[N_TEXTS] = { "ot", "wt", "dp", "pot", "pwt", "pdp" };

static char **text_of(LedgerRecord *r, size_t i) {
        return (char **[N_TEXTS]){ &r->original_text, &r->written_text, &r->dropin_path,
                                   &r->period_original_text, &r->period_written_text, &r->period_dropin_path }[i];
}

void ledger_record_clear_values(LedgerRecord *r) {
        for (size_t i = 0; i < N_TEXTS; i++) {
                free(*text_of(r, i));
                *text_of(r, i) = NULL;
        }
}

int ledger_record_copy_values(const LedgerRecord *r, LedgerRecord *ret) {
        LedgerRecord source = *r, copy = *r;

        copy.key = NULL;
        for (size_t i = 0; i < N_TEXTS; i++)
                *text_of(&copy, i) = NULL;
        for (size_t i = 0; i < N_TEXTS; i++)
                if (free_and_strdup(text_of(&copy, i), *text_of(&source, i)) < 0) {
                        ledger_record_clear_values(&copy);
                        *ret = (LedgerRecord){ 0 };
                        return -ENOMEM;
                }
        *ret = copy;
        return 0;
}

static int set_number(json_t *o, const char *name, uint64_t value) {
        if (value == 0)
                return 0;
        return json_object_set_new(o, name, json_integer((json_int_t) (int64_t) value));
}

static int set_bandwidth(json_t *o, const char *name, const Bandwidth *b) {
        if (b->quota_usec == 0 && b->period_usec == 0 && b->burst_usec == 0)
                return 0;
        return json_object_set_new(o, name, json_pack("[III]", (json_int_t) (int64_t) b->quota_usec, (json_int_t) (int64_t) b->period_usec,
                                                      (json_int_t) (int64_t) b->burst_usec));
}

/* What names the record. */
static json_t *identity_to_json(const LedgerRecord *r, const char *boot) {
        json_t *o = json_pack("{s:s, s:s}", "k", ledger_kind_to_string(r->kind), "b", boot);
        int e = o ? 0 : -1;

        if (e == 0 && r->key)
                e |= json_object_set_new(o, "key", state_string_to_json(r->key));
        if (e == 0)
                e |= set_number(o, "ino", r->inode);
        if (e == 0)
                e |= set_number(o, "tid", (uint64_t) r->tid);
        if (e == 0)
                e |= set_number(o, "at", r->start_ticks);
        if (e != 0) {
                json_decref(o);
                return NULL;
        }
        return o;
}

json_t *ledger_record_to_json(const LedgerRecord *r, const char *boot) {
        LedgerRecord source = *r;
        json_t *o = identity_to_json(r, boot);
        int e = o ? 0 : -1;

        if (e == 0)
                e |= set_bandwidth(o, "o", &r->original);
        if (e == 0)
                e |= set_bandwidth(o, "w", &r->written);
        if (e == 0)
                e |= set_bandwidth(o, "p", &r->previous);
        if (e == 0 && r->has_written)
                e |= json_object_set_new(o, "has", json_true());
        if (e == 0)
                e |= set_number(o, "on", (uint64_t) r->original_number);
        if (e == 0)
                e |= set_number(o, "wn", (uint64_t) r->written_number);
        if (e == 0)
                e |= set_number(o, "pn", (uint64_t) r->previous_number);
        for (size_t i = 0; i < N_TEXTS && e == 0; i++)
                if (*text_of(&source, i))
                        e |= json_object_set_new(o, text_names[i], state_string_to_json(*text_of(&source, i)));
        if (e != 0) {
                json_decref(o);
                return NULL;
        }
        return o;
}

json_t *ledger_drop_to_json(const LedgerRecord *r, const char *boot) {
        json_t *o = identity_to_json(r, boot);

        if (o && json_object_set_new(o, "drop", json_true()) != 0) {
                json_decref(o);
                return NULL;
        }
        return o;
}

static int get_number(json_t *o, const char *name, uint64_t *ret) {
        json_t *v = json_object_get(o, name);

        if (v && !json_is_integer(v))
                return -EBADMSG;
        *ret = v ? (uint64_t) json_integer_value(v) : 0;
        return 0;
}

static int get_bandwidth(json_t *o, const char *name, Bandwidth *ret) {
        json_t *v = json_object_get(o, name);
        uint64_t numbers[3];

        if (!v)
                return 0;
        if (json_array_size(v) != 3)
                return -EBADMSG;
        for (size_t i = 0; i < 3; i++) {
                json_t *n = json_array_get(v, i);

                if (!json_is_integer(n))
                        return -EBADMSG;
                numbers[i] = (uint64_t) json_integer_value(n);
        }
        *ret = (Bandwidth){ .quota_usec = numbers[0], .period_usec = numbers[1], .burst_usec = numbers[2] };
        return 0;
}

int ledger_record_from_json(json_t *j, const char *boot, LedgerRecord *ret, bool *ret_drop) {
        LedgerRecord record = { .kind = _LEDGER_KIND_MAX };
        const char *kind = json_string_value(json_object_get(j, "k"));
        const char *its_boot = json_string_value(json_object_get(j, "b"));
        uint64_t tid = 0, number;
        int r;

        if (!kind || !its_boot)
                return -EBADMSG;
        if (!streq(its_boot, boot))
                return -ESTALE;
        for (int k = 0; k < _LEDGER_KIND_MAX; k++)
                if (streq(kind, kind_names[k]))
                        record.kind = (LedgerKind) k;

        r = state_string_from_json(json_object_get(j, "key"), &record.key);
        if (r >= 0)
                r = get_number(j, "ino", &record.inode);
        if (r >= 0)
                r = get_number(j, "tid", &tid);
        if (r >= 0 && tid > INT32_MAX)
                r = -EBADMSG;
        record.tid = (pid_t) tid;
        if (r >= 0)
                r = get_number(j, "at", &record.start_ticks);
        if (r >= 0)
                r = get_bandwidth(j, "o", &record.original);
        if (r >= 0)
                r = get_bandwidth(j, "w", &record.written);
        if (r >= 0)
                r = get_bandwidth(j, "p", &record.previous);
        record.has_written = json_is_true(json_object_get(j, "has"));
        if (r >= 0)
                r = get_number(j, "on", &number);
        if (r >= 0) {
                record.original_number = (int64_t) number;
                r = get_number(j, "wn", &number);
        }
        if (r >= 0) {
                record.written_number = (int64_t) number;
                r = get_number(j, "pn", &number);
        }
        if (r >= 0)
                record.previous_number = (int64_t) number;
        for (size_t i = 0; i < N_TEXTS && r >= 0; i++)
                r = state_string_from_json(json_object_get(j, text_names[i]), text_of(&record, i));
        if (r >= 0 && !ledger_record_is_valid(&record))
                r = -EBADMSG;
        if (r < 0) {
                ledger_record_clear_values(&record);
                free(record.key);
                return r;
        }
        *ret = record;
        *ret_drop = json_is_true(json_object_get(j, "drop"));
        return 0;
}
