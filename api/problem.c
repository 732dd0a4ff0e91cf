/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors as RFC 9457 problem+json: what kind, in words for people, and for each wrong field its pointer, its value and what would have been right. */

#include "api/internal.h"

#define PROBLEM_TYPE "urn:cpuclass:problem:"

const char *status_title(unsigned status) {
        static const struct {
                unsigned status;
                const char *title;
        } titles[] = {
                { 400, "Bad request" },
                { 403, "Not allowed" },
                { 404, "Not found" },
                { 405, "Method not allowed" },
                { 409, "Conflict" },
                { 412, "Precondition failed" },
                { 413, "Body too large" },
                { 415, "Not JSON" },
                { 422, "Refused" },
                { 500, "Internal error" },
                { 501, "Not possible here" },
                { 502, "The kernel or systemd refused" },
                { 503, "Not now" },
                { 504, "Not in time" },
                { 507, "Could not be stored" },
        };

        for (size_t i = 0; i < ELEMENTSOF(titles); i++)
                if (titles[i].status == status)
                        return titles[i].title;
        return "Error";
}

json_t *diag_list_to_json(const DiagList *list) {
        json_t *a = json_array();

        for (size_t i = 0; a && list && i < list->n_items; i++) {
                const Diag *d = &list->items[i];
                json_t *e = json_object();

                if (d->file)
                        json_object_set_new(e, "file", json_text(d->file));
                if (d->line > 0)
                        json_object_set_new(e, "line", json_integer(d->line));
                if (d->pointer)
                        json_object_set_new(e, "pointer", json_text(d->pointer));
                json_object_set_new(e, "message", json_text(d->message ? d->message : "invalid"));
                if (d->value)
                        json_object_set_new(e, "value", json_text(d->value));
                if (d->limit)
                        json_object_set_new(e, "limit", json_text(d->limit));
                if (json_array_append_new(a, e) < 0) {
                        json_decref(a);
                        return NULL;
                }
        }
        return a;
}

static int problem(Request *r, unsigned status, const char *name, const DiagList *list, json_t *extra, char *detail) {
        _cleanup_free_ char *type = NULL;
        json_t *o;

        if (asprintf(&type, PROBLEM_TYPE "%s", name) < 0)
                type = NULL;
        o = json_object();
        json_object_set_new(o, "type", json_text(type ? type : "about:blank"));
        json_object_set_new(o, "title", json_text(status_title(status)));
        json_object_set_new(o, "status", json_integer(status));
        json_object_set_new(o, "detail", json_text(detail ? detail : status_title(status)));
        json_object_set_new(o, "instance", json_text(r->uri ? r->uri : ""));
        if (list && list->n_items > 0)
                json_object_set_new(o, "errors", diag_list_to_json(list));
        if (extra) {
                json_object_update_missing(o, extra);
                json_decref(extra);
        }
        if (reply_json(r, status, o) < 0) {
                static const char fallback[] = "{\"type\":\"about:blank\",\"title\":\"Out of memory\",\"status\":503}\n";

                (void) reply_static(r, 503, "application/problem+json", fallback, sizeof(fallback) - 1);
        }
        r->reply.content_type = "application/problem+json";
        free(r->reply.detail);
        r->reply.detail = detail;
        return 0;
}

int reply_problem(Request *r, unsigned status, const char *name, const DiagList *list, const char *format, ...) {
        char *detail = NULL;
        va_list ap;

        va_start(ap, format);
        if (vasprintf(&detail, format, ap) < 0)
                detail = NULL;
        va_end(ap);
        return problem(r, status, name, list, NULL, detail);
}

int reply_problem_with(Request *r, unsigned status, const char *name, const DiagList *list, json_t *extra, const char *format, ...) {
        char *detail = NULL;
        va_list ap;

        va_start(ap, format);
        if (vasprintf(&detail, format, ap) < 0)
                detail = NULL;
        va_end(ap);
        return problem(r, status, name, list, extra, detail);
}

int reply_error(Request *r, int error, const DiagList *list) {
        char word[16];
        const char *first = list && list->n_items > 0 ? list->items[0].message : NULL;

        if (error < 0)
                error = -error;
        switch (error) {
        case EINVAL:
                return reply_problem(r, 400, "invalid", list, "%s", first ? first : "the request is not valid");
        case ENOENT:
                return reply_problem(r, 404, "not-found", list, "%s", first ? first : "there is no such thing");
        case EPERM:
                return reply_problem(r, 409, "protected", list, "%s", first ? first : "the group is protected: name it exactly and set \"force\": true");
        case EEXIST:
                return reply_problem(r, 409, "owned-by-other", list, "%s", first ? first : "the target belongs to another owner: steal=true takes it over");
        case EBUSY:
                return reply_problem(r, 409, "busy", list, "%s", first ? first : "it is in use");
        case ENOSPC:
        case EDQUOT:
        case EROFS:
        case EIO:
        case EFBIG:
                return reply_problem(r, 507, "storage", list, "the change could not be made durable, nothing was changed: %s", errno_word(error, word));
        case ENOMEM:
        case EMFILE:
        case ENFILE:
        case EAGAIN:
                return reply_problem(r, 503, "resources", list, "not enough resources: %s", errno_word(error, word));
        case EOPNOTSUPP:
        case ENOSYS:
                return reply_problem(r, 501, "not-possible", list, "%s", first ? first : "this host can't do it");
        default:
                return reply_problem_with(r, 500, "internal", list, json_pack("{s:o}", "errno", json_errno(error)), "%s", first ? first : errno_word(error, word));
        }
}
