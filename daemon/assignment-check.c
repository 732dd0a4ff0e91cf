/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What may be the target or the owner of an assignment, and times as text. Targets are names that others chose: they are checked for form only, and
 * a good form says nothing about whether there is such a thing. */

#include "daemon/assignments.h"

#include <time.h>

#define UNIT_NAME_MAX 256    /* including the NUL: UNIT_NAME_MAX of systemd (src/basic/unit-def.h) */
#define CGROUP_PATH_MAX 4096
#define CGROUP_NAME_MAX 255

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static const char *const kind_names[_TARGET_KIND_MAX] = {
        [TARGET_UNIT] = "unit",
        [TARGET_CGROUP] = "cgroup",
        [TARGET_POD] = "pod_uid",
};

const char *target_kind_to_string(TargetKind k) {
        return (size_t) k < _TARGET_KIND_MAX ? kind_names[k] : NULL;
}

int target_kind_from_string(const char *s, TargetKind *ret) {
        for (size_t i = 0; i < _TARGET_KIND_MAX; i++)
                if (streq(s, kind_names[i])) {
                        *ret = (TargetKind) i;
                        return 0;
                }
        return -EINVAL;
}

/* systemd.unit(5), unit_name_is_valid() of systemd: letters, digits and :-_.\ with one @ that does not come first. */
static bool unit_name_is_valid(const char *name, bool *ret_type) {
        static const char *const types[] = { "service", "slice", "scope", "socket", "mount", "swap" };
        const char *dot = strrchr(name, '.'), *at = strchr(name, '@');
        size_t n;

        *ret_type = true;
        if (!dot || dot == name || strlen(name) >= UNIT_NAME_MAX)
                return false;
        n = strspn(name, DIGITS LETTERS ":-_.\\@");
        if (name[n] || at == name)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (streq(dot + 1, types[i]))
                        return true;
        *ret_type = false;
        return false;
}

static bool cgroup_path_is_valid(const char *path) {
        if (path[0] != '/' || strlen(path) > CGROUP_PATH_MAX || strchr(path, '\n'))
                return false;
        if (path[1] == 0)
                return true;
        for (const char *p = path; *p;) {
                size_t n = strcspn(++p, "/");

                if (n == 0 || n > CGROUP_NAME_MAX || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
                        return false;
                p += n;
        }
        return true;
}

/* A UUID in its usual form, or the 32 hex digits that kubelet gives to pods of files (a hash of the manifest). */
static bool pod_uid_is_valid(const char *uid) {
        static const size_t groups[] = { 8, 4, 4, 4, 12 };
        const char *p = uid;

        if (strlen(uid) == 32)
                return strspn(uid, DIGITS "abcdef") == 32;
        for (size_t i = 0; i < ELEMENTSOF(groups); i++) {
                if (strspn(p, DIGITS "abcdef") != groups[i])
                        return false;
                p += groups[i];
                if (*p != (i + 1 < ELEMENTSOF(groups) ? '-' : 0))
                        return false;
                p++;
        }
        return true;
}

bool target_is_valid(TargetKind kind, const char *target, const char *pointer, DiagList *list) {
        json_t *value;
        _cleanup_free_ char *text = NULL;
        const char *message = "not a valid name", *limit = NULL;
        bool type;

        switch (kind) {
        case TARGET_UNIT:
                if (unit_name_is_valid(target, &type))
                        return true;
                if (!type)
                        message = "this type of unit has no processes of its own";
                limit = type ? "a unit's full name, such as nginx.service: letters, digits, \":-_.\\@\" and a type, less than 256 bytes"
                             : "a .service, .slice, .scope, .socket, .mount or .swap";
                break;
        case TARGET_CGROUP:
                if (cgroup_path_is_valid(target))
                        return true;
                message = "not a valid path";
                limit = "a path from the cgroup root, \"/\" first and not last, no \".\", \"..\" or newline, at most 4096 bytes";
                break;
        case TARGET_POD:
                if (pod_uid_is_valid(target))
                        return true;
                limit = "a pod's UID in lower case: a UUID, or 32 hex digits";
                break;
        default:
                message = "unknown kind of target";
        }
        value = json_string(target);
        if (value) {
                text = json_dumps(value, JSON_ENCODE_ANY);
                json_decref(value);
        }
        diag_add(list, NULL, 0, pointer, text, limit, "%s", message);
        return false;
}

bool owner_is_valid(const char *owner) {
        size_t n = strlen(owner);

        return n >= 1 && n <= 64 && strspn(owner, DIGITS LETTERS "._:@-") == n && strchr(DIGITS LETTERS, owner[0]);
}

const char *time_to_rfc3339(uint64_t realtime_usec, char *buffer, size_t size) {
        time_t seconds = (time_t) (realtime_usec / USEC_PER_SEC);
        unsigned fraction = (unsigned) (realtime_usec % USEC_PER_SEC);
        struct tm tm;
        size_t n;

        if (!gmtime_r(&seconds, &tm) || (n = strftime(buffer, size, "%Y-%m-%dT%H:%M:%S", &tm)) == 0)
                n = (size_t) snprintf(buffer, size, "1970-01-01T00:00:00"); /* a time beyond the calendar */
        if (fraction > 0)
                (void) snprintf(buffer + n, size - n, ".%06uZ", fraction);
        else
                (void) snprintf(buffer + n, size - n, "Z");
        return buffer;
}

/* n digits as a number; false when they are not. */
static bool take_digits(const char **p, unsigned n, unsigned *ret) {
        unsigned v = 0;

        for (; n > 0; n--, (*p)++) {
                if (**p < '0' || **p > '9')
                        return false;
                v = v * 10 + (unsigned) (**p - '0');
        }
        *ret = v;
        return true;
}

static bool take_char(const char **p, char c) {
        if (**p != c)
                return false;
        (*p)++;
        return true;
}

bool time_from_rfc3339(const char *text, uint64_t *ret_realtime_usec) {
        unsigned year, month, day, hour, minute, second;
        uint64_t fraction = 0;
        const char *p = text;
        struct tm tm, check;
        time_t t;

        if (!take_digits(&p, 4, &year) || !take_char(&p, '-') || !take_digits(&p, 2, &month) || !take_char(&p, '-') || !take_digits(&p, 2, &day) ||
            !take_char(&p, 'T') || !take_digits(&p, 2, &hour) || !take_char(&p, ':') || !take_digits(&p, 2, &minute) || !take_char(&p, ':') ||
            !take_digits(&p, 2, &second))
                return false;
        if (take_char(&p, '.')) {
                uint64_t unit = USEC_PER_SEC / 10;
                size_t n = strspn(p, DIGITS);

                if (n < 1 || n > 9)
                        return false;
                for (; n > 0; n--, p++, unit /= 10)
                        fraction += (uint64_t) (*p - '0') * unit;
        }
        if (!streq(p, "Z") && !streq(p, "+00:00"))
                return false;
        if (year < 1970 || month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59)
                return false;
        tm = (struct tm){ .tm_year = (int) year - 1900, .tm_mon = (int) month - 1, .tm_mday = (int) day,
                          .tm_hour = (int) hour, .tm_min = (int) minute, .tm_sec = (int) second };
        check = tm;
        t = timegm(&check);
        /* A day that the month does not have comes back as another one. */
        if (t < 0 || check.tm_mday != tm.tm_mday || check.tm_mon != tm.tm_mon)
                return false;
        *ret_realtime_usec = (uint64_t) t * USEC_PER_SEC + fraction;
        return true;
}
