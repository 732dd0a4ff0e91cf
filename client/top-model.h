/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* What top knows: a row for each group, made of successive answers of GET /v1/groups. No I/O, no clock. */

#include <jansson.h>

#include "policies/resolve.h"

#define TOP_SECONDS 60

/* One second of the last minute. */
typedef struct TopSecond {
        uint64_t second;              /* since 1970; 0: never filled */
        uint32_t use_permyriad;       /* of one CPU, the most that was seen in it */
        bool throttled;
} TopSecond;

typedef enum TopController { CONTROLLER_NONE = 0, CONTROLLER_STEADY, CONTROLLER_RAISING, CONTROLLER_LOWERING, CONTROLLER_HELD, CONTROLLER_PAUSED, CONTROLLER_FAILED, CONTROLLER_PENDING } TopController;

typedef struct TopRow {
        char *cgroup, *unit, *class_name;
        char *action;                 /* text of the last decision; NULL none */
        uint64_t action_at_usec;
        bool has_bandwidth, has_sample, has_pressure, drift;
        Bandwidth bandwidth;
        uint64_t use_permyriad;       /* of one CPU */
        uint64_t throttled_permyriad; /* periods of all */
        uint64_t throttled_usec_per_sec;
        uint64_t burst_usec_per_sec;
        uint64_t some_permyriad, full_permyriad;
        uint64_t slice_nsec;          /* 0: the default */
        char cookie[8];               /* "" none */
        TopController controller;
        TopSecond seconds[TOP_SECONDS];
        /* the sample before: rates are differences */
        uint64_t at_usec, total_usage_usec, total_throttled_usec, total_periods, total_throttled, total_burst_usec, total_some_usec, total_full_usec;
        unsigned depth;               /* rows above it that contain it */
        uint64_t generation;
} TopRow;

typedef struct TopModel {
        TopRow **rows;                /* in the order of their paths */
        size_t n_rows, capacity;
        uint64_t generation;
} TopModel;

/* Takes an answer in: rows that are no longer in it go, new ones come, rates are reckoned against the answer before (the first time they are what the daemon's own
 * window says). now_usec is real time. Returns 0 or -ENOMEM (some rows may be missing then). */
int top_model_update(TopModel *m, const json_t *groups, uint64_t now_usec);
void top_model_clear(TopModel *m);

typedef enum TopSort { SORT_CPU = 0, SORT_THROTTLED, SORT_PRESSURE, SORT_QUOTA, SORT_CLASS, SORT_NAME, SORT_AGE, _SORT_MAX } TopSort;
const char *top_sort_to_string(TopSort s);
int top_sort_from_string(const char *word, TopSort *ret);

typedef struct TopFilter {
        const char *text;             /* part of the name, the path or the class, without regard to case; NULL or "": all */
        TopSort sort;
        bool reverse;
        bool tree;                    /* by path; depth is filled */
} TopFilter;

/* The rows that pass, in order: a new array to free, of *ret_n pointers that live until the next update. NULL without memory. */
TopRow **top_model_select(TopModel *m, const TopFilter *filter, size_t *ret_n);
/* The name that is shown. */
const char *top_row_name(const TopRow *row);
