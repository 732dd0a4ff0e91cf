/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Assignments as people and programs write them (the API), and as lines of the log on disk. The log keeps every byte and the exact time; the API
 * shows text. Both are read with the same checks. */

#include "daemon/assignments-internal.h"
#include "policies/fields.h"

/* ---- writing ---- */

/* Text with U+FFFD for each byte that is not part of UTF-8. */
static json_t *lossy_string(const char *s) {
        _cleanup_free_ char *text = malloc(3 * strlen(s) + 1);
        size_t n = 0;

        if (!text)
                return NULL;
        while (*s) {
                size_t length = 1;
                json_t *one;

                /* The shortest piece that is a string of its own is one character. */
                for (; length <= 4 && memchr(s, 0, length) == NULL; length++) {
                        one = json_stringn(s, length);
                        if (one) {
                                json_decref(one);
                                break;
                        }
                }
                if (length <= 4 && memchr(s, 0, length) == NULL) {
                        memcpy(text + n, s, length);
                        n += length;
                        s += length;
                } else {
                        memcpy(text + n, "\xef\xbf\xbd", 3);
                        n += 3;
                        s++;
                }
        }
        return json_stringn(text, n);
}

static json_t *percent_encoded(const char *s) {
        _cleanup_free_ char *text = malloc(3 * strlen(s) + 1);
        size_t n = 0;

        if (!text)
                return NULL;
        for (; *s; s++)
                if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/", *s))
                        text[n++] = *s;
                else
                        n += (size_t) snprintf(text + n, 4, "%%%02X", (unsigned char) *s);
        return json_stringn(text, n);
}

static json_t *time_or_null(uint64_t realtime_usec) {
        char buffer[32];

        return realtime_usec > 0 ? json_string(time_to_rfc3339(realtime_usec, buffer, sizeof(buffer))) : json_null();
}

static json_t *overrides_or_null(const Overrides *o) {
        return overrides_is_empty(o) ? json_null() : overrides_to_json(o);
}

json_t *assignment_to_json(const Assignment *a) {
        json_t *o = json_object(), *target;
        int e = o ? 0 : -1;

        if (e == 0) {
                target = json_string(a->target);
                if (!target) {
                        target = lossy_string(a->target);
                        e |= json_object_set_new(o, "cgroup_escaped", percent_encoded(a->target));
                }
                e |= json_object_set_new(o, target_kind_to_string(a->kind), target);
                e |= json_object_set_new(o, "class", json_string(a->class_name));
                e |= json_object_set_new(o, "owner", json_string(a->owner));
                e |= json_object_set_new(o, "force", json_boolean(a->force));
                e |= json_object_set_new(o, "overrides", overrides_or_null(&a->overrides));
                e |= json_object_set_new(o, "expires_at", time_or_null(a->expires_realtime_usec));
                e |= json_object_set_new(o, "created_at", time_or_null(a->created_realtime_usec));
                e |= json_object_set_new(o, "revision", json_integer((json_int_t) a->revision));
                e |= json_object_set_new(o, "by", a->by ? json_string(a->by) : json_null());
        }
        if (e != 0) {
                json_decref(o);
                return NULL;
        }
        return o;
}

/* ---- reading a request ---- */

typedef struct Draft {
        char *targets[_TARGET_KIND_MAX];
        Assignment assignment;
        uint64_t expires_in_usec;
        bool has_expires_in;
        char *expires_at;
} Draft;

static const char *check_class(const char *s) {
        return policy_name_is_valid(s) ? NULL : "a class name: a-z, 0-9, '.', '_' and '-', with a letter or digit first";
}

static const char *check_owner(const char *s) {
        return owner_is_valid(s) ? NULL : "1 to 64 of A-Z, a-z, 0-9, \"._:@-\", with a letter or digit first";
}

static int decode_overrides(const FieldReader *reader, const char *pointer, json_t *value, const Field *field, void *slot) {
        if (json_is_null(value)) /* as in what the API shows */
                return 0;
        return overrides_from_json(value, pointer, slot, reader->list);
}

#define BODY_FIELDS                                                                                                                              \
        { .name = "class", .type = FIELD_STRING, .least = 1, .most = POLICY_NAME_MAX, .flags = FIELD_REQUIRED, .check = check_class,             \
          .offset = offsetof(Draft, assignment.class_name), .help = "class that the target gets" },                                             \
        { .name = "owner", .type = FIELD_STRING, .least = 1, .most = 64, .check = check_owner, .offset = offsetof(Draft, assignment.owner),      \
          .help = "who may replace or prune it; default \"api\"" },                                                                             \
        { .name = "force", .type = FIELD_BOOL, .offset = offsetof(Draft, assignment.force), .help = "may take a protected group; default false" }, \
        { .name = "overrides", .type = FIELD_CUSTOM, .decode = decode_overrides, .offset = offsetof(Draft, assignment.overrides),                \
          .allowed = "an object", .help = "numbers instead of the class's" },                                                                  \
        { .name = "expires_in_usec", .type = FIELD_UINT64, .least = 1, .most = ASSIGNMENT_LIFE_MAX_USEC, .flags = FIELD_HAS,                     \
          .offset = offsetof(Draft, expires_in_usec), .has_offset = offsetof(Draft, has_expires_in), .help = "life from now" },                  \
        { .name = "expires_at", .type = FIELD_STRING, .least = 1, .most = 40, .offset = offsetof(Draft, expires_at), .help = "end of its life, RFC 3339 UTC" }

static const Field body_fields[] = { BODY_FIELDS, {} };

static const Field bulk_fields[] = {
        { .name = "unit", .type = FIELD_STRING, .least = 1, .most = 4096, .offset = offsetof(Draft, targets[TARGET_UNIT]), .help = "a unit's full name" },
        { .name = "cgroup", .type = FIELD_STRING, .least = 1, .most = 4096, .offset = offsetof(Draft, targets[TARGET_CGROUP]), .help = "a path from the cgroup root" },
        { .name = "pod_uid", .type = FIELD_STRING, .least = 1, .most = 4096, .offset = offsetof(Draft, targets[TARGET_POD]), .help = "a pod's UID" },
        BODY_FIELDS,
        {}
};

static void draft_clear(Draft *d) {
        fields_clear(bulk_fields, d);
        assignment_clear(&d->assignment);
}

/* Pointer of a member; the names here need no escaping. */
static char *member_pointer(const char *pointer, const char *name) {
        char *p;

        return asprintf(&p, "%s/%s", pointer, name) < 0 ? NULL : p;
}

static void complain(DiagList *list, const char *pointer, const char *name, const char *value, const char *limit, const char *message) {
        _cleanup_free_ char *at = name ? member_pointer(pointer, name) : strdup(pointer);
        json_t *j = value ? json_string(value) : NULL;
        _cleanup_free_ char *text = j ? json_dumps(j, JSON_ENCODE_ANY) : NULL;

        json_decref(j);
        diag_add(list, NULL, 0, at, text, limit, "%s", message);
}

static int take_target(Draft *d, const char *pointer, TargetKind kind, const char *target, DiagList *list) {
        size_t n = 0;

        if (target) {
                d->assignment.kind = kind;
                d->assignment.target = strdup(target);
                if (!d->assignment.target)
                        return -ENOMEM;
                return target_is_valid(kind, target, pointer, list) ? 0 : -EINVAL;
        }
        for (size_t i = 0; i < _TARGET_KIND_MAX; i++)
                if (d->targets[i]) {
                        n++;
                        d->assignment.kind = (TargetKind) i;
                }
        if (n != 1) {
                complain(list, pointer, NULL, NULL, "one of \"unit\", \"cgroup\" and \"pod_uid\"", n == 0 ? "no target" : "more than one target");
                return -EINVAL;
        }
        d->assignment.target = TAKE_PTR(d->targets[d->assignment.kind]);
        {
                _cleanup_free_ char *at = member_pointer(pointer, target_kind_to_string(d->assignment.kind));

                return target_is_valid(d->assignment.kind, d->assignment.target, at, list) ? 0 : -EINVAL;
        }
}

static int take_expiry(Draft *d, const char *pointer, uint64_t now_realtime_usec, DiagList *list) {
        uint64_t at;

        if (d->expires_at && d->has_expires_in) {
                complain(list, pointer, "expires_at", d->expires_at, "\"expires_in_usec\" or \"expires_at\", not both", "said twice");
                return -EINVAL;
        }
        if (d->has_expires_in) {
                d->assignment.expires_realtime_usec = now_realtime_usec + d->expires_in_usec;
                return 0;
        }
        if (!d->expires_at)
                return 0;
        if (!time_from_rfc3339(d->expires_at, &at)) {
                complain(list, pointer, "expires_at", d->expires_at, "RFC 3339 in UTC, such as 2030-01-31T12:00:00Z", "not a time");
                return -EINVAL;
        }
        if (at <= now_realtime_usec || at - now_realtime_usec > ASSIGNMENT_LIFE_MAX_USEC) {
                char limit[80], now[32];

                (void) snprintf(limit, sizeof(limit), "after %s, at most ten years ahead", time_to_rfc3339(now_realtime_usec, now, sizeof(now)));
                complain(list, pointer, "expires_at", d->expires_at, limit, at <= now_realtime_usec ? "in the past" : "too far ahead");
                return -EINVAL;
        }
        d->assignment.expires_realtime_usec = at;
        return 0;
}

int assignment_from_json(json_t *o, const char *pointer, TargetKind kind, const char *target, uint64_t now_realtime_usec, Assignment *ret, DiagList *list) {
        _cleanup_(draft_clear) Draft d = { .assignment = { .kind = kind, .created_realtime_usec = now_realtime_usec } };
        FieldReader reader = { .list = list };
        int r, result;

        result = fields_decode(&reader, pointer, o, target ? body_fields : bulk_fields, &d);
        if (result == -ENOMEM || !json_is_object(o))
                return result;
        r = take_target(&d, pointer, kind, target, list);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                result = r;
        if (take_expiry(&d, pointer, now_realtime_usec, list) < 0)
                result = -EINVAL;
        if (result < 0)
                return result;
        if (!d.assignment.owner) {
                d.assignment.owner = strdup("api");
                if (!d.assignment.owner)
                        return -ENOMEM;
        }
        *ret = d.assignment;
        d.assignment = (Assignment){ 0 };
        return 0;
}

/* ---- lines of the log ---- */

#define REVISION_MAX (UINT64_C(1) << 53) /* no life is long enough for as many changes */

json_t *assignment_to_line(const Assignment *a) {
        return json_pack("{s:s, s:o, s:s, s:s, s:b, s:o, s:I, s:I, s:I, s:s*}", "kind", target_kind_to_string(a->kind), "target", state_string_to_json(a->target),
                         "class", a->class_name, "owner", a->owner, "force", (int) a->force, "overrides", overrides_or_null(&a->overrides),
                         "expires", (json_int_t) a->expires_realtime_usec, "created", (json_int_t) a->created_realtime_usec,
                         "revision", (json_int_t) a->revision, "by", a->by);
}

json_t *assignment_delete_to_line(const Assignment *a, uint64_t revision) {
        return json_pack("{s:s, s:o, s:b, s:I}", "kind", target_kind_to_string(a->kind), "target", state_string_to_json(a->target), "delete", 1,
                         "revision", (json_int_t) revision);
}

json_t *assignment_revision_to_line(uint64_t revision) {
        return json_pack("{s:I}", "revision", (json_int_t) revision);
}

/* A number that is not negative. */
static bool take_number(json_t *line, const char *name, uint64_t *ret) {
        json_t *v = json_object_get(line, name);

        if (!json_is_integer(v) || json_integer_value(v) < 0)
                return false;
        *ret = (uint64_t) json_integer_value(v);
        return true;
}

static void list_clear(DiagList *list) {
        diag_list_clear(list);
}

static void assignment_clear_pointer(Assignment *a) {
        assignment_clear(a);
}

int assignment_from_line(json_t *line, Assignment *ret, bool *ret_delete, uint64_t *ret_revision) {
        _cleanup_(assignment_clear_pointer) Assignment a = { 0 };
        _cleanup_(list_clear) DiagList list = { 0 };
        json_t *kind = json_object_get(line, "kind"), *overrides = json_object_get(line, "overrides");
        const char *class_name = json_string_value(json_object_get(line, "class")), *owner = json_string_value(json_object_get(line, "owner"));
        const char *by = json_string_value(json_object_get(line, "by"));
        bool delete = json_is_true(json_object_get(line, "delete"));
        int r;

        if (!take_number(line, "revision", &a.revision) || a.revision > REVISION_MAX)
                return -EBADMSG;
        if (kind) {
                if (!json_is_string(kind) || target_kind_from_string(json_string_value(kind), &a.kind) < 0)
                        return -EBADMSG;
                r = state_string_from_json(json_object_get(line, "target"), &a.target);
                if (r < 0)
                        return r;
                if (!a.target || !target_is_valid(a.kind, a.target, "", &list))
                        return -EBADMSG;
        }
        if (kind && !delete) {
                if (!class_name || !policy_name_is_valid(class_name) || !owner || !owner_is_valid(owner))
                        return -EBADMSG;
                if (!take_number(line, "expires", &a.expires_realtime_usec) || !take_number(line, "created", &a.created_realtime_usec))
                        return -EBADMSG;
                if (overrides && !json_is_null(overrides)) {
                        r = overrides_from_json(overrides, "", &a.overrides, &list);
                        if (r < 0)
                                return r == -ENOMEM ? r : -EBADMSG;
                }
                a.force = json_is_true(json_object_get(line, "force"));
                a.class_name = strdup(class_name);
                a.owner = strdup(owner);
                if (!a.class_name || !a.owner || free_and_strdup(&a.by, by) < 0)
                        return -ENOMEM;
        }
        *ret_revision = a.revision;
        *ret_delete = delete;
        *ret = a;
        a = (Assignment){ 0 };
        return 0;
}
