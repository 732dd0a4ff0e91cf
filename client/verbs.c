/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of verbs, in the order of the help. */

#include "client/verbs.h"

const Verb verbs[] = {
        { "status", NULL, "How the daemon is doing", help_status, verb_status },
        { "list", NULL, "Groups that have a class", help_list, verb_list },
        { "top", NULL, "Watch groups live", help_top, verb_top },
        { "show", "GROUP", "One group and its settings", help_show, verb_show },
        { "explain", "GROUP|PID", "Why a group has the settings it has", help_explain, verb_explain },
        { "classes", "[CLASS]", "Service classes, or all of one", help_classes, verb_classes },
        { "assign", "TARGET CLASS", "Give a unit, cgroup or pod a class", help_assign, verb_assign },
        { "unassign", "TARGET", "Take an assignment back", help_unassign, verb_unassign },
        { "assignments", NULL, "What has been assigned, by whom", help_assignments, verb_assignments },
        { "run", "--pool NAME -- COMMAND...", "Run a command in a group of its own", help_run, verb_run },
        { "decisions", NULL, "What was changed, and why", help_decisions, verb_decisions },
        { "events", NULL, "The daemon's event stream", help_events, verb_events },
        { "pause", "[GROUP]", "Leave everything, or a group, as it is", help_pause, verb_pause },
        { "resume", "[GROUP]", "End a pause", help_resume, verb_resume },
        { "restore", NULL, "Put every original value back", help_restore, verb_restore },
        { "policy", "check|reload|show [FILE...]", "Check, reload or show the policy", help_policy, verb_policy },
        { "simulate", "--generate WORKLOAD|--trace FILE", "Try control laws on a demand", help_simulate, verb_simulate },
        { "record", "GROUP", "Record what a group uses, for simulate", help_record, verb_record },
        { "doctor", NULL, "What this host can do, and what is wrong", help_doctor, verb_doctor },
        { "complete", "WHAT [PREFIX]", NULL, help_complete, verb_complete }, /* for shells: not in the help */
        {},
};
