/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The few helpers that every room uses: cleanup attributes, string comparison, bounds. */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USEC_PER_SEC UINT64_C(1000000)
#define USEC_PER_MSEC UINT64_C(1000)
#define NSEC_PER_USEC UINT64_C(1000)
#define USEC_INFINITY UINT64_MAX

#define ELEMENTSOF(x) (sizeof(x) / sizeof((x)[0]))
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))
#define CLAMP_TO(x, lo, hi) ((x) < (lo) ? (lo) : (x) > (hi) ? (hi) : (x))

static inline void free_pointer(void *p) {
        free(*(void **) p);
}
static inline void close_fd_pointer(int *fd) {
        if (*fd >= 0)
                (void) close(*fd);
}
static inline void fclose_pointer(FILE **f) {
        if (*f)
                (void) fclose(*f);
}

/* Declares a variable whose memory, descriptor or stream is released at the end of its scope. */
#define _cleanup_(f) __attribute__((cleanup(f)))
#define _cleanup_free_ _cleanup_(free_pointer)
#define _cleanup_close_ _cleanup_(close_fd_pointer)
#define _cleanup_fclose_ _cleanup_(fclose_pointer)

/* Takes a pointer out of a variable (hand-over): returns it and leaves NULL. */
#define TAKE_PTR(p)                    \
        ({                             \
                typeof(p) _taken = (p); \
                (p) = NULL;            \
                _taken;                \
        })
/* The same for a descriptor: leaves -1. */
#define TAKE_FD(fd)               \
        ({                        \
                int _taken = (fd); \
                (fd) = -1;        \
                _taken;           \
        })

static inline bool streq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}
/* True when both are NULL, or both are equal strings. */
static inline bool streq_null(const char *a, const char *b) {
        return a && b ? streq(a, b) : a == b;
}
static inline bool startswith(const char *s, const char *prefix) {
        return strncmp(s, prefix, strlen(prefix)) == 0;
}
static inline bool endswith(const char *s, const char *suffix) {
        size_t n = strlen(s), m = strlen(suffix);
        return n >= m && streq(s + n - m, suffix);
}

/* Replaces *s with a copy of value (NULL allowed). Returns 0 or -ENOMEM; on failure *s is unchanged. */
static inline int free_and_strdup(char **s, const char *value) {
        char *copy = NULL;

        if (value) {
                copy = strdup(value);
                if (!copy)
                        return -ENOMEM;
        }
        free(*s);
        *s = copy;
        return 0;
}

/* Makes room for one more element in a growing array. Returns 0 or -ENOMEM; on failure nothing changed. */
#define GROW_ARRAY(array, count, capacity)                                                \
        ({                                                                                \
                int _grow_r = 0;                                                          \
                if ((count) >= (capacity)) {                                              \
                        size_t _grow_n = (capacity) ? (capacity) * 2 : 8;                 \
                        void *_grow_p = reallocarray((array), _grow_n, sizeof((array)[0])); \
                        if (_grow_p) {                                                    \
                                (array) = _grow_p;                                        \
                                (capacity) = _grow_n;                                     \
                        } else                                                            \
                                _grow_r = -ENOMEM;                                        \
                }                                                                         \
                _grow_r;                                                                  \
        })
