/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* One function and one help text a verb; see Verb in client.h. */

#include "client/client.h"

#define VERB(name)                                                                 \
        extern const char help_##name[];                                           \
        int verb_##name(Client *c, const Verb *verb, int argc, char **argv)

VERB(status);
VERB(list);
VERB(top);
VERB(show);
VERB(explain);
VERB(classes);
VERB(assign);
VERB(unassign);
VERB(assignments);
VERB(run);
VERB(decisions);
VERB(events);
VERB(pause);
VERB(resume);
VERB(restore);
VERB(policy);
VERB(doctor);
VERB(simulate);
VERB(record);
VERB(complete);
