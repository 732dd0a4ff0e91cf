/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Members of the API's JSON, and how they look to a person. Absent, null and wrong types read as "not there". */

#include <jansson.h>

#include "policies/resolve.h"

const char *json_text(const json_t *o, const char *key);                       /* NULL when not there */
bool json_number(const json_t *o, const char *key, uint64_t *ret);             /* false when not there or negative */
uint64_t json_number_or(const json_t *o, const char *key, uint64_t otherwise);
bool json_flag(const json_t *o, const char *key);                              /* false when not there */

/* A setting of cpu.max as the API gives it ({"quota_usec", "period_usec", "burst_usec"}); false when it is null. */
bool json_bandwidth(const json_t *o, const char *key, Bandwidth *ret);
/* Reads an RFC 3339 time in UTC into µs since 1970; false when it is none. */
bool time_parse(const char *text, uint64_t *ret_usec);
bool json_time(const json_t *o, const char *key, uint64_t *ret_usec);
uint64_t now_usec(void);                                                        /* realtime */

/* Each fills the buffer and returns it. "-" stands for what is not there. */
#define FORMAT_MAX 128
/* "150%" of a CPU, "max". */
const char *format_quota(const Bandwidth *b, char buffer[FORMAT_MAX]);
/* "150% (150ms per 100ms), burst 50ms". */
const char *format_bandwidth(const Bandwidth *b, char buffer[FORMAT_MAX]);
/* 1234 -> "12.3%". */
const char *format_permyriad(uint64_t value, char buffer[FORMAT_MAX]);
/* "12s ago"; "in 5m" for the time to come. */
const char *format_age(uint64_t at_usec, uint64_t now, char buffer[FORMAT_MAX]);
/* "14:03:22" in local time; with the date when it was not today. */
const char *format_clock(uint64_t at_usec, uint64_t now, char buffer[FORMAT_MAX]);
/* An amount of a class document ({"percent_of_cpu": 150}, "max"): "150% of a CPU", "max". */
const char *format_amount(const json_t *amount, char buffer[FORMAT_MAX]);
/* The name under which people know a group: its unit, else its path. */
const char *group_name(const json_t *group);
