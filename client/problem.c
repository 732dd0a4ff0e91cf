/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What went wrong, as the daemon tells it (RFC 9457), for a person and as an exit code. */

#include "client/http.h"
#include "client/text.h"

ExitCode exit_code_of_answer(long status, const char *type) {
        if (status >= 200 && status < 300)
                return CODE_OK;
        if (type && endswith(type, ":not-applied"))
                return CODE_FAILURE;
        switch (status) {
        case 400: case 413: case 414: case 415: case 422: case 431:
                return CODE_INVALID;
        case 401: case 403: case 409: case 412:
                return CODE_REFUSED;
        case 404:
                return CODE_NOT_FOUND;
        default:
                return CODE_FAILURE;
        }
}

/* "/classes/0/quota: out of range: value 0, allowed: 1 to 100" */
static void print_one(const json_t *e) {
        const char *file = json_string_value(json_object_get(e, "file"));
        const char *pointer = json_string_value(json_object_get(e, "pointer"));
        const char *message = json_string_value(json_object_get(e, "message"));
        const char *limit = json_string_value(json_object_get(e, "limit"));
        const json_t *value = json_object_get(e, "value");
        json_int_t line = json_integer_value(json_object_get(e, "line"));
        _cleanup_free_ char *value_text = NULL, *text = NULL;
        size_t length;
        FILE *f;

        /* the value is JSON text in a string; another shape is shown as it is */
        if (json_is_string(value))
                value_text = strdup(json_string_value(value));
        else if (value && !json_is_null(value))
                value_text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

        f = open_memstream(&text, &length);
        if (!f)
                return;
        if (file && line > 0)
                (void) fprintf(f, "%s:%lld: ", file, (long long) line);
        else if (file)
                (void) fprintf(f, "%s: ", file);
        if (pointer && *pointer)
                (void) fprintf(f, "%s: ", pointer);
        (void) fputs(message ? message : "invalid", f);
        if (value_text)
                (void) fprintf(f, ": %s", value_text);
        if (limit)
                (void) fprintf(f, " (allowed: %s)", limit);
        if (fclose(f) == 0)
                hint("%s", text);
}

void problem_print(const Answer *a) {
        const char *title = a->json ? json_string_value(json_object_get(a->json, "title")) : NULL;
        const char *detail = a->json ? json_string_value(json_object_get(a->json, "detail")) : NULL;
        const char *error = a->json ? json_string_value(json_object_get(a->json, "errno")) : NULL;
        json_t *errors = a->json ? json_object_get(a->json, "errors") : NULL, *e;
        size_t i;

        if (detail || title)
                complain("%s%s%s%s", detail ? detail : title, error ? " (" : "", error ? error : "", error ? ")" : "");
        else
                complain("the daemon answered with HTTP status %ld", a->status);
        json_array_foreach(errors, i, e)
                print_one(e);
        if (a->status == 403)
                hint("Changes need root or membership in the group cpuclass-admin.");
}
