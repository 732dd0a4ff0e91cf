/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The order of events. A record is on disk before anybody may write the knob, and memory follows the disk, never the other way round; so whatever
 * moment a crash picks, each value that we may have written has its original in the log:
 *
 *   crash before the put is durable   nothing was written to the knob: the record that is missing is not needed
 *   ... before the knob is written    a record whose original is the live value: putting it back changes nothing
 *   ... before the note is durable    the live value is neither of the two recorded ones: the caller compares and decides
 *   ... before the drop is durable    the value is back already: putting it back once more changes nothing
 *   ... during a compaction           the old log has its name until the new one is whole
 */

#include "daemon/ledger.h"

#include "daemon/ledger-internal.h"

#define LEDGER_FILE "ledger"
#define PART_RECORDS 256U                  /* records a line; bounds the JSON held at once */
#define COMPACT_MIN_BYTES (UINT64_C(128) << 10)
#define COMPACT_RATIO 4

struct Ledger {
        StateLog *log;
        LedgerTable *table;
        char boot[17];                     /* short form of the boot id */
        uint32_t *noted;                   /* slots whose note is not on disk; may name one twice or a dropped one */
        size_t n_noted, noted_capacity;
        size_t n_stale;                    /* while opening */
        size_t n_unusable;
        uint64_t compact_above;            /* no compaction below this size: the last one failed */
};

/* 16 hex digits of the id are plenty to tell boots apart. */
static void short_boot_id(const char *id, char ret[17]) {
        size_t n = 0;

        for (; *id && n < 16; id++)
                if ((*id >= '0' && *id <= '9') || (*id >= 'a' && *id <= 'z') || (*id >= 'A' && *id <= 'Z'))
                        ret[n++] = *id;
        ret[n] = 0;
}

/* ---- memory ---- */

/* Puts a record that is on disk (or comes from there) into the table; can't fail once a slot is reserved and the values are copied. */
static void install(Ledger *l, LedgerRecord *values, char *shared_key) {
        uint32_t slot;

        values->key = shared_key;
        slot = ledger_table_find(l->table, values);
        if (slot == SLOT_NONE)
                (void) ledger_table_add(l->table, values);
        else {
                ledger_table_replace(l->table, slot, values);
                ledger_table_set_noted(l->table, slot, false);
        }
}

static void drop_from_memory(Ledger *l, const LedgerRecord *like) {
        uint32_t slot = ledger_table_find(l->table, like);

        if (slot != SLOT_NONE)
                ledger_table_remove(l->table, slot);
}

/* ---- opening ---- */

static int take_line(json_t *line, void *userdata) {
        Ledger *l = userdata;
        LedgerRecord record;
        bool drop;
        char *key = NULL;
        int r;

        r = ledger_record_from_json(line, l->boot, &record, &drop);
        if (r == -ESTALE) {
                l->n_stale++;
                return 0;
        }
        if (r == -EBADMSG) {
                l->n_unusable++;
                return 0;
        }
        if (r < 0)
                return r;
        if (drop) {
                drop_from_memory(l, &record);
                ledger_record_clear_values(&record);
                free(record.key);
                return 0;
        }
        r = ledger_table_reserve(l->table, 1);
        if (r >= 0 && record.key) {
                key = ledger_table_ref_key(l->table, record.key);
                r = key ? 0 : -ENOMEM;
        }
        free(record.key);
        if (r < 0) {
                ledger_record_clear_values(&record);
                return r;
        }
        install(l, &record, key);
        return 0;
}

typedef struct RewriteCursor {
        const Ledger *ledger;
        uint32_t slot;
} RewriteCursor;

static int next_record(void *userdata, json_t **ret) {
        RewriteCursor *c = userdata;

        while (c->slot < ledger_table_end(c->ledger->table)) {
                const LedgerRecord *record = ledger_table_at(c->ledger->table, c->slot++);

                if (!record)
                        continue;
                *ret = ledger_record_to_json(record, c->ledger->boot);
                return *ret ? 1 : -ENOMEM;
        }
        return 0;
}

/* Writes the log anew from memory; notes are in it. */
static int compact(Ledger *l) {
        RewriteCursor cursor = { .ledger = l };
        int r;

        r = state_log_rewrite(l->log, next_record, &cursor);
        if (r < 0)
                return r;
        for (size_t i = 0; i < l->n_noted; i++)
                if (ledger_table_is_noted(l->table, l->noted[i]))
                        ledger_table_set_noted(l->table, l->noted[i], false);
        l->n_noted = 0;
        l->compact_above = 0;
        return 0;
}

static void compact_when_due(Ledger *l) {
        uint64_t size = state_log_size(l->log), live = ledger_table_bytes(l->table);

        if (size < COMPACT_MIN_BYTES || size < COMPACT_RATIO * live || size < l->compact_above)
                return;
        /* What was asked for is durable already; a full disk only means that we try again when the log has doubled. */
        if (compact(l) < 0)
                l->compact_above = 2 * size;
}

static void ledger_close_pointer(Ledger **l) {
        (void) ledger_close(*l);
}

int ledger_open(int state_dir_fd, const char *boot_id, size_t *ret_stale, size_t *ret_damaged, Ledger **ret) {
        _cleanup_(ledger_close_pointer) Ledger *l = NULL;
        size_t n_damaged = 0;
        int r;

        l = calloc(1, sizeof(*l));
        if (!l)
                return -ENOMEM;
        short_boot_id(boot_id, l->boot);
        if (!l->boot[0])
                return -EINVAL;
        l->table = ledger_table_new();
        if (!l->table)
                return -ENOMEM;

        r = state_log_open(state_dir_fd, LEDGER_FILE, take_line, l, &n_damaged, &l->log);
        if (r == -EPROTONOSUPPORT || r == -EBADMSG) {
                /* Not a line of it can be trusted or understood. */
                r = state_put_aside(state_dir_fd, LEDGER_FILE);
                if (r < 0)
                        return r;
                ledger_table_free(l->table);
                l->table = ledger_table_new();
                if (!l->table)
                        return -ENOMEM;
                l->n_stale = l->n_unusable = 0;
                r = state_log_open(state_dir_fd, LEDGER_FILE, take_line, l, NULL, &l->log);
                n_damaged = 1;
        }
        if (r < 0)
                return r;
        n_damaged += l->n_unusable;

        /* A rewrite can wait when the disk refuses, for memory is right. Damage is only written over once it is kept for a look later. */
        if ((n_damaged == 0 || state_log_keep_copy(l->log) >= 0) && (n_damaged > 0 || l->n_stale > 0 || state_log_needs_rewrite(l->log)))
                (void) compact(l);

        if (ret_stale)
                *ret_stale = l->n_stale;
        if (ret_damaged)
                *ret_damaged = n_damaged;
        *ret = TAKE_PTR(l);
        return 0;
}

Ledger *ledger_close(Ledger *l) {
        if (!l)
                return NULL;
        if (l->log)
                (void) ledger_sync(l);
        state_log_close(l->log);
        ledger_table_free(l->table);
        free(l->noted);
        free(l);
        return NULL;
}

/* ---- changes ---- */

/* A line being gathered. */
typedef struct Part {
        json_t *array;
} Part;

static void part_clear(Part *p) {
        json_decref(p->array);
}

static int part_flush(Ledger *l, Part *p) {
        int r;

        if (!p->array || json_array_size(p->array) == 0)
                return 0;
        r = state_log_add(l->log, p->array);
        (void) json_array_clear(p->array);
        return r;
}

static int part_put(Ledger *l, Part *p, json_t *record) {
        if (!record)
                return -ENOMEM;
        if (!p->array)
                p->array = json_array();
        if (!p->array || json_array_append_new(p->array, record) != 0)
                return -ENOMEM;
        return json_array_size(p->array) >= PART_RECORDS ? part_flush(l, p) : 0;
}

/* Writes the given lines, all pending notes with them, and makes them durable. drop: the records are forgotten instead. */
static int write_durably(Ledger *l, const LedgerRecord *records, size_t n, bool drop) {
        _cleanup_(part_clear) Part part = { 0 };
        int r = 0;

        if (state_log_needs_rewrite(l->log)) {
                r = compact(l);
                if (r < 0)
                        return r;
        }
        /* Notes first: a record given now is newer than its note. */
        for (size_t i = 0; i < l->n_noted && r >= 0; i++)
                if (ledger_table_is_noted(l->table, l->noted[i]))
                        r = part_put(l, &part, ledger_record_to_json(ledger_table_at(l->table, l->noted[i]), l->boot));
        for (size_t i = 0; i < n && r >= 0; i++) {
                if (drop && ledger_table_find(l->table, &records[i]) == SLOT_NONE)
                        continue;
                r = part_put(l, &part, drop ? ledger_drop_to_json(&records[i], l->boot) : ledger_record_to_json(&records[i], l->boot));
        }
        if (r >= 0)
                r = part_flush(l, &part);
        if (r < 0) {
                state_log_cancel(l->log);
                return r;
        }
        r = state_log_commit(l->log);
        if (r < 0)
                return r;
        for (size_t i = 0; i < l->n_noted; i++)
                if (ledger_table_is_noted(l->table, l->noted[i]))
                        ledger_table_set_noted(l->table, l->noted[i], false);
        l->n_noted = 0;
        return 0;
}

int ledger_put(Ledger *l, const LedgerRecord *records, size_t n) {
        _cleanup_free_ LedgerRecord *copies = NULL;
        size_t n_copies = 0;
        int r;

        if (n == 0)
                return 0;
        for (size_t i = 0; i < n; i++)
                if (!ledger_record_is_valid(&records[i]))
                        return -EINVAL;
        /* All memory is here before the disk is touched: after it nothing may fail. */
        copies = calloc(n, sizeof(*copies));
        if (!copies)
                return -ENOMEM;
        r = ledger_table_reserve(l->table, n);
        for (; n_copies < n && r >= 0; n_copies++) {
                r = ledger_record_copy_values(&records[n_copies], &copies[n_copies]);
                if (r >= 0 && records[n_copies].key) {
                        copies[n_copies].key = ledger_table_ref_key(l->table, records[n_copies].key);
                        r = copies[n_copies].key ? 0 : -ENOMEM;
                }
        }
        if (r >= 0)
                r = write_durably(l, records, n, false);
        if (r < 0) {
                for (size_t i = 0; i < n_copies; i++) {
                        ledger_table_unref_key(l->table, copies[i].key);
                        ledger_record_clear_values(&copies[i]);
                }
                return r;
        }
        for (size_t i = 0; i < n; i++)
                install(l, &copies[i], copies[i].key);
        compact_when_due(l);
        return 0;
}

int ledger_note_written(Ledger *l, const LedgerRecord *record) {
        LedgerRecord merged, values;
        uint32_t slot;
        int r;

        if (!ledger_record_is_valid(record))
                return -EINVAL;
        slot = ledger_table_find(l->table, record);
        if (slot == SLOT_NONE)
                return -ENOENT;
        r = GROW_ARRAY(l->noted, l->n_noted, l->noted_capacity);
        if (r < 0)
                return r;

        merged = *ledger_table_at(l->table, slot);
        merged.written = record->written;
        merged.has_written = record->has_written;
        merged.written_number = record->written_number;
        merged.written_text = record->written_text;
        merged.dropin_path = record->dropin_path;
        merged.period_written_text = record->period_written_text;
        merged.period_dropin_path = record->period_dropin_path;
        r = ledger_record_copy_values(&merged, &values);
        if (r < 0)
                return r;
        if (merged.key) {
                values.key = ledger_table_ref_key(l->table, merged.key);
                if (!values.key) {
                        ledger_record_clear_values(&values);
                        return -ENOMEM;
                }
        }
        ledger_table_replace(l->table, slot, &values);
        if (!ledger_table_is_noted(l->table, slot)) {
                ledger_table_set_noted(l->table, slot, true);
                l->noted[l->n_noted++] = slot;
        }
        return 0;
}

int ledger_drop(Ledger *l, const LedgerRecord *record) {
        return ledger_drop_many(l, record, 1);
}

int ledger_drop_many(Ledger *l, const LedgerRecord *records, size_t n) {
        _cleanup_free_ uint32_t *slots = NULL;
        size_t n_slots = 0;
        int r;

        for (size_t i = 0; i < n; i++)
                if (!ledger_record_is_valid(&records[i]))
                        return -EINVAL;
        slots = calloc(n ? n : 1, sizeof(*slots));
        if (!slots)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                uint32_t slot = ledger_table_find(l->table, &records[i]);

                if (slot != SLOT_NONE)
                        slots[n_slots++] = slot;
        }
        if (n_slots == 0)
                return 0;
        r = write_durably(l, records, n, true);
        if (r < 0)
                return r;
        /* By slot: the strings in records may be the table's own and go away now. */
        for (size_t i = 0; i < n_slots; i++)
                if (ledger_table_at(l->table, slots[i]))
                        ledger_table_remove(l->table, slots[i]);
        compact_when_due(l);
        return 0;
}

int ledger_sync(Ledger *l) {
        if (l->n_noted == 0)
                return 0;
        return write_durably(l, NULL, 0, false);
}

/* ---- questions ---- */

const LedgerRecord *ledger_find(const Ledger *l, LedgerKind kind, const char *key, uint64_t inode, pid_t tid, uint64_t start_ticks) {
        LedgerRecord like = { .kind = kind, .key = (char *) key, .inode = inode, .tid = tid, .start_ticks = start_ticks };

        if (!ledger_record_is_valid(&like))
                return NULL;
        return ledger_table_at(l->table, ledger_table_find(l->table, &like));
}

int ledger_for_each(const Ledger *l, LedgerKind kind, int (*fn)(const LedgerRecord *r, void *userdata), void *userdata) {
        for (uint32_t i = 0; i < ledger_table_end(l->table); i++) {
                const LedgerRecord *record = ledger_table_at(l->table, i);
                int r;

                if (!record || (kind != _LEDGER_KIND_MAX && record->kind != kind))
                        continue;
                r = fn(record, userdata);
                if (r < 0)
                        return r;
        }
        return 0;
}

size_t ledger_count(const Ledger *l, LedgerKind kind) {
        return ledger_table_count(l->table, kind);
}
