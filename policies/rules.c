/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A rule between its JSON and its struct. A rule is checked for what can never match, or would match too much: both are
 * typing errors that would otherwise show only on a host. */

#include "policies/document.h"
#include "policies/schema.h"

#define UNIT_NAME_MAX 255 /* UNIT_NAME_MAX of systemd is 256 with the terminating NUL */
#define CGROUP_PATTERN_MAX 4096

bool glob_is_exact(const char *glob) {
        return !strpbrk(glob, "*?[");
}

/* The kernel refuses a newline in the name of a cgroup, so such a pattern never matches. */
static const char *check_glob(const char *s) {
        return strchr(s, '\n') ? "no line breaks" : NULL;
}

static const char *check_unit(const char *s) {
        return strpbrk(s, "/\n") ? "a unit name or glob, without '/' and line breaks" : NULL;
}

static const char *check_slice(const char *s) {
        return strpbrk(s, "/\n") || (glob_is_exact(s) && !endswith(s, ".slice"))
                ? "a slice name that ends in \".slice\", or a glob, without '/' and line breaks" : NULL;
}

static const char *check_cgroup(const char *s) {
        return s[0] == '/' ? check_glob(s) : "a path from the cgroup root, with '/' first";
}

static const char *check_user(const char *s) {
        return strpbrk(s, "/:\n") ? "a user name or numeric uid" : NULL;
}

static const char *check_qos(const char *s) {
        return streq(s, "guaranteed") || streq(s, "burstable") || streq(s, "besteffort")
                ? NULL : "\"guaranteed\", \"burstable\" or \"besteffort\"";
}

static const char *check_pod_uid(const char *s) {
        return strspn(s, "0123456789abcdefABCDEF-_") == strlen(s) ? NULL : "hex digits with dashes or underscores";
}

static const char *check_container_id(const char *s) {
        return strspn(s, "0123456789abcdef") == strlen(s) ? NULL : "12 to 64 lower-case hex digits";
}

const Field match_fields[] = {
        { .name = "unit", .type = FIELD_STRING, .least = 1, .most = UNIT_NAME_MAX, .check = check_unit,
          .offset = offsetof(Rule, match.unit), .help = "glob on the unit's names, aliases included" },
        { .name = "slice", .type = FIELD_STRING, .least = 1, .most = UNIT_NAME_MAX, .check = check_slice,
          .offset = offsetof(Rule, match.slice), .help = "glob on the slice of the unit, or on a slice above that one" },
        { .name = "cgroup", .type = FIELD_STRING, .least = 1, .most = CGROUP_PATTERN_MAX, .check = check_cgroup,
          .offset = offsetof(Rule, match.cgroup), .help = "glob on the path from the cgroup root" },
        { .name = "user", .type = FIELD_STRING, .least = 1, .most = 256, .check = check_user, .offset = offsetof(Rule, match.user),
          .help = "user name or uid, of the unit's User= or of user-UID.slice" },
        { .name = "kubernetes_qos", .type = FIELD_STRING, .least = 1, .most = 16, .check = check_qos,
          .offset = offsetof(Rule, match.kubernetes_qos), .help = "QoS class of a pod or container" },
        { .name = "pod_uid", .type = FIELD_STRING, .least = 1, .most = 63, .check = check_pod_uid,
          .offset = offsetof(Rule, match.pod_uid), .help = "pod and its containers" },
        { .name = "container_id", .type = FIELD_STRING, .least = 12, .most = 64, .check = check_container_id,
          .offset = offsetof(Rule, match.container_id), .help = "container, by the first digits of its id" },
        {}
};

const Field rule_fields[] = {
        { .name = "name", .type = FIELD_STRING, .least = 1, .most = POLICY_NAME_MAX, .flags = FIELD_REQUIRED, .check = name_check,
          .offset = offsetof(Rule, name), .help = "how explain calls it" },
        { .name = "comment", .type = FIELD_COMMENT, .help = "for the reader of the file" },
        { .name = "class", .type = FIELD_STRING, .least = 1, .most = POLICY_NAME_MAX, .flags = FIELD_REQUIRED, .check = name_check,
          .offset = offsetof(Rule, class_name), .help = "class that it gives" },
        { .name = "match", .type = FIELD_OBJECT, .flags = FIELD_REQUIRED, .fields = match_fields,
          .help = "conditions, at least one; all must hold" },
        { .name = "force", .type = FIELD_BOOL, .offset = offsetof(Rule, force),
          .help = "may take a protected group; only with an exact unit or cgroup; default false" },
        {}
};

void rule_clear(Rule *r) {
        fields_clear(rule_fields, r);
        free(r->origin);
        *r = (Rule) {};
}

int rule_decode(const FieldReader *reader, const char *pointer, json_t *o, Rule *ret) {
        json_t *match = json_object_get(o, "match");
        Rule v = {};
        int r;

        r = fields_decode(reader, pointer, o, rule_fields, &v);
        if (r == -ENOMEM) {
                rule_clear(&v);
                return r;
        }
        if (json_is_object(match) && json_object_size(match) == 0) {
                _cleanup_free_ char *at = pointer_to_key(pointer, "match");

                field_complain(reader, at, match, "at least one condition", "would match every group");
                r = -EINVAL;
        }
        if (v.force && !(v.match.unit && glob_is_exact(v.match.unit)) && !(v.match.cgroup && glob_is_exact(v.match.cgroup))) {
                _cleanup_free_ char *at = pointer_to_key(pointer, "force");

                field_complain(reader, at, NULL, "an exact \"unit\" or \"cgroup\" in \"match\"",
                               "takes protected groups by their exact name only");
                r = -EINVAL;
        }
        if (reader->file) {
                v.origin = strdup(reader->file);
                if (!v.origin) {
                        rule_clear(&v);
                        return -ENOMEM;
                }
        }
        *ret = v;
        return r;
}

json_t *rule_to_json(const Rule *r) {
        json_auto_t *o = json_object(), *match = json_object();

        if (!o || !match)
                return NULL;
        for (const Field *f = match_fields; f->name; f++) {
                const char *value = *(char *const *) ((const char *) r + f->offset);

                if (value && json_object_set_new(match, f->name, json_string(value)) < 0)
                        return NULL;
        }
        if (json_object_set_new(o, "name", json_string(r->name)) < 0 ||
            json_object_set_new(o, "class", json_string(r->class_name)) < 0 || json_object_set(o, "match", match) < 0 ||
            json_object_set_new(o, "force", json_boolean(r->force)) < 0)
                return NULL;
        return TAKE_PTR(o);
}
