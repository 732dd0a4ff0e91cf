/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Between the store of assignments and the form of its lines on disk. */

#include "daemon/assignments.h"

/* A put as a line of the log; every byte of the target is kept. New reference; NULL without memory. */
json_t *assignment_to_line(const Assignment *a);
/* A delete of a target at this revision. */
json_t *assignment_delete_to_line(const Assignment *a, uint64_t revision);
/* Only the revision, so that it never goes back. */
json_t *assignment_revision_to_line(uint64_t revision);
/* Reads a line of any sort: *ret_revision always; ret->target NULL: only that; *ret_delete: only kind and target are set. 0 (clear *ret), -EBADMSG, -ENOMEM. */
int assignment_from_line(json_t *line, Assignment *ret, bool *ret_delete, uint64_t *ret_revision);
