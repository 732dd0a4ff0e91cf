/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/format.h"
#include "client/names.h"
#include "client/text.h"

#define NAMES_SHOWN 12

static void class_hint_full(const Client *c, const char *name, bool unless_known) {
        _cleanup_answer_ Answer a = {};
        _cleanup_free_ const char **names = NULL;
        _cleanup_free_ char *all = NULL;
        const char *nearest;
        json_t *one;
        size_t i, n = 0, length = 0;
        FILE *f;

        if (http_call(c, "GET", "/v1/classes", NULL, TIMEOUT_USUAL, true, &a) != CODE_OK || a.status != 200)
                return;
        names = calloc(json_array_size(json_object_get(a.json, "classes")) + 1, sizeof(*names));
        if (!names)
                return;
        json_array_foreach(json_object_get(a.json, "classes"), i, one) {
                names[n] = json_text(json_object_get(one, "class"), "name");
                if (names[n])
                        n++;
        }
        for (i = 0; unless_known && i < n; i++)
                if (streq(names[i], name))
                        return;
        nearest = text_suggest(name, names, n);
        if (nearest) {
                hint("Did you mean \"%s\"?", nearest);
                return;
        }
        f = open_memstream(&all, &length);
        if (!f)
                return;
        for (i = 0; i < n && i < NAMES_SHOWN; i++)
                (void) fprintf(f, "%s%s", i > 0 ? ", " : "", names[i]);
        if (n > NAMES_SHOWN)
                (void) fputs(", ...", f);
        if (fclose(f) == 0 && n > 0)
                hint("Classes are: %s", all);
}

void class_hint(const Client *c, const char *name) {
        class_hint_full(c, name, false);
}

void class_hint_unless_known(const Client *c, const char *name) {
        class_hint_full(c, name, true);
}

void assignment_hint(const Client *c, const char *target) {
        _cleanup_answer_ Answer a = {};
        _cleanup_free_ const char **names = NULL;
        const char *nearest;
        json_t *one;
        size_t i, n = 0;

        if (http_call(c, "GET", "/v1/assignments", NULL, TIMEOUT_USUAL, true, &a) != CODE_OK || a.status != 200)
                return;
        names = calloc(json_array_size(json_object_get(a.json, "assignments")) + 1, sizeof(*names));
        if (!names)
                return;
        json_array_foreach(json_object_get(a.json, "assignments"), i, one)
                names[n++] = json_text(one, "unit") ?: json_text(one, "cgroup") ?: json_text(one, "pod_uid");
        nearest = text_suggest(target, names, n);
        if (nearest)
                hint("Did you mean \"%s\"?", nearest);
}
