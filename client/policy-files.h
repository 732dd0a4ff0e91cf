/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Policy documents on disk, put together in the way of the daemon: files in name order over all directories, a file of a later
 * directory replaces one of the same name. */

#include "policies/policy.h"

typedef struct PolicyFile {
        char *name;       /* without its directory: decides order and replacement */
        char *path;
        char *text;
        size_t length;
} PolicyFile;

typedef struct PolicyFiles {
        PolicyFile *items;
        size_t n_items, capacity;
} PolicyFiles;

void policy_files_clear(PolicyFiles *f);
/* Adds a file, or all *.json of a directory (which may be missing if optional). What can't be read is a diagnosis in list and -EINVAL; -ENOMEM. */
int policy_files_add(PolicyFiles *f, const char *path, bool optional, DiagList *list);
/* Brings them in order and builds the policy, as policy_build(). */
int policy_files_build(PolicyFiles *f, Policy **ret, DiagList *list);
