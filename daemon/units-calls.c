/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What we ask systemd to do. Each open call is an object that ends with its one callback, or silently with the Units. */

#include "daemon/units-internal.h"

#define RELOAD_TIMEOUT_USEC (300 * USEC_PER_SEC)

struct UnitsCall {
        Units *units;
        UnitsDone done;
        UnitsResolved resolved;
        void *userdata;
        sd_bus_slot *slot;
        char *id;       /* unit to look at again afterwards; NULL none */
        char *path, *resolved_id; /* of units_resolve() */
        UnitsCall *previous, *next;
};

static UnitsCall *call_new(Units *u, UnitsDone done, void *userdata) {
        UnitsCall *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->units = u;
        c->done = done;
        c->userdata = userdata;
        c->next = u->calls;
        if (c->next)
                c->next->previous = c;
        u->calls = c;
        return c;
}

static void call_free(UnitsCall *c) {
        if (c->previous)
                c->previous->next = c->next;
        else
                c->units->calls = c->next;
        if (c->next)
                c->next->previous = c->previous;
        sd_bus_slot_unref(c->slot);
        free(c->id);
        free(c->path);
        free(c->resolved_id);
        free(c);
}

void calls_free(Units *u) {
        while (u->calls)
                call_free(u->calls);
}

static int on_done(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        UnitsCall *c = userdata;
        Units *u = c->units;
        UnitsDone done = c->done;
        void *done_userdata = c->userdata;
        const sd_bus_error *error = sd_bus_message_get_error(m);
        int r = sd_bus_message_is_method_error(m, NULL) ? bus_error_to_errno(error) : 0;

        if (r >= 0 && c->id)
                units_refresh(u, c->id);
        call_free(c);
        if (done)
                done(r, r < 0 && error ? error->message : NULL, done_userdata);
        return 0;
}

static bool can_call(const Units *u) {
        return u->bus && !u->bus_lost;
}

static int call_send(UnitsCall *c, sd_bus_message *m, sd_bus_message_handler_t fn, uint64_t timeout_usec) {
        int r;

        r = sd_bus_call_async(c->units->bus, &c->slot, m, fn, c, timeout_usec);
        if (r < 0)
                call_free(c);
        return r < 0 ? r : 0;
}

typedef struct PropertyValue {
        const char *name;
        uint64_t value;
} PropertyValue;

static int set_properties(Units *u, const char *id, const PropertyValue *values, size_t n, UnitsDone done, void *userdata) {
        sd_bus_message *m = NULL;
        UnitsCall *c;
        int r;

        r = sd_bus_message_new_method_call(u->bus, &m, SYSTEMD_SERVICE, SYSTEMD_PATH, SYSTEMD_MANAGER, "SetUnitProperties");
        if (r >= 0)
                r = sd_bus_message_append(m, "sb", id, 1);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "(sv)");
        for (size_t i = 0; i < n && r >= 0; i++)
                r = sd_bus_message_append(m, "(sv)", values[i].name, "t", values[i].value);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        if (r >= 0) {
                c = call_new(u, done, userdata);
                if (c && (c->id = strdup(id)))
                        r = call_send(c, m, on_done, 0);
                else {
                        if (c)
                                call_free(c);
                        r = -ENOMEM;
                }
        }
        sd_bus_message_unref(m);
        return r;
}

/* Remembers what stands in a drop-in before the first of our values, so that the owner's word can be told from ours from now on. */
static int remember_original(const UnitEntry *e, const char *property, char **original) {
        const UnitsHandlers *h = &e->units->handlers;
        const char *before = NULL;
        char *content = NULL;
        int r;

        r = units_read_dropin(e->info.id, property, NULL, &content);
        if (r == -ENOMEM)
                return r;
        if (r >= 0 && h->own_dropin && h->own_dropin(e->info.id, property, content, &before, e->units->userdata)) {
                r = free_and_strdup(original, before);
                free(content);
                return r;
        }
        free(*original);
        *original = r >= 0 ? content : NULL;
        return 0;
}

/* Whether a drop-in with our former value still stands: then what was before it is known already. */
static bool still_ours(const UnitEntry *e, const char *property, bool own, uint64_t value) {
        char *content = NULL;
        bool same;

        if (!own || units_read_dropin(e->info.id, property, NULL, &content) < 0)
                return false;
        same = units_dropin_says(e->info.id, property, content, value);
        free(content);
        return same;
}

int units_set_quota(Units *u, const char *id, uint64_t quota_usec, uint64_t period_usec, UnitsDone done, void *userdata) {
        PropertyValue values[2] = {
                { "CPUQuotaPerSecUSec", quota_to_per_sec_usec(quota_usec, period_usec ? period_usec : PERIOD_DEFAULT_USEC) },
                { "CPUQuotaPeriodUSec", period_usec },
        };
        UnitEntry *e;
        int r;

        if (!unit_type_of(id) || (quota_usec != QUOTA_UNLIMITED && quota_usec < QUOTA_MIN_USEC) ||
            (period_usec != 0 && (period_usec < PERIOD_MIN_USEC || period_usec > PERIOD_MAX_USEC)))
                return -EINVAL;
        if (!can_call(u))
                return -ENOTCONN;
        e = entry_find(u, id);
        if (e) {
                if (!still_ours(e, "CPUQuota", e->own_quota, e->own_quota_per_sec_usec)) {
                        r = remember_original(e, "CPUQuota", &e->own_quota_original);
                        if (r < 0)
                                return r;
                }
                if (period_usec != 0 && !still_ours(e, "CPUQuotaPeriodSec", e->own_period, e->own_quota_period_usec)) {
                        r = remember_original(e, "CPUQuotaPeriodSec", &e->own_period_original);
                        if (r < 0)
                                return r;
                }
        }
        r = set_properties(u, id, values, period_usec != 0 ? 2 : 1, done, userdata);
        if (r < 0)
                return r;
        if (e) {
                e->own_quota = true;
                e->own_quota_per_sec_usec = values[0].value;
                if (period_usec != 0) {
                        e->own_period = true;
                        e->own_quota_period_usec = period_usec;
                }
        }
        return 0;
}

int units_set_weight(Units *u, const char *id, uint64_t weight, UnitsDone done, void *userdata) {
        const PropertyValue value = { "CPUWeight", weight };

        if (!unit_type_of(id) || weight < 1 || weight > 10000)
                return -EINVAL;
        if (!can_call(u))
                return -ENOTCONN;
        return set_properties(u, id, &value, 1, done, userdata);
}

int units_reload(Units *u, UnitsDone done, void *userdata) {
        sd_bus_message *m = NULL;
        UnitsCall *c;
        int r;

        if (!can_call(u))
                return -ENOTCONN;
        r = sd_bus_message_new_method_call(u->bus, &m, SYSTEMD_SERVICE, SYSTEMD_PATH, SYSTEMD_MANAGER, "Reload");
        if (r >= 0) {
                c = call_new(u, done, userdata);
                r = c ? call_send(c, m, on_done, RELOAD_TIMEOUT_USEC) : -ENOMEM;
        }
        sd_bus_message_unref(m);
        return r;
}

/* ---- names ---- */

/* Ends the call. The strings outlive it: they are not the call's. */
static void resolve_end(UnitsCall *c, int error, const char *id, const char *load_state) {
        UnitsResolved resolved = c->resolved;
        void *userdata = c->userdata;

        call_free(c);
        if (resolved)
                resolved(error, id, load_state, userdata);
}

static int resolve_get(UnitsCall *c, const char *property, sd_bus_message_handler_t fn) {
        c->slot = sd_bus_slot_unref(c->slot);
        return sd_bus_call_method_async(c->units->bus, &c->slot, SYSTEMD_SERVICE, c->path, "org.freedesktop.DBus.Properties", "Get", fn, c, "ss", SYSTEMD_UNIT, property);
}

/* The string in an answer to Get, or the error. */
static int resolve_string(sd_bus_message *m, const char **ret) {
        if (sd_bus_message_is_method_error(m, NULL))
                return bus_error_to_errno(sd_bus_message_get_error(m));
        return sd_bus_message_read(m, "v", "s", ret);
}

static int on_load_state(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        UnitsCall *c = userdata;
        char *id = TAKE_PTR(c->resolved_id);
        const char *state = NULL;
        int r = resolve_string(m, &state);

        resolve_end(c, r < 0 ? r : 0, r < 0 ? NULL : id, state);
        free(id);
        return 0;
}

static int on_id(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        UnitsCall *c = userdata;
        const char *id;
        int r = resolve_string(m, &id);

        if (r >= 0)
                r = free_and_strdup(&c->resolved_id, id);
        if (r >= 0)
                r = resolve_get(c, "LoadState", on_load_state);
        if (r < 0)
                resolve_end(c, r, NULL, NULL);
        return 0;
}

static int on_loaded(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        UnitsCall *c = userdata;
        const char *path;
        int r;

        if (sd_bus_message_is_method_error(m, NULL))
                r = bus_error_to_errno(sd_bus_message_get_error(m));
        else
                r = sd_bus_message_read(m, "o", &path);
        if (r >= 0)
                r = free_and_strdup(&c->path, path);
        if (r >= 0)
                r = resolve_get(c, "Id", on_id);
        if (r < 0)
                resolve_end(c, r, NULL, NULL);
        return 0;
}

int units_resolve(Units *u, const char *name, UnitsResolved done, void *userdata) {
        sd_bus_message *m = NULL;
        UnitsCall *c;
        int r;

        if (!unit_type_of(name))
                return -EINVAL;
        if (!can_call(u))
                return -ENOTCONN;
        r = sd_bus_message_new_method_call(u->bus, &m, SYSTEMD_SERVICE, SYSTEMD_PATH, SYSTEMD_MANAGER, "LoadUnit");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", name);
        if (r >= 0) {
                c = call_new(u, NULL, userdata);
                if (c) {
                        c->resolved = done;
                        r = call_send(c, m, on_loaded, 0);
                } else
                        r = -ENOMEM;
        }
        sd_bus_message_unref(m);
        return r;
}
