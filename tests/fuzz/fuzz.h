/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* What all fuzz targets share. The same file makes a libFuzzer target (-Dfuzz=true) and, with replay.c, a test of its corpus. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An invariant, in every build. */
#define must(x)                                                                          \
        do {                                                                             \
                if (!(x)) {                                                              \
                        (void) fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #x); \
                        abort();                                                         \
                }                                                                        \
        } while (0)
