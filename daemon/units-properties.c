/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What systemd says of a unit. A property that is missing or has another type than we know is as good as unset: other versions of systemd have other
 * properties.
 *
 * The interface of a unit's type is asked for as a whole. That of all units is not: it holds UnitFileState and UnitFilePreset, for which PID 1 searches all its directories on
 * disk (unit_get_unit_file_state(), src/core/unit.c), for each unit anew after each reload. So there only what is needed is asked for, one by one. */

#include "daemon/units-internal.h"

static const UnitType types[] = {
        { ".service", SYSTEMD_SERVICE ".Service", "Service" }, { ".scope", SYSTEMD_SERVICE ".Scope", "Scope" },
        { ".slice", SYSTEMD_SERVICE ".Slice", "Slice" },       { ".socket", SYSTEMD_SERVICE ".Socket", "Socket" },
        { ".mount", SYSTEMD_SERVICE ".Mount", "Mount" },       { ".swap", SYSTEMD_SERVICE ".Swap", "Swap" },
};

const UnitType *unit_type_of(const char *name) {
        const char *dot = strrchr(name, '.');
        size_t n = strlen(name);

        if (!dot || dot == name || n >= 256 || name[0] == '@')
                return NULL;
        if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@") != n)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (streq(dot, types[i].suffix))
                        return &types[i];
        return NULL;
}

char **strings_free(char **list) {
        for (size_t i = 0; list && list[i]; i++)
                free(list[i]);
        free(list);
        return NULL;
}

bool strings_equal(char *const *a, char *const *b) {
        size_t i = 0;

        if (!a || !b)
                return (!a || !*a) && (!b || !*b);
        for (; a[i] && b[i]; i++)
                if (!streq(a[i], b[i]))
                        return false;
        return a[i] == b[i];
}

char **strings_copy(char *const *list) {
        size_t n = 0;
        char **copy;

        while (list && list[n])
                n++;
        copy = calloc(n + 1, sizeof(*copy));
        for (size_t i = 0; copy && i < n; i++) {
                copy[i] = strdup(list[i]);
                if (!copy[i])
                        return strings_free(copy);
        }
        return copy;
}

void unit_info_clear(UnitInfo *info) {
        free(info->id);
        strings_free(info->names);
        free(info->cgroup);
        free(info->slice);
        free(info->active_state);
        free(info->load_state);
        free(info->user);
        free(info->fragment_path);
        strings_free(info->dropin_paths);
        free(info->class_word);
        free(info->overriding_dropin);
        *info = (UnitInfo){ 0 };
}

bool unit_info_equal(const UnitInfo *a, const UnitInfo *b) {
        return streq_null(a->id, b->id) && strings_equal(a->names, b->names) && streq_null(a->cgroup, b->cgroup) && streq_null(a->slice, b->slice) &&
               streq_null(a->active_state, b->active_state) && streq_null(a->load_state, b->load_state) && streq_null(a->user, b->user) &&
               streq_null(a->fragment_path, b->fragment_path) && strings_equal(a->dropin_paths, b->dropin_paths) && a->transient == b->transient &&
               a->delegate == b->delegate && a->quota_per_sec_usec == b->quota_per_sec_usec && a->quota_period_usec == b->quota_period_usec &&
               a->cpu_weight == b->cpu_weight && streq_null(a->class_word, b->class_word) && a->owner_quota_known == b->owner_quota_known &&
               a->owner_quota_per_sec_usec == b->owner_quota_per_sec_usec && a->owner_quota_period_usec == b->owner_quota_period_usec &&
               streq_null(a->overriding_dropin, b->overriding_dropin) && a->loading == b->loading;
}

/* What is known of a property's place in the struct. */
typedef struct Property {
        const char *name;
        char type; /* of D-Bus: s, b, t, or a for "as" */
        size_t offset;
} Property;

/* Of org.freedesktop.systemd1.Unit. */
static const Property unit_properties[ENTRY_CALLS - 1] = {
        { "Id", 's', offsetof(UnitInfo, id) },
        { "Names", 'a', offsetof(UnitInfo, names) },
        { "ActiveState", 's', offsetof(UnitInfo, active_state) },
        { "LoadState", 's', offsetof(UnitInfo, load_state) },
        { "FragmentPath", 's', offsetof(UnitInfo, fragment_path) },
        { "DropInPaths", 'a', offsetof(UnitInfo, dropin_paths) },
        { "Transient", 'b', offsetof(UnitInfo, transient) },
};

/* Of the interface of its type. */
static const Property type_properties[] = {
        { "ControlGroup", 's', offsetof(UnitInfo, cgroup) },
        { "Slice", 's', offsetof(UnitInfo, slice) },
        { "User", 's', offsetof(UnitInfo, user) },
        { "Delegate", 'b', offsetof(UnitInfo, delegate) },
        { "CPUQuotaPerSecUSec", 't', offsetof(UnitInfo, quota_per_sec_usec) },
        { "CPUQuotaPeriodUSec", 't', offsetof(UnitInfo, quota_period_usec) },
        { "CPUWeight", 't', offsetof(UnitInfo, cpu_weight) },
};

static int read_value(sd_bus_message *m, char type, void *slot) {
        const char *s;
        char **list = NULL;
        int b, r;

        switch (type) {
        case 's':
                r = sd_bus_message_read_basic(m, 's', &s);
                return r < 0 ? r : free_and_strdup(slot, s);
        case 'b':
                r = sd_bus_message_read_basic(m, 'b', &b);
                if (r >= 0)
                        *(bool *) slot = b;
                return r;
        case 't':
                return sd_bus_message_read_basic(m, 't', slot);
        default:
                r = sd_bus_message_read_strv(m, &list);
                if (r < 0)
                        return r;
                strings_free(*(char ***) slot);
                *(char ***) slot = list;
                return 0;
        }
}

/* Reads a variant: into slot when the type fits, else over it. */
static int read_variant(sd_bus_message *m, char type, void *slot) {
        const char signature[] = { type, type == 'a' ? 's' : 0, 0 }, *contents;
        int r;

        r = sd_bus_message_peek_type(m, NULL, &contents);
        if (r < 0)
                return r;
        if (!slot || !streq(contents, signature))
                return sd_bus_message_skip(m, "v");
        r = sd_bus_message_enter_container(m, 'v', contents);
        if (r >= 0)
                r = read_value(m, type, slot);
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r;
}

/* Reads the a{sv} of a type's interface. */
static int read_type_properties(sd_bus_message *m, UnitInfo *info) {
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                const Property *property = NULL;
                const char *name;

                r = sd_bus_message_read_basic(m, 's', &name);
                if (r < 0)
                        return r;
                for (size_t i = 0; i < ELEMENTSOF(type_properties) && !property; i++)
                        if (streq(type_properties[i].name, name))
                                property = &type_properties[i];
                r = read_variant(m, property ? property->type : 0, property ? (char *) info + property->offset : NULL);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int properties_find_string(sd_bus_message *m, const char *name, const char **ret) {
        int r;

        *ret = NULL;
        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                const char *key, *contents;

                r = sd_bus_message_read_basic(m, 's', &key);
                if (r >= 0)
                        r = sd_bus_message_peek_type(m, NULL, &contents);
                if (r < 0)
                        return r;
                if (streq(key, name) && streq(contents, "s"))
                        r = sd_bus_message_read(m, "v", "s", ret);
                else
                        r = sd_bus_message_skip(m, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* ---- asking ---- */

static int take_answer(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        EntryCall *call = userdata;
        UnitEntry *e = call->entry;
        size_t i = (size_t) (call - e->calls);
        int r;

        if (sd_bus_message_is_method_error(m, NULL))
                r = bus_error_to_errno(sd_bus_message_get_error(m));
        else if (i < ELEMENTSOF(unit_properties))
                r = read_variant(m, unit_properties[i].type, (char *) &e->incoming + unit_properties[i].offset);
        else
                r = read_type_properties(m, &e->incoming);
        if (r < 0 && e->error == 0)
                e->error = r;
        if (--e->n_open == 0)
                entry_finish(e);
        return 0;
}

void entry_forget_calls(UnitEntry *e) {
        for (size_t i = 0; i < ENTRY_CALLS; i++)
                e->calls[i].slot = sd_bus_slot_unref(e->calls[i].slot);
        e->n_open = 0;
}

int entry_ask(UnitEntry *e) {
        const UnitType *type = unit_type_of(e->info.id);
        int r;

        unit_info_clear(&e->incoming);
        e->incoming = (UnitInfo){ .quota_per_sec_usec = USEC_INFINITY, .quota_period_usec = USEC_INFINITY, .cpu_weight = UINT64_MAX };
        e->error = 0;
        e->n_open = 0;
        for (size_t i = 0; i < ENTRY_CALLS; i++) {
                EntryCall *c = &e->calls[i];

                c->entry = e;
                if (i < ELEMENTSOF(unit_properties))
                        r = sd_bus_call_method_async(e->units->bus, &c->slot, SYSTEMD_SERVICE, e->path, "org.freedesktop.DBus.Properties", "Get",
                                                     take_answer, c, "ss", SYSTEMD_UNIT, unit_properties[i].name);
                else
                        r = sd_bus_call_method_async(e->units->bus, &c->slot, SYSTEMD_SERVICE, e->path, "org.freedesktop.DBus.Properties", "GetAll",
                                                     take_answer, c, "s", type->interface);
                if (r < 0) {
                        entry_forget_calls(e);
                        return r;
                }
                e->n_open++;
        }
        return 0;
}
