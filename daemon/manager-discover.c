/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tree of groups, kept true by inotify on each cgroup directory.
 *
 * mkdir and rmdir of a cgroup go through the VFS and so make IN_CREATE and IN_DELETE events in the parent; a write to a control file makes
 * IN_MODIFY (and so does the kernel for cgroup.events). A watch is placed before the directory is listed, so nothing falls between. When the queue overflows or
 * watches run out, the whole tree is walked again: events only make the daemon faster, the walk makes it right. */

#include "daemon/manager-internal.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#define WATCH_TREE (IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW)
#define WATCH_VALUES (WATCH_TREE | IN_MODIFY | IN_CLOSE_WRITE)   /* the latter comes also when the kernel refused the write */
#define FOREIGN_SAMPLE_USEC (20 * USEC_PER_MSEC)
#define OWN_WRITE_USEC (200 * USEC_PER_MSEC)

static void watch_directory(Manager *m, Group *g, int dir_fd, uint32_t mask) {
        char proc_path[64];
        int wd;

        if (m->inotify_fd < 0)
                return;
        (void) snprintf(proc_path, sizeof(proc_path), "/proc/self/fd/%d", dir_fd);
        /* IN_DONT_FOLLOW would stop at the /proc link itself: the descriptor is a directory already. */
        wd = inotify_add_watch(m->inotify_fd, proc_path, (mask & ~(uint32_t) IN_DONT_FOLLOW));
        if (wd < 0) {
                if ((errno == ENOSPC || errno == ENOMEM) && !m->watches_exhausted) {
                        m->watches_exhausted = true;
                        m->next_rescan_usec = clock_monotonic_usec() + RESCAN_UNWATCHED_USEC;
                        log_warning("No more inotify watches (fs.inotify.max_user_watches): the cgroup tree is walked every %u s instead",
                                    (unsigned) (RESCAN_UNWATCHED_USEC / USEC_PER_SEC));
                }
                return;
        }
        (void) group_table_set_watch(&m->groups, g, wd);
}

void discover_watch_values(Manager *m, Group *g) {
        _cleanup_close_ int fd = cgroup_open(&m->root, g->path);

        if (fd >= 0)
                watch_directory(m, g, fd, WATCH_VALUES);
}

void discover_group_gone(Manager *m, Group *g) {
        LedgerRecord records[3] = {
                { .kind = LEDGER_BANDWIDTH, .key = g->path, .inode = g->inode },
                { .kind = LEDGER_LATENCY_FILE, .key = g->path, .inode = g->inode },
                { .kind = LEDGER_CORE_TAG, .key = g->path, .inode = g->inode },
        };

        if (g->dirty) {
                /* Take it out of the queue: it is singly linked, and short. */
                Group **link = &m->dirty_head, *previous = NULL;

                while (*link && *link != g) {
                        previous = *link;
                        link = &(*link)->next_dirty;
                }
                if (*link == g) {
                        *link = g->next_dirty;
                        if (m->dirty_tail == g)
                                m->dirty_tail = previous;
                }
        }
        if (g->managed && !m->config.dry_run) {
                latency_group_gone(m, g);
                cookie_group_gone(m, g);
        }
        /* The kernel has forgotten this group's values: nothing is left to restore. */
        for (size_t i = 0; i < ELEMENTSOF(records); i++)
                if (ledger_find(m->ledger, records[i].kind, g->path, g->inode, 0, 0))
                        (void) ledger_drop(m->ledger, &records[i]);
        if (g->watch >= 0 && m->inotify_fd >= 0)
                (void) inotify_rm_watch(m->inotify_fd, g->watch);
        group_table_remove(&m->groups, g);
        (void) group_free(g);
}

/* Removes a group and all below it. */
static void subtree_gone(Manager *m, const char *path) {
        _cleanup_free_ char *prefix = NULL;
        Group *g;

        if (asprintf(&prefix, "%s/", streq(path, "/") ? "" : path) < 0) {
                prefix = NULL;
                return;
        }
        for (;;) {
                size_t i = group_table_lower_bound(&m->groups, prefix);

                if (i >= m->groups.n || !startswith(m->groups.items[i]->path, prefix))
                        break;
                discover_group_gone(m, m->groups.items[i]);
        }
        g = group_table_find(&m->groups, path);
        if (g)
                discover_group_gone(m, g);
}

static int found(const char *path, int dir_fd, uint64_t inode, void *userdata) {
        Manager *m = userdata;
        Group *g = group_table_find(&m->groups, path);
        bool fresh = false;
        struct stat st;
        int r;

        if (g && g->inode != inode) {
                /* Removed and made again under the same name: another group. */
                subtree_gone(m, path);
                g = NULL;
        }
        if (!g) {
                _cleanup_free_ char *label = NULL;

                r = group_new(path, inode, &g);
                if (r < 0)
                        return r;
                r = group_table_add(&m->groups, g);
                if (r < 0) {
                        (void) group_free(g);
                        return r;
                }
                if (cgroup_label(dir_fd, &label) >= 0)
                        g->label = TAKE_PTR(label);
                if (fstat(dir_fd, &st) == 0) {
                        g->has_owner_uid = true;
                        g->owner_uid = st.st_uid;
                }
                fresh = true;
        }
        g->seen = true;
        if (g->watch < 0)
                watch_directory(m, g, dir_fd, g->managed ? WATCH_VALUES : WATCH_TREE);
        if (fresh)
                manager_mark_dirty(m, g);
        return 0;
}

/* A label may be set after the directory was made; it is read again on a full walk. */
static int found_again(const char *path, int dir_fd, uint64_t inode, void *userdata) {
        Manager *m = userdata;
        _cleanup_free_ char *label = NULL;
        Group *g;
        int r = found(path, dir_fd, inode, m);

        if (r < 0)
                return r;
        g = group_table_find(&m->groups, path);
        if (!g)
                return 0;
        (void) cgroup_label(dir_fd, &label);
        if (!streq_null(label, g->label)) {
                free(g->label);
                g->label = TAKE_PTR(label);
                manager_mark_dirty(m, g);
        }
        return 0;
}

void discover_rescan(Manager *m) {
        int r;

        if (!m->has_root)
                return;
        m->counters.n_rescans++;
        m->rescan_wanted = false;
        for (size_t i = 0; i < m->groups.n; i++)
                m->groups.items[i]->seen = false;
        r = cgroup_walk(&m->root, "/", found_again, m);
        if (r < 0) {
                log_warning("Walking the cgroup tree failed, it is tried again: %s", strerror(-r));
                m->rescan_wanted = true;
                m->next_rescan_usec = clock_monotonic_usec() + RESCAN_UNWATCHED_USEC;
                manager_wake_at(m, m->next_rescan_usec);
                return;
        }
        for (size_t i = 0; i < m->groups.n;)
                if (!m->groups.items[i]->seen)
                        discover_group_gone(m, m->groups.items[i]);
                else
                        i++;
}

static void handle_event(Manager *m, const struct inotify_event *e) {
        Group *parent = group_table_find_watch(&m->groups, e->wd);
        _cleanup_free_ char *path = NULL;

        if (!parent)
                return;
        if (e->mask & (IN_DELETE_SELF | IN_IGNORED)) {
                (void) group_table_set_watch(&m->groups, parent, -1);
                if (e->mask & IN_DELETE_SELF)
                        m->rescan_wanted = m->rescan_wanted || !streq(parent->path, "/");
                return;
        }
        if (e->len == 0)
                return;
        if (e->mask & (IN_MODIFY | IN_CLOSE_WRITE)) {
                if (parent->managed && startswith(e->name, "cpu.")) {
                        const UnitInfo *unit = group_unit(m, parent);

                        /* Whoever may write here (the owner of a delegated group) can't make us run more often than this. */
                        uint64_t due = MAX_OF(clock_monotonic_usec(), parent->managed->sample.at_usec + FOREIGN_SAMPLE_USEC);

                        parent->managed->next_sample_usec = MIN_OF(parent->managed->next_sample_usec, due);
                        manager_wake_at(m, due);
                        /* systemd sends no signal when a cgroup property is set, and its write may have been refused: ask it. */
                        if (unit && clock_monotonic_usec() - parent->managed->bandwidth.common.last_write_usec > OWN_WRITE_USEC)
                                units_refresh(m->units, unit->id);
                } else if (streq(e->name, "cgroup.events") && m->n_pool_groups > 0)
                        manager_wake(m);
                return;
        }
        if (!(e->mask & IN_ISDIR)) {
                /* A control file came or went: the cpu controller was turned on or off in the parent's subtree_control. */
                if (startswith(e->name, "cpu.max"))
                        manager_mark_dirty(m, parent);
                return;
        }
        if (asprintf(&path, "%s/%s", streq(parent->path, "/") ? "" : parent->path, e->name) < 0) {
                path = NULL;
                m->rescan_wanted = true;
                return;
        }
        if (e->mask & IN_DELETE) {
                _cleanup_close_ int fd = cgroup_open(&m->root, path);

                /* The same name may be there again already: then a walk tells the inodes apart. */
                if (fd < 0)
                        subtree_gone(m, path);
                else if (cgroup_walk(&m->root, path, found, m) < 0)
                        m->rescan_wanted = true;
        } else if (e->mask & IN_CREATE) {
                int r = cgroup_walk(&m->root, path, found, m);

                /* Gone again already is no failure; anything else (no descriptors, no memory) must not lose a group. */
                if (r < 0 && r != -ENOENT && r != -ENODEV)
                        m->rescan_wanted = true;
        }
}

static int on_inotify(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Manager *m = userdata;
        char buffer[16384] __attribute__((aligned(__alignof__(struct inotify_event))));

        for (unsigned turn = 0; turn < 16; turn++) {   /* bounded: other sources get their turn */
                ssize_t n = read(fd, buffer, sizeof(buffer));

                if (n <= 0)
                        break;
                for (char *p = buffer; p < buffer + n;) {
                        const struct inotify_event *e = (const struct inotify_event *) p;

                        if (e->mask & IN_Q_OVERFLOW) {
                                m->counters.n_overflows++;
                                m->rescan_wanted = true;
                                log_fields(LOG_NOTICE, MESSAGE_RESCAN, "The queue of cgroup events overflowed: walking the whole tree", NULL);
                        } else
                                handle_event(m, e);
                        p += sizeof(*e) + e->len;
                }
        }
        if (m->rescan_wanted)
                discover_rescan(m);
        return 0;
}

int discover_start(Manager *m) {
        int r;

        if (!m->has_root)
                return 0;
        m->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (m->inotify_fd < 0)
                return -errno;
        r = sd_event_add_io(m->event, &m->inotify_source, m->inotify_fd, EPOLLIN, on_inotify, m);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(m->inotify_source, "cgroup-tree");
        discover_rescan(m);
        return 0;
}

void discover_stop(Manager *m) {
        m->inotify_source = sd_event_source_disable_unref(m->inotify_source);
        if (m->inotify_fd >= 0)
                (void) close(m->inotify_fd);
        m->inotify_fd = -1;
}
