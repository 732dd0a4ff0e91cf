/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* A keyed hash for tables whose keys others choose: without the key nobody can make names that collide (SipHash-1-3, Aumasson and Bernstein). */

#include <stddef.h>
#include <stdint.h>

typedef struct HashKey {
        uint64_t k0, k1;
} HashKey;

/* A random key from the kernel; never fails (a fixed one where there is no randomness). */
HashKey hash_key_new(void);
uint64_t hash_bytes(const HashKey *key, const void *data, size_t length);
