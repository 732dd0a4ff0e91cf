/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* systemd sends no signal when somebody sets a property of a unit (tried on 252: SetUnitProperties changes the property and writes the drop-in, and that is all). But the
 * drop-in can be watched: in the directories for settings, and in each unit's directory there. What is seen is only a hint to ask about the unit again. */

#include "daemon/units-internal.h"

#include <dirent.h>
#include <search.h>
#include <sys/inotify.h>

#define HINT_DELAY_USEC (20 * USEC_PER_MSEC)  /* period and quota come one after the other */
#define WATCHES_MAX 20000U

typedef enum WatchKind {
        WATCH_PARENT, /* where a directory for settings may appear */
        WATCH_BASE,   /* a directory for settings */
        WATCH_UNIT,   /* a unit's directory there */
} WatchKind;

typedef struct Watch {
        int wd;
        WatchKind kind;
        char *path;
        char *unit; /* of WATCH_UNIT */
} Watch;

/* The directory is made with the first setting, so its parent is watched, too. */
static const struct {
        const char *parent, *name;
} bases[] = { { "/run/systemd", "system.control" }, { "/run/systemd", "transient" }, { "/etc/systemd", "system.control" } };

static int compare_watches(const void *a, const void *b) {
        int x = ((const Watch *) a)->wd, y = ((const Watch *) b)->wd;

        return x < y ? -1 : x > y;
}

static void watch_free(void *p) {
        Watch *w = p;

        free(w->path);
        free(w->unit);
        free(w);
}

static Watch *watch_find(const Units *u, int wd) {
        Watch like = { .wd = wd }, **found = tfind(&like, &u->watches, compare_watches);

        return found ? *found : NULL;
}

/* Watches a directory; one that is watched already, or can't be, is no matter. Returns true when it is new. */
static bool watch_add(Units *u, WatchKind kind, const char *path, const char *unit) {
        uint32_t mask = IN_ONLYDIR | IN_MOVED_TO | IN_CREATE | (kind == WATCH_UNIT ? IN_CLOSE_WRITE | IN_DELETE : 0);
        Watch *w;
        int wd;

        if (u->watch_fd < 0 || u->n_watches >= WATCHES_MAX)
                return false;
        wd = inotify_add_watch(u->watch_fd, path, mask);
        if (wd < 0 || watch_find(u, wd))
                return false;
        w = calloc(1, sizeof(*w));
        if (w) {
                w->wd = wd;
                w->kind = kind;
                w->path = strdup(path);
                w->unit = unit ? strdup(unit) : NULL;
                if (w->path && (!unit || w->unit) && tsearch(w, &u->watches, compare_watches)) {
                        u->n_watches++;
                        return true;
                }
                watch_free(w);
        }
        (void) inotify_rm_watch(u->watch_fd, wd);
        return false;
}

static void hint(Units *u, const char *unit) {
        UnitEntry *e = u->in_reload ? NULL : entry_find(u, unit);

        if (!e)
                return;
        e->read_files = true;
        entry_schedule(e, HINT_DELAY_USEC);
}

/* A directory UNIT.d below a directory for settings. */
static void see_unit_directory(Units *u, const char *base, const char *name, bool tell) {
        _cleanup_free_ char *path = NULL, *unit = NULL;

        if (!endswith(name, ".d"))
                return;
        unit = strndup(name, strlen(name) - 2);
        if (!unit || !unit_type_of(unit))
                return;
        if (asprintf(&path, "%s/%s", base, name) < 0) {
                path = NULL;
                return;
        }
        /* Its first file may have come before our watch. */
        if (watch_add(u, WATCH_UNIT, path, unit) && tell)
                hint(u, unit);
}

static void see_base(Units *u, const char *path, bool tell) {
        DIR *d;

        (void) watch_add(u, WATCH_BASE, path, NULL);
        d = opendir(path);
        if (!d)
                return;
        for (struct dirent *entry; (entry = readdir(d));)
                see_unit_directory(u, path, entry->d_name, tell);
        (void) closedir(d);
}

void watch_scan(Units *u) {
        for (size_t i = 0; i < ELEMENTSOF(bases); i++) {
                char path[64];

                (void) watch_add(u, WATCH_PARENT, bases[i].parent, NULL);
                (void) snprintf(path, sizeof(path), "%s/%s", bases[i].parent, bases[i].name);
                see_base(u, path, false);
        }
}

static void take_event(Units *u, const struct inotify_event *event) {
        const char *name = event->len > 0 ? event->name : "";
        Watch *w;

        if (event->mask & IN_Q_OVERFLOW) {
                watch_scan(u);
                for (UnitEntry *e = u->entries, *next; e; e = next) {
                        next = e->next;
                        e->read_files = true;
                        entry_schedule(e, HINT_DELAY_USEC);
                }
                return;
        }
        w = watch_find(u, event->wd);
        if (!w)
                return;
        if (event->mask & IN_IGNORED) {
                (void) tdelete(w, &u->watches, compare_watches);
                u->n_watches--;
                watch_free(w);
                return;
        }
        switch (w->kind) {
        case WATCH_PARENT:
                for (size_t i = 0; i < ELEMENTSOF(bases); i++)
                        if (streq(w->path, bases[i].parent) && streq(name, bases[i].name)) {
                                char path[64];

                                (void) snprintf(path, sizeof(path), "%s/%s", bases[i].parent, bases[i].name);
                                see_base(u, path, true);
                        }
                break;
        case WATCH_BASE:
                see_unit_directory(u, w->path, name, true);
                break;
        case WATCH_UNIT:
                if (startswith(name, "50-CPU"))
                        hint(u, w->unit);
                break;
        }
}

static int on_events(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        char buffer[16 << 10] __attribute__((aligned(__alignof__(struct inotify_event))));
        Units *u = userdata;
        ssize_t n = read(fd, buffer, sizeof(buffer));

        for (char *p = buffer; n > 0 && p < buffer + n;) {
                const struct inotify_event *event = (const struct inotify_event *) p;

                take_event(u, event);
                p += sizeof(*event) + event->len;
        }
        return 0;
}

void watch_start(Units *u) {
        u->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (u->watch_fd < 0)
                return;
        if (sd_event_add_io(u->event, &u->watch_source, u->watch_fd, EPOLLIN, on_events, u) < 0) {
                (void) close(u->watch_fd);
                u->watch_fd = -1;
                return;
        }
        (void) sd_event_source_set_description(u->watch_source, "units-watch");
}

void watch_stop(Units *u) {
        u->watch_source = sd_event_source_disable_unref(u->watch_source);
        if (u->watch_fd >= 0)
                (void) close(u->watch_fd);
        u->watch_fd = -1;
        tdestroy(u->watches, watch_free);
        u->watches = NULL;
        u->n_watches = 0;
}
