/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Between the ledger's two halves: the table of records in memory (ledger-table.c) with the form of a record on disk (ledger-json.c), and the order of
 * events (ledger.c). */

#include "daemon/hash.h"
#include "daemon/ledger.h"

/* ---- records ---- */

bool ledger_kind_is_thread(LedgerKind k);
/* Whether a record has what its kind needs. */
bool ledger_record_is_valid(const LedgerRecord *r);
/* Copies everything but the key, which becomes NULL. On -ENOMEM *ret is all zeroes. */
int ledger_record_copy_values(const LedgerRecord *r, LedgerRecord *ret);
/* Frees the values' strings, not the key. */
void ledger_record_clear_values(LedgerRecord *r);

/* ---- on disk ---- */

/* boot: the short form of the boot id. New reference; NULL without memory. */
json_t *ledger_record_to_json(const LedgerRecord *r, const char *boot);
json_t *ledger_drop_to_json(const LedgerRecord *r, const char *boot);
/* Reads a line of either sort. Returns 0 (*ret_drop tells which; *ret owns its strings, key too: free with ledger_record_clear_values and free(key)), -ESTALE for
 * another boot, -EBADMSG, -ENOMEM. */
int ledger_record_from_json(json_t *j, const char *boot, LedgerRecord *ret, bool *ret_drop);

/* ---- in memory ---- */

#define SLOT_NONE UINT32_MAX

typedef struct LedgerTable LedgerTable;

LedgerTable *ledger_table_new(void);
LedgerTable *ledger_table_free(LedgerTable *t);
/* Slot of a record with the same kind and key, or SLOT_NONE. */
uint32_t ledger_table_find(const LedgerTable *t, const LedgerRecord *like);
/* Record in a slot; NULL for a free one. Slots are numbered below ledger_table_end(). */
LedgerRecord *ledger_table_at(const LedgerTable *t, uint32_t slot);
uint32_t ledger_table_end(const LedgerTable *t);
/* Makes room, so that n additions can't fail for want of slots. */
int ledger_table_reserve(LedgerTable *t, size_t n);
/* Takes a shared copy of a key (one for all records that have it); give back with ledger_table_unref_key(). NULL without memory. */
char *ledger_table_ref_key(LedgerTable *t, const char *key);
void ledger_table_unref_key(LedgerTable *t, char *key);
/* Adds a record of a new key, taking over its strings (key from ledger_table_ref_key()); room was reserved. */
uint32_t ledger_table_add(LedgerTable *t, LedgerRecord *record);
/* Puts other values (and key) into a slot of the same identity, taking over the strings. */
void ledger_table_replace(LedgerTable *t, uint32_t slot, LedgerRecord *record);
void ledger_table_remove(LedgerTable *t, uint32_t slot);
/* A mark on a slot: its note is not on disk yet. Gone with the record. */
void ledger_table_set_noted(LedgerTable *t, uint32_t slot, bool noted);
bool ledger_table_is_noted(const LedgerTable *t, uint32_t slot);
size_t ledger_table_count(const LedgerTable *t, LedgerKind kind);
/* About how many bytes all records take in the log. */
uint64_t ledger_table_bytes(const LedgerTable *t);
