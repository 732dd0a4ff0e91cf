/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Spans and amounts of time as people write them. */

#include "policies/policy.h"

/* "10m", "1h30m", "500ms", "2 days", "90" (seconds). Units: us, ms, s/sec, m/min, h/hr, d/day, w/week, each at most once, the larger first.
 * Returns 0, -EINVAL (no duration), -ERANGE (does not fit). */
int duration_parse(const char *text, uint64_t *ret_usec);
/* The shortest exact form with at most two units, "1h 30m", "2.5ms", "0"; rounds below the second of them. Returns buffer. */
const char *duration_format(uint64_t usec, char *buffer, size_t size);

/* An amount of CPU time as an option: "keep", "max", "full", "150%" (of what bare_percent says), "150%cpu", "50%base", "50%quota", "20ms".
 * Only the kinds that the policy language has for that field pass at the server; here only the form is judged.
 * Returns 0, or -EINVAL with *ret_why a constant sentence that says what would be right. */
int amount_parse(const char *text, AmountKind bare_percent, Amount *ret, const char **ret_why);
