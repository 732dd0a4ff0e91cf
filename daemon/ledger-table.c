/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ledger in memory. Records live in blocks that never move, so a pointer to one stays good; an open-addressed index of slot numbers finds
 * them. Keys are shared: the threads of a group all name the group's path. */

#include <search.h>

#include "daemon/ledger-internal.h"

#define BLOCK_RECORDS 256U
#define SLOT_USED 1
#define SLOT_NOTED 2

typedef struct SharedKey {
        char *text;
        size_t n_refs;
} SharedKey;

struct LedgerTable {
        HashKey hash_key;
        LedgerRecord **blocks;
        size_t n_blocks, blocks_capacity;
        uint32_t *next_free;      /* by slot; chain of free slots */
        uint8_t *flags;           /* by slot: SLOT_USED, SLOT_NOTED */
        uint32_t first_free;
        uint32_t end;             /* slots that were ever used */
        uint32_t *index;          /* slot numbers, SLOT_NONE empty; linear probing */
        size_t index_size;        /* power of two, at least twice the number of records */
        size_t n;
        size_t n_kind[_LEDGER_KIND_MAX];
        uint64_t bytes;
        void *keys;               /* tsearch tree of SharedKey */
};

/* Identity of a record: threads by tid and start time, cgroup files by path and inode, the rest by name. */
static uint64_t hash_of(const LedgerTable *t, const LedgerRecord *r) {
        uint64_t parts[3] = { (uint64_t) r->kind };

        if (ledger_kind_is_thread(r->kind)) {
                parts[1] = (uint64_t) r->tid;
                parts[2] = r->start_ticks;
        } else {
                parts[1] = hash_bytes(&t->hash_key, r->key, strlen(r->key));
                parts[2] = r->inode;
        }
        return hash_bytes(&t->hash_key, parts, sizeof(parts));
}

static bool same_identity(const LedgerRecord *a, const LedgerRecord *b) {
        if (a->kind != b->kind)
                return false;
        if (ledger_kind_is_thread(a->kind))
                return a->tid == b->tid && a->start_ticks == b->start_ticks;
        return a->inode == b->inode && streq(a->key, b->key);
}

static uint64_t cost_of(const LedgerRecord *r) {
        uint64_t n = 120;

        n += r->key ? strlen(r->key) : 0;
        for (size_t i = 0; i < 6; i++) {
                const char *s = (const char *[]){ r->original_text, r->written_text, r->dropin_path,
                                                  r->period_original_text, r->period_written_text, r->period_dropin_path }[i];
                n += s ? strlen(s) + 12 : 0;
        }
        return n;
}

LedgerTable *ledger_table_new(void) {
        LedgerTable *t = calloc(1, sizeof(*t));

        if (!t)
                return NULL;
        t->hash_key = hash_key_new();
        t->first_free = SLOT_NONE;
        return t;
}

static void shared_key_free(void *p) {
        SharedKey *k = p;

        free(k->text);
        free(k);
}

LedgerTable *ledger_table_free(LedgerTable *t) {
        if (!t)
                return NULL;
        for (uint32_t i = 0; i < t->end; i++)
                if (t->flags[i])
                        ledger_record_clear_values(ledger_table_at(t, i));
        for (size_t i = 0; i < t->n_blocks; i++)
                free(t->blocks[i]);
        free(t->blocks);
        free(t->next_free);
        free(t->flags);
        free(t->index);
        tdestroy(t->keys, shared_key_free);
        free(t);
        return NULL;
}

LedgerRecord *ledger_table_at(const LedgerTable *t, uint32_t slot) {
        return slot < t->end && t->flags[slot] ? &t->blocks[slot / BLOCK_RECORDS][slot % BLOCK_RECORDS] : NULL;
}

uint32_t ledger_table_end(const LedgerTable *t) {
        return t->end;
}

uint32_t ledger_table_find(const LedgerTable *t, const LedgerRecord *like) {
        if (t->n == 0)
                return SLOT_NONE;
        for (size_t i = hash_of(t, like) & (t->index_size - 1); t->index[i] != SLOT_NONE; i = (i + 1) & (t->index_size - 1))
                if (same_identity(ledger_table_at(t, t->index[i]), like))
                        return t->index[i];
        return SLOT_NONE;
}

static void index_put(const LedgerTable *t, uint32_t *index, size_t size, uint32_t slot) {
        size_t i = hash_of(t, ledger_table_at(t, slot)) & (size - 1);

        while (index[i] != SLOT_NONE)
                i = (i + 1) & (size - 1);
        index[i] = slot;
}

static int grow_index(LedgerTable *t, size_t records) {
        size_t size = t->index_size ? t->index_size : 64;
        uint32_t *index;

        while (size < 2 * records)
                size *= 2;
        if (size == t->index_size)
                return 0;
        index = malloc(size * sizeof(*index));
        if (!index)
                return -ENOMEM;
        memset(index, 0xff, size * sizeof(*index));
        for (uint32_t i = 0; i < t->end; i++)
                if (t->flags[i])
                        index_put(t, index, size, i);
        free(t->index);
        t->index = index;
        t->index_size = size;
        return 0;
}

int ledger_table_reserve(LedgerTable *t, size_t n) {
        size_t records = t->n + n, slots = t->n_blocks * BLOCK_RECORDS;
        int r;

        if (records >= SLOT_NONE / 2)
                return -ENOMEM;
        r = grow_index(t, records);
        if (r < 0)
                return r;
        while (slots < records) {
                uint32_t *next_free;
                uint8_t *flags;

                r = GROW_ARRAY(t->blocks, t->n_blocks, t->blocks_capacity);
                if (r < 0)
                        return r;
                next_free = reallocarray(t->next_free, slots + BLOCK_RECORDS, sizeof(*next_free));
                if (!next_free)
                        return -ENOMEM;
                t->next_free = next_free;
                flags = reallocarray(t->flags, slots + BLOCK_RECORDS, sizeof(*flags));
                if (!flags)
                        return -ENOMEM;
                t->flags = flags;
                t->blocks[t->n_blocks] = calloc(BLOCK_RECORDS, sizeof(LedgerRecord));
                if (!t->blocks[t->n_blocks])
                        return -ENOMEM;
                t->n_blocks++;
                memset(t->flags + slots, 0, BLOCK_RECORDS * sizeof(*flags));
                slots += BLOCK_RECORDS;
        }
        return 0;
}

static int compare_keys(const void *a, const void *b) {
        return strcmp(((const SharedKey *) a)->text, ((const SharedKey *) b)->text);
}

char *ledger_table_ref_key(LedgerTable *t, const char *key) {
        SharedKey like = { .text = (char *) key }, *k, **found;

        found = tfind(&like, &t->keys, compare_keys);
        if (found) {
                (*found)->n_refs++;
                return (*found)->text;
        }
        k = calloc(1, sizeof(*k));
        if (!k)
                return NULL;
        k->text = strdup(key);
        k->n_refs = 1;
        if (!k->text || !tsearch(k, &t->keys, compare_keys)) {
                shared_key_free(k);
                return NULL;
        }
        return k->text;
}

void ledger_table_unref_key(LedgerTable *t, char *key) {
        SharedKey like = { .text = key }, *k, **found;

        found = key ? tfind(&like, &t->keys, compare_keys) : NULL;
        if (!found)
                return;
        k = *found;
        if (--k->n_refs > 0)
                return;
        (void) tdelete(&like, &t->keys, compare_keys);
        shared_key_free(k);
}

uint32_t ledger_table_add(LedgerTable *t, LedgerRecord *record) {
        uint32_t slot = t->first_free;

        if (slot != SLOT_NONE)
                t->first_free = t->next_free[slot];
        else
                slot = t->end++;
        t->flags[slot] = SLOT_USED;
        *ledger_table_at(t, slot) = *record;
        index_put(t, t->index, t->index_size, slot);
        t->n++;
        t->n_kind[record->kind]++;
        t->bytes += cost_of(record);
        return slot;
}

void ledger_table_replace(LedgerTable *t, uint32_t slot, LedgerRecord *record) {
        LedgerRecord *old = ledger_table_at(t, slot);

        t->bytes += cost_of(record) - cost_of(old);
        ledger_table_unref_key(t, old->key);
        ledger_record_clear_values(old);
        *old = *record;
}

void ledger_table_remove(LedgerTable *t, uint32_t slot) {
        LedgerRecord *record = ledger_table_at(t, slot);
        size_t mask = t->index_size - 1, hole = hash_of(t, record) & mask;

        while (t->index[hole] != slot)
                hole = (hole + 1) & mask;
        /* Close the gap: an entry behind it moves up unless it would then stand before its own place. */
        for (size_t i = (hole + 1) & mask; t->index[i] != SLOT_NONE; i = (i + 1) & mask) {
                size_t home = hash_of(t, ledger_table_at(t, t->index[i])) & mask;

                if (((i - home) & mask) >= ((i - hole) & mask)) {
                        t->index[hole] = t->index[i];
                        hole = i;
                }
        }
        t->index[hole] = SLOT_NONE;

        t->n--;
        t->n_kind[record->kind]--;
        t->bytes -= cost_of(record);
        ledger_table_unref_key(t, record->key);
        ledger_record_clear_values(record);
        t->flags[slot] = 0;
        t->next_free[slot] = t->first_free;
        t->first_free = slot;
}

void ledger_table_set_noted(LedgerTable *t, uint32_t slot, bool noted) {
        if (noted)
                t->flags[slot] |= SLOT_NOTED;
        else
                t->flags[slot] &= (uint8_t) ~SLOT_NOTED;
}

bool ledger_table_is_noted(const LedgerTable *t, uint32_t slot) {
        return slot < t->end && t->flags[slot] & SLOT_NOTED;
}

size_t ledger_table_count(const LedgerTable *t, LedgerKind kind) {
        return kind == _LEDGER_KIND_MAX ? t->n : t->n_kind[kind];
}

uint64_t ledger_table_bytes(const LedgerTable *t) {
        return t->bytes;
}
