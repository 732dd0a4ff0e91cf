/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Names that the daemon knows, for "did you mean". */

#include "client/http.h"

/* Hints at the class that was probably meant, or at all there are when they are few. Silent when the daemon does not answer. */
void class_hint(const Client *c, const char *name);
/* The same after a refusal that may have another cause: silent when the class exists. */
void class_hint_unless_known(const Client *c, const char *name);
/* Hints at the assigned target that was probably meant. */
void assignment_hint(const Client *c, const char *target);
