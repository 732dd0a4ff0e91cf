/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The connection and what comes over it unasked. Whatever happened, a listing makes the table true again: at the start, after the bus was away, when
 * systemd has reloaded (it forgets and announces every unit then, and the files may have changed) or has executed itself anew. */

#include "daemon/units-internal.h"

#define SYSTEM_BUS_ADDRESS "unix:path=/run/dbus/system_bus_socket"
#define CALL_TIMEOUT_USEC (60 * USEC_PER_SEC)
#define BACKOFF_MIN_USEC (100 * USEC_PER_MSEC)
#define BACKOFF_MAX_USEC (10 * USEC_PER_SEC)
#define RELOAD_MAX_USEC (120 * USEC_PER_SEC)   /* a reload whose end we did not hear */
#define NEW_UNIT_DELAY_USEC (50 * USEC_PER_MSEC)
#define STATE_DELAY_USEC (20 * USEC_PER_MSEC)  /* a unit started or stopped */
#define NEWS_DELAY_USEC (200 * USEC_PER_MSEC)  /* anything else, */
#define NEWS_INTERVAL_USEC USEC_PER_SEC        /* and at most once in this time: some services change their status text all the time */

int bus_error_to_errno(const sd_bus_error *error) {
        static const struct {
                const char *name;
                int error;
        } known[] = {
                { SYSTEMD_SERVICE ".NoSuchUnit", -ENOENT },
                { SD_BUS_ERROR_UNKNOWN_OBJECT, -ENOENT },
                { SD_BUS_ERROR_UNKNOWN_INTERFACE, -ENOENT },
                { SD_BUS_ERROR_FILE_NOT_FOUND, -ENOENT },
                { SD_BUS_ERROR_SERVICE_UNKNOWN, -ENOTCONN },
                { SD_BUS_ERROR_NAME_HAS_NO_OWNER, -ENOTCONN },
                { SD_BUS_ERROR_NO_REPLY, -ENOTCONN },
                { SD_BUS_ERROR_DISCONNECTED, -ENOTCONN },
                { SD_BUS_ERROR_ACCESS_DENIED, -EACCES },
                { SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, -EACCES },
                { SD_BUS_ERROR_INVALID_ARGS, -EINVAL },
                { SD_BUS_ERROR_TIMEOUT, -ETIMEDOUT },
                { "org.freedesktop.DBus.Error.TimedOut", -ETIMEDOUT },
                { SD_BUS_ERROR_NO_MEMORY, -ENOMEM },
        };

        if (!error || !error->name)
                return -EIO;
        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                if (streq(error->name, known[i].name))
                        return known[i].error;
        return -EIO;
}

static void start_listing(Units *u);

static int on_retry(sd_event_source *s, uint64_t usec, void *userdata);

/* Connects, or lists, after a while. */
static void retry_in(Units *u, uint64_t usec) {
        if (!u->retry) {
                if (sd_event_add_time_relative(u->event, &u->retry, CLOCK_MONOTONIC, usec, 0, on_retry, u) >= 0)
                        (void) sd_event_source_set_description(u->retry, "units-retry");
                return;
        }
        (void) sd_event_source_set_time_relative(u->retry, usec);
        (void) sd_event_source_set_enabled(u->retry, SD_EVENT_ONESHOT);
}

static void retry_with_backoff(Units *u) {
        u->backoff_usec = CLAMP_TO(2 * u->backoff_usec, BACKOFF_MIN_USEC, BACKOFF_MAX_USEC);
        retry_in(u, u->backoff_usec);
}

/* ---- reloads ---- */

static void reload_begins(Units *u) {
        u->in_reload = true;
        if (!u->reloading && u->connected) {
                u->reloading = true;
                if (u->handlers.reloading)
                        u->handlers.reloading(true, u->userdata);
        }
}

/* ---- listing ---- */

void listing_check_done(Units *u) {
        if (!u->listing || u->listing_slot || u->n_listing > 0 || u->in_reload)
                return;
        u->listing = false;
        u->backoff_usec = 0;
        if (u->reloading) {
                u->reloading = false;
                if (u->handlers.reloading)
                        u->handlers.reloading(false, u->userdata);
        }
        if (!u->connected) {
                u->connected = true;
                if (u->handlers.connected)
                        u->handlers.connected(u->userdata);
        }
}

static int take_list(Units *u, sd_bus_message *m) {
        const char *name, *load_state, *active_state;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "(ssssssouso)");
        if (r < 0)
                return r;
        u->generation++;
        while ((r = sd_bus_message_read(m, "(ssssssouso)", &name, NULL, &load_state, &active_state, NULL, NULL, NULL, NULL, NULL, NULL)) > 0) {
                UnitEntry *e;

                /* A name that some unit mentions and nothing stands behind. */
                if (streq(active_state, "inactive"))
                        continue;
                e = entry_get(u, name);
                if (!e)
                        continue;
                e->generation = u->generation;
                e->read_files = true;
                if (!e->listing) {
                        e->listing = true;
                        u->n_listing++;
                }
        }
        if (r < 0)
                return r;
        for (UnitEntry *e = u->entries, *next; e; e = next) {
                next = e->next;
                if (e->generation != u->generation)
                        entry_remove(e);
        }
        for (UnitEntry *e = u->entries, *next; e; e = next) {
                next = e->next;
                entry_schedule(e, 0);
        }
        return 0;
}

static int on_list(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Units *u = userdata;

        u->listing_slot = sd_bus_slot_unref(u->listing_slot);
        if (sd_bus_message_is_method_error(m, NULL) || take_list(u, m) < 0) {
                u->listing = false;
                retry_with_backoff(u);
                return 0;
        }
        listing_check_done(u);
        return 0;
}

static int on_search_path(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Units *u = userdata;
        char **list = NULL;

        u->path_slot = sd_bus_slot_unref(u->path_slot);
        if (sd_bus_message_is_method_error(m, NULL) || sd_bus_message_enter_container(m, 'v', "as") < 0 || sd_bus_message_read_strv(m, &list) < 0)
                return 0; /* good enough without */
        strings_free(u->search_path);
        u->search_path = list;
        return 0;
}

static int on_subscribed(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Units *u = userdata;
        int r;

        u->listing_slot = sd_bus_slot_unref(u->listing_slot);
        if (sd_bus_message_is_method_error(m, NULL) && !sd_bus_message_is_method_error(m, SYSTEMD_SERVICE ".AlreadySubscribed"))
                r = -EIO;
        else
                r = free_and_strdup(&u->owner, sd_bus_message_get_sender(m));
        if (r >= 0)
                r = sd_bus_call_method_async(u->bus, &u->listing_slot, SYSTEMD_SERVICE, SYSTEMD_PATH, SYSTEMD_MANAGER, "ListUnits", on_list, u, NULL);
        if (r < 0) {
                u->listing = false;
                retry_with_backoff(u);
        }
        return 0;
}

/* Begins anew, also when one is under way. */
static void start_listing(Units *u) {
        int r;

        if (u->retry)
                (void) sd_event_source_set_enabled(u->retry, SD_EVENT_OFF);
        u->listing_slot = sd_bus_slot_unref(u->listing_slot);
        u->path_slot = sd_bus_slot_unref(u->path_slot);
        u->listing = true;
        /* Before the first question: what changes after it is seen. */
        watch_scan(u);
        /* systemd answers in order: the path is here before the first unit is looked at. */
        (void) sd_bus_call_method_async(u->bus, &u->path_slot, SYSTEMD_SERVICE, SYSTEMD_PATH, "org.freedesktop.DBus.Properties", "Get", on_search_path, u,
                                        "ss", SYSTEMD_MANAGER, "UnitPath");
        r = sd_bus_call_method_async(u->bus, &u->listing_slot, SYSTEMD_SERVICE, SYSTEMD_PATH, SYSTEMD_MANAGER, "Subscribe", on_subscribed, u, NULL);
        if (r < 0) {
                u->listing = false;
                retry_with_backoff(u);
        }
}

/* ---- signals ---- */

/* The bus lets anybody send a signal straight to us, whatever we asked for. Only systemd's count. */
static bool is_from_systemd(const Units *u, sd_bus_message *m) {
        const char *sender = sd_bus_message_get_sender(m);

        return u->owner && sender && streq(u->owner, sender);
}

static int on_unit_new(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Units *u = userdata;
        const char *name;
        UnitEntry *e;

        if (!is_from_systemd(u, m) || u->in_reload || sd_bus_message_read(m, "so", &name, NULL) < 0)
                return 0;
        e = entry_get(u, name);
        if (e) {
                e->generation = u->generation;
                entry_schedule(e, NEW_UNIT_DELAY_USEC);
        }
        return 0;
}

static int on_unit_removed(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Units *u = userdata;
        const char *name;
        UnitEntry *e;

        if (!is_from_systemd(u, m) || u->in_reload || sd_bus_message_read(m, "so", &name, NULL) < 0)
                return 0;
        e = entry_find(u, name);
        if (e && streq(e->info.id, name)) {
                entry_remove(e);
                listing_check_done(u);
        }
        return 0;
}

static int on_properties_changed(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Units *u = userdata;
        _cleanup_free_ char *name = NULL;
        const char *interface, *state;
        UnitEntry *e;

        if (!is_from_systemd(u, m) || u->in_reload || sd_bus_path_decode(sd_bus_message_get_path(m), SYSTEMD_UNITS_PATH, &name) <= 0)
                return 0;
        if (sd_bus_message_read(m, "s", &interface) < 0 || properties_find_string(m, "ActiveState", &state) < 0)
                return 0;
        e = entry_get(u, name);
        if (!e)
                return 0;
        if (!e->published)
                entry_schedule(e, NEW_UNIT_DELAY_USEC);
        else if (state && !streq(state, e->info.active_state))
                entry_schedule(e, STATE_DELAY_USEC);
        else {
                uint64_t next = e->asked_usec + NEWS_INTERVAL_USEC, now = units_now(u);

                entry_schedule(e, MAX_OF(next > now ? next - now : 0, NEWS_DELAY_USEC));
        }
        return 0;
}

static int on_reloading(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Units *u = userdata;
        int active;

        if (!is_from_systemd(u, m) || sd_bus_message_read(m, "b", &active) < 0)
                return 0;
        if (active) {
                reload_begins(u);
                retry_in(u, RELOAD_MAX_USEC);
        } else {
                reload_begins(u); /* after a re-exec only the end is told */
                u->in_reload = false;
                start_listing(u);
        }
        return 0;
}

static int on_owner_changed(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Units *u = userdata;
        const char *old, *new;

        if (!streq_null(sd_bus_message_get_sender(m), "org.freedesktop.DBus") || sd_bus_message_read(m, "sss", NULL, &old, &new) < 0)
                return 0;
        (void) free_and_strdup(&u->owner, new[0] ? new : NULL);
        if (old[0])
                reload_begins(u); /* systemd executes itself anew, or lost the bus as we are about to */
        if (new[0]) {
                u->in_reload = false;
                u->backoff_usec = 0;
                start_listing(u);
        }
        return 0;
}

/* ---- the connection ---- */

static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Units *u = userdata;
        bool was_connected = u->connected;

        /* All open calls have had their error by now: sd-bus sees to that before this message. */
        u->bus_lost = true;
        u->listing_slot = sd_bus_slot_unref(u->listing_slot);
        u->path_slot = sd_bus_slot_unref(u->path_slot);
        u->listing = false;
        u->in_reload = false;
        u->connected = false;
        entries_halt(u);
        if (was_connected && u->handlers.disconnected)
                u->handlers.disconnected(u->userdata);
        retry_with_backoff(u);
        return 0;
}

static int add_matches(Units *u) {
        static const struct {
                const char *sender, *path, *interface, *member;
                sd_bus_message_handler_t fn;
        } signals[] = {
                { SYSTEMD_SERVICE, SYSTEMD_PATH, SYSTEMD_MANAGER, "UnitNew", on_unit_new },
                { SYSTEMD_SERVICE, SYSTEMD_PATH, SYSTEMD_MANAGER, "UnitRemoved", on_unit_removed },
                { SYSTEMD_SERVICE, SYSTEMD_PATH, SYSTEMD_MANAGER, "Reloading", on_reloading },
        };
        int r;

        r = sd_bus_match_signal(u->bus, NULL, "org.freedesktop.DBus.Local", "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local", "Disconnected",
                                on_disconnected, u);
        for (size_t i = 0; i < ELEMENTSOF(signals) && r >= 0; i++)
                r = sd_bus_match_signal_async(u->bus, NULL, signals[i].sender, signals[i].path, signals[i].interface, signals[i].member, signals[i].fn, NULL, u);
        /* Of the two signals a unit sends at each change, that of its type and then this one, the second is enough. */
        if (r >= 0)
                r = sd_bus_add_match_async(u->bus, NULL,
                                           "type='signal',sender='" SYSTEMD_SERVICE "',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',"
                                           "path_namespace='" SYSTEMD_UNITS_PATH "',arg0='" SYSTEMD_UNIT "'",
                                           on_properties_changed, NULL, u);
        if (r >= 0)
                r = sd_bus_add_match_async(u->bus, NULL,
                                           "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
                                           "path='/org/freedesktop/DBus',arg0='" SYSTEMD_SERVICE "'",
                                           on_owner_changed, NULL, u);
        return r;
}

static int connect_bus(Units *u) {
        const char *address = u->address;
        int r;

        if (!address)
                address = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");
        r = sd_bus_new(&u->bus);
        if (r >= 0)
                r = sd_bus_set_address(u->bus, address ?: SYSTEM_BUS_ADDRESS);
        if (r >= 0)
                r = sd_bus_set_bus_client(u->bus, true);
        if (r >= 0)
                r = sd_bus_set_description(u->bus, "units");
        if (r >= 0)
                r = sd_bus_set_method_call_timeout(u->bus, CALL_TIMEOUT_USEC);
        if (r >= 0)
                r = sd_bus_start(u->bus);
        if (r >= 0)
                r = sd_bus_attach_event(u->bus, u->event, SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0)
                r = add_matches(u);
        if (r < 0)
                bus_stop(u);
        return r;
}

void bus_stop(Units *u) {
        u->listing_slot = sd_bus_slot_unref(u->listing_slot);
        u->path_slot = sd_bus_slot_unref(u->path_slot);
        u->listing = false;
        if (u->bus)
                (void) sd_bus_detach_event(u->bus);
        u->bus = sd_bus_close_unref(u->bus);
        free(u->owner);
        u->owner = NULL;
        u->bus_lost = false;
}

static int on_retry(sd_event_source *s, uint64_t usec, void *userdata) {
        Units *u = userdata;

        if (u->bus_lost || !u->bus) {
                bus_stop(u);
                if (connect_bus(u) < 0) {
                        retry_with_backoff(u);
                        return 0;
                }
        }
        u->in_reload = false;
        if (!u->listing)
                start_listing(u);
        return 0;
}

int bus_start(Units *u) {
        /* From the loop, so that no handler runs before units_new() has returned. */
        retry_in(u, 0);
        return u->retry ? 0 : -ENOMEM;
}
