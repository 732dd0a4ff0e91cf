/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The journal: every line has a priority; what an admin may want to find again has a MESSAGE_ID and fields of its own. */

#include <stdarg.h>
#include <systemd/sd-id128.h>
#include <systemd/sd-journal.h>

#include "policies/util.h"

/* Ids of the message catalogue. */
#define MESSAGE_DECISION SD_ID128_MAKE(7d,3b,0c,5a,51,c0,4e,0f,9a,8e,3e,52,a1,6c,40,01)
#define MESSAGE_DRIFT SD_ID128_MAKE(7d,3b,0c,5a,51,c0,4e,0f,9a,8e,3e,52,a1,6c,40,02)
#define MESSAGE_POLICY_LOADED SD_ID128_MAKE(7d,3b,0c,5a,51,c0,4e,0f,9a,8e,3e,52,a1,6c,40,03)
#define MESSAGE_POLICY_REFUSED SD_ID128_MAKE(7d,3b,0c,5a,51,c0,4e,0f,9a,8e,3e,52,a1,6c,40,04)
#define MESSAGE_RESTORED SD_ID128_MAKE(7d,3b,0c,5a,51,c0,4e,0f,9a,8e,3e,52,a1,6c,40,05)
#define MESSAGE_WRITE_FAILED SD_ID128_MAKE(7d,3b,0c,5a,51,c0,4e,0f,9a,8e,3e,52,a1,6c,40,06)
#define MESSAGE_HOST_FACT SD_ID128_MAKE(7d,3b,0c,5a,51,c0,4e,0f,9a,8e,3e,52,a1,6c,40,07)
#define MESSAGE_STATE_DAMAGED SD_ID128_MAKE(7d,3b,0c,5a,51,c0,4e,0f,9a,8e,3e,52,a1,6c,40,08)
#define MESSAGE_AUDIT SD_ID128_MAKE(7d,3b,0c,5a,51,c0,4e,0f,9a,8e,3e,52,a1,6c,40,09)
#define MESSAGE_RESCAN SD_ID128_MAKE(7d,3b,0c,5a,51,c0,4e,0f,9a,8e,3e,52,a1,6c,40,0a)

/* Logs to stderr (with the sd-daemon priority prefix) when it is a terminal or CPUCLASS_LOG=stderr, else to the journal. */
void log_line(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_line(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

/* A line with fields: pairs of name and value (NULL value: left out), ended by NULL. Values are data: any bytes. */
void log_fields(int priority, sd_id128_t message_id, const char *message, ...) __attribute__((sentinel));

/* Lines below this priority are dropped (LOG_INFO; --verbose: LOG_DEBUG). */
void log_set_max_priority(int priority);
