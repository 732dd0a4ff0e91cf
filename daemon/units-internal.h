/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Between the parts of the units room: units.c (the table), units-bus.c (the connection and signals), units-properties.c (what systemd says of a unit),
 * units-calls.c (what we ask it to do), units-files.c and units-dropin.c (what the files say). */

#include <systemd/sd-bus.h>

#include "daemon/units.h"

#define SYSTEMD_SERVICE "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define SYSTEMD_UNITS_PATH "/org/freedesktop/systemd1/unit"
#define SYSTEMD_MANAGER "org.freedesktop.systemd1.Manager"
#define SYSTEMD_UNIT "org.freedesktop.systemd1.Unit"

/* ---- types of units that have a cgroup ---- */

typedef struct UnitType {
        const char *suffix;    /* ".service" */
        const char *interface; /* org.freedesktop.systemd1.Service */
        const char *section;   /* "Service" */
} UnitType;

/* NULL for a name that is no well-formed unit name of a type with a cgroup. */
const UnitType *unit_type_of(const char *name);

/* ---- strings ---- */

char **strings_free(char **list);
bool strings_equal(char *const *a, char *const *b);
/* A copy; NULL without memory. NULL counts as empty. */
char **strings_copy(char *const *list);

/* ---- files (units-files.c, units-owner.c, units-dropin.c) ---- */

/* Where systemd keeps run-time settings: of units with files, and of transient ones (unit_drop_in_dir(), src/core/unit.c of systemd). */
#define RUNTIME_CONTROL "/run/systemd/system.control"
#define RUNTIME_TRANSIENT "/run/systemd/transient"

#define UNIT_FILE_MAX_BYTES (UINT64_C(1) << 20) /* LONG_LINE_MAX of systemd: a longer line is an error there, too */

/* What files say, one after the other. Begins as unit_words_init(). */
typedef struct UnitWords {
        char *class_word;
        uint64_t quota_per_sec_usec; /* USEC_INFINITY: none */
        uint64_t quota_period_usec;
        uint64_t weight;             /* UINT64_MAX: none */
        bool says_quota, says_period, says_weight; /* assigned at all, also to nothing; the caller resets these */
        unsigned n_assignments;      /* of any key in any section, for whoever wants to know that there is nothing else */
} UnitWords;

void unit_words_init(UnitWords *w);
void unit_words_clear(UnitWords *w);
/* Adds what one file says for a unit with this section ("Service"). Hostile bytes are fine; only -ENOMEM fails. */
int unit_words_parse(UnitWords *w, const char *text, size_t length, const char *section);
/* A quota as CPUQuota= takes it ("20%", "12.5%"), in microseconds per second. */
bool unit_parse_quota(const char *text, uint64_t *ret_per_sec_usec);
/* A time span as systemd.time(7) has it, a plain number is seconds; "infinity" is USEC_INFINITY. */
bool unit_parse_time_span(const char *text, uint64_t *ret_usec);

/* Reads a regular file of at most max bytes (through links, as systemd does); new string, NUL-terminated. -ENOENT, -EFBIG, -EBADMSG for what is no regular file. */
int unit_file_read(const char *path, size_t max, char **ret, size_t *ret_length);

/* What a unit's files say together (the class word, the owner's quota, what overrides us), into info. search_path: systemd's UnitPath, NULL unknown. own: see UnitsHandlers. */
typedef bool (*OwnDropin)(const char *id, const char *property, const char *content, const char **ret_original, void *userdata);
int unit_files_load(UnitInfo *info, char *const *search_path, OwnDropin own, void *userdata);

/* units_read_dropin() and units_undo_dropin() below another root directory ("" is the real one), for tests. */
int dropin_read(const char *root, const char *id, const char *property, char **ret_path, char **ret_content);
int dropin_undo(const char *root, const char *path, const char *written, const char *original);

/* ---- the table ---- */

typedef enum EntryState {
        ENTRY_IDLE = 0,
        ENTRY_WAITING, /* will be asked for at due_usec */
        ENTRY_QUEUED,  /* will be asked for as soon as there is room */
        ENTRY_ASKING,
} EntryState;

typedef struct UnitEntry UnitEntry;

/* The questions of one refresh: seven properties of the unit, and all those of its type. */
#define ENTRY_CALLS 8U
typedef struct EntryCall {
        UnitEntry *entry;
        sd_bus_slot *slot;
} EntryCall;

struct UnitEntry {
        Units *units;
        UnitInfo info;
        char *path;                /* object path */
        bool published;            /* changed() was called */
        bool read_files;           /* read the files even when their paths are the same */
        bool listing;              /* the listing waits for it */
        unsigned generation;       /* of the listing that last named it */
        char *cgroup_key;          /* under which it is in the index by cgroup */

        EntryState state;
        uint64_t again_usec;       /* news came while the answer was on its way: when to ask again (monotonic); 0: none */
        unsigned n_failures;
        uint64_t due_usec, asked_usec; /* monotonic */
        UnitEntry *queue_next;

        UnitInfo incoming;
        EntryCall calls[ENTRY_CALLS];
        unsigned n_open;
        int error;

        /* What we set ourselves, to tell it from the owner's word. */
        bool own_quota, own_period;
        uint64_t own_quota_per_sec_usec, own_quota_period_usec;
        char *own_quota_original, *own_period_original; /* what was there before; NULL: nothing */

        UnitEntry *previous, *next;
};

/* An open call with its callback. */
typedef struct UnitsCall UnitsCall;

struct Units {
        sd_event *event;
        char *address;
        UnitsHandlers handlers;
        void *userdata;

        sd_bus *bus;
        char *owner;               /* unique name of systemd on the bus */
        bool bus_lost;             /* the bus said goodbye; it is dropped outside of its own callbacks */
        sd_event_source *retry;    /* connect or list again */
        uint64_t backoff_usec;
        bool connected;            /* the table is complete */
        bool reloading;            /* handlers know of a reload; the end is not told yet */
        bool in_reload;            /* systemd said that it reloads and not that it is done */

        sd_bus_slot *listing_slot, *path_slot;
        bool listing;              /* a listing is under way */
        unsigned generation;
        size_t n_listing;          /* entries that it waits for */

        UnitEntry *entries;
        void *by_name, *by_cgroup; /* tsearch trees */
        UnitEntry *queue_head, *queue_tail;
        unsigned n_asking;
        uint64_t n_asked;          /* entries asked about since the start */
        sd_event_source *delay;    /* next due entry, */
        uint64_t delay_due_usec;   /* and when that is; USEC_INFINITY: none */
        char **search_path;

        UnitsCall *calls;

        int watch_fd;              /* inotify; -1: none */
        sd_event_source *watch_source;
        void *watches;             /* tsearch tree by watch descriptor */
        size_t n_watches;
};

/* units.c */
UnitEntry *entry_find(const Units *u, const char *name);
/* Finds or makes; NULL without memory or for a name that is none of ours. */
UnitEntry *entry_get(Units *u, const char *name);
void entry_remove(UnitEntry *e);
/* Asks for the unit's properties after a while (0: at once). */
void entry_schedule(UnitEntry *e, uint64_t delay_usec);
/* All answers are here. */
void entry_finish(UnitEntry *e);
/* Stops all asking; the entries stay. */
void entries_halt(Units *u);
uint64_t units_now(const Units *u);

/* units-properties.c */
/* Sends the calls; 0 or negative errno with none open. */
int entry_ask(UnitEntry *e);
/* Ends the open calls without their answers, and lets go of the ended ones. */
void entry_forget_calls(UnitEntry *e);
void unit_info_clear(UnitInfo *info);
bool unit_info_equal(const UnitInfo *a, const UnitInfo *b);
/* Reads one string property out of a{sv} and skips the rest; NULL when it is not there. Borrowed from the message. */
int properties_find_string(sd_bus_message *m, const char *name, const char **ret);

/* units-bus.c */
int bus_start(Units *u);
void bus_stop(Units *u);
void listing_check_done(Units *u);
/* What an error reply means as negative errno. */
int bus_error_to_errno(const sd_bus_error *error);

/* units-watch.c: hints from the drop-ins that systemd writes. Without inotify there are none. */
void watch_start(Units *u);
/* Looks for directories that are not watched yet. */
void watch_scan(Units *u);
void watch_stop(Units *u);

/* units-calls.c */
void calls_free(Units *u);
