/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Answers, and the conditions under which a request may be carried out at all (RFC 9110, section 13). */

#include "api/internal.h"

void reply_clear(Reply *reply) {
        free(reply->body);
        free(reply->detail);
        if (reply->stream)
                MHD_destroy_response(reply->stream);
        *reply = (Reply) {};
}

static Reply *reply_start(Request *r, unsigned status, const char *content_type) {
        reply_clear(&r->reply);
        r->reply.ready = true;
        r->reply.status = status;
        r->reply.content_type = content_type;
        return &r->reply;
}

int reply_text(Request *r, unsigned status, const char *content_type, char *body, size_t size) {
        Reply *reply = reply_start(r, status, content_type);

        reply->body = body;
        reply->size = size;
        return 0;
}

int reply_static(Request *r, unsigned status, const char *content_type, const char *body, size_t size) {
        Reply *reply = reply_start(r, status, content_type);

        reply->body_static = body;
        reply->size = size;
        return 0;
}

int reply_empty(Request *r, unsigned status) {
        (void) reply_start(r, status, NULL);
        return 0;
}

int reply_json(Request *r, unsigned status, json_t *json) {
        char *text;
        size_t size;

        if (!json)
                return -ENOMEM;
        text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        if (!text)
                return -ENOMEM;
        size = strlen(text);
        text[size++] = '\n'; /* in the place of the NUL: the size is known */
        return reply_text(r, status, "application/json", text, size);
}

void reply_etag(Request *r, const char *etag) {
        (void) snprintf(r->reply.etag, sizeof(r->reply.etag), "%s", etag);
}

/* FNV-1a over 128 bits would need wide arithmetic; two 64-bit passes with different starts are enough to tell versions apart. */
static int hash_piece(const char *buffer, size_t size, void *data) {
        uint64_t *h = data;

        for (size_t i = 0; i < size; i++) {
                h[0] = (h[0] ^ (unsigned char) buffer[i]) * UINT64_C(1099511628211);
                h[1] = (h[1] ^ (unsigned char) buffer[i]) * UINT64_C(0x9e3779b97f4a7c15);
                h[1] ^= h[1] >> 29;
        }
        return 0;
}

void etag_of_json(json_t *json, char etag[64]) {
        uint64_t h[2] = { UINT64_C(14695981039346656037), UINT64_C(0x2545f4914f6cdd1d) };

        (void) json_dump_callback(json, hash_piece, h, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
        (void) snprintf(etag, 64, "\"%016llx%016llx\"", (unsigned long long) h[0], (unsigned long long) h[1]);
}

/* Whether a list of entity tags names this one by strong comparison (weak: W/ prefixes are looked through). -EINVAL: not a list of tags. */
static int tag_list_has(const char *list, const char *etag, bool weak) {
        bool found = false, any = false;
        const char *p = list;

        for (;;) {
                bool is_weak = false;
                const char *end;

                while (*p == ' ' || *p == '\t' || *p == ',')
                        p++;
                if (!*p)
                        break;
                if (startswith(p, "W/")) {
                        is_weak = true;
                        p += 2;
                }
                if (*p != '"')
                        return -EINVAL;
                end = strchr(p + 1, '"');
                if (!end)
                        return -EINVAL;
                end++;
                any = true;
                if (etag && (weak || !is_weak) && strlen(etag) == (size_t) (end - p) && strncmp(etag, p, (size_t) (end - p)) == 0)
                        found = true;
                p = end;
                while (*p == ' ' || *p == '\t')
                        p++;
                if (*p && *p != ',')
                        return -EINVAL;
        }
        return any ? found : -EINVAL;
}

int check_preconditions(Request *r, const char *etag) {
        const char *match = request_header(r, "If-Match"), *none = request_header(r, "If-None-Match");
        bool reading = streq(r->method, "GET") || streq(r->method, "HEAD");
        int q;

        if (match) {
                q = streq(match, "*") ? etag != NULL : tag_list_has(match, etag, false);
                if (q < 0) {
                        (void) reply_problem(r, 400, "invalid-header", NULL, "If-Match is not a list of entity tags");
                        return 1;
                }
                if (!q) {
                        (void) reply_problem(r, 412, "changed", NULL, etag ? "it has changed since: read it again" : "it does not exist");
                        if (etag)
                                reply_etag(r, etag);
                        return 1;
                }
        }
        if (none) {
                q = streq(none, "*") ? etag != NULL : tag_list_has(none, etag, true);
                if (q < 0) {
                        (void) reply_problem(r, 400, "invalid-header", NULL, "If-None-Match is not a list of entity tags");
                        return 1;
                }
                if (q && reading) {
                        (void) reply_empty(r, 304);
                        reply_etag(r, etag);
                        return 1;
                }
                if (q) {
                        (void) reply_problem(r, 412, "exists", NULL, "it exists already");
                        reply_etag(r, etag);
                        return 1;
                }
        }
        return 0;
}
