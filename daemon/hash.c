/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SipHash with one compression and three finalization rounds: enough for a hash table, and cheap. */

#include "daemon/hash.h"

#include <endian.h>
#include <string.h>
#include <sys/random.h>

HashKey hash_key_new(void) {
        HashKey key;

        if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != (ssize_t) sizeof(key))
                key = (HashKey){ UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) };
        return key;
}

static inline uint64_t rotate(uint64_t x, unsigned n) {
        return x << n | x >> (64 - n);
}

static inline void round_of(uint64_t v[4]) {
        v[0] += v[1];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[0] = rotate(v[0], 32);
        v[2] += v[3];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
}

static inline void take(uint64_t v[4], uint64_t m) {
        v[3] ^= m;
        round_of(v);
        v[0] ^= m;
}

uint64_t hash_bytes(const HashKey *key, const void *data, size_t length) {
        const unsigned char *p = data;
        uint64_t v[4] = {
                key->k0 ^ UINT64_C(0x736f6d6570736575),
                key->k1 ^ UINT64_C(0x646f72616e646f6d),
                key->k0 ^ UINT64_C(0x6c7967656e657261),
                key->k1 ^ UINT64_C(0x7465646279746573),
        };
        uint64_t m, last = (uint64_t) length << 56;
        size_t n = length;

        for (; n >= 8; n -= 8, p += 8) {
                memcpy(&m, p, 8);
                take(v, le64toh(m));
        }
        for (size_t i = 0; i < n; i++)
                last |= (uint64_t) p[i] << (8 * i);
        take(v, last);

        v[2] ^= 0xff;
        round_of(v);
        round_of(v);
        round_of(v);
        return v[0] ^ v[1] ^ v[2] ^ v[3];
}
