/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* A group for a person: the parts that show, explain and assign --wait have in common. */

#include "client/client.h"

/* "name (path)", class and state. */
void group_print_head(const Client *c, const json_t *group);
/* Each knob in one line: status, what is in force, and the reason where something is wrong. */
void group_print_knobs_short(const Client *c, const json_t *group);
/* Each knob with original, base, desired, observed, last write, error and drift. */
void group_print_knobs(const Client *c, const json_t *group);
/* What it used in the last window. */
void group_print_sample(const Client *c, const json_t *group);
/* A decision as one line, "14:03:22 text", and with numbers a second line with what the law saw. */
void decision_print(const Client *c, const json_t *decision, bool name, bool numbers);
/* A label of the left column. */
void print_label(const Client *c, const char *label);
