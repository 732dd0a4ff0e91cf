/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libcurl over the unix socket. Nothing of the environment (proxies, .netrc, redirects) has a say in where a request goes. */

#include <curl/curl.h>
#include <ctype.h>
#include <time.h>

#include "client/http.h"
#include "client/text.h"

#define BODY_MAX (UINT64_C(64) << 20)

void answer_clear(Answer *a) {
        free(a->body);
        if (a->json)
                json_decref(a->json);
        *a = (Answer) {};
}

typedef struct Buffer {
        char *data;
        size_t length, capacity;
} Buffer;

static int buffer_add(Buffer *b, const char *data, size_t n) {
        if (b->length + n + 1 > b->capacity) {
                size_t want = MAX_OF((b->length + n + 1) * 2, (size_t) 4096);
                char *p;

                if (b->length + n > BODY_MAX)
                        return -E2BIG;
                p = realloc(b->data, want);
                if (!p)
                        return -ENOMEM;
                b->data = p;
                b->capacity = want;
        }
        memcpy(b->data + b->length, data, n);
        b->length += n;
        b->data[b->length] = 0;
        return 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *userdata) {
        return buffer_add(userdata, data, size * n) < 0 ? 0 : size * n;
}

static void curl_pointer(CURL **curl) {
        if (*curl)
                curl_easy_cleanup(*curl);
}
static void slist_pointer(struct curl_slist **list) {
        curl_slist_free_all(*list);
}
static void buffer_clear(Buffer *b) {
        free(b->data);
}

/* A handle for one request to the daemon. NULL without memory. */
static CURL *new_handle(const Client *c, const char *method, const char *path) {
        CURL *curl = curl_easy_init();
        _cleanup_free_ char *url = NULL;

        if (!curl || asprintf(&url, "http://cpuclass%s", path) < 0) {
                url = NULL;
                curl_easy_cleanup(curl);
                return NULL;
        }
        if (curl_easy_setopt(curl, CURLOPT_URL, url) != CURLE_OK ||
            curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, c->socket) != CURLE_OK) {
                curl_easy_cleanup(curl);
                return NULL;
        }
        (void) curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
        (void) curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
        (void) curl_easy_setopt(curl, CURLOPT_PROXY, "");
        (void) curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 10L);
        (void) curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        (void) curl_easy_setopt(curl, CURLOPT_USERAGENT, "cpuclassctl");
        return curl;
}

/* Says why there is no answer. */
static ExitCode explain_transport(const Client *c, CURL *curl, CURLcode code, bool quiet) {
        long error = 0;

        (void) curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &error);
        switch (code) {
        case CURLE_COULDNT_CONNECT:
                if (error == EACCES || error == EPERM) {
                        if (!quiet) {
                                complain("no permission to ask the daemon at %s", c->socket);
                                hint("Members of the group cpuclass may read, root and members of cpuclass-admin may change.");
                        }
                        return CODE_REFUSED;
                }
                if (!quiet) {
                        complain("no daemon answers at %s: %s", c->socket, error ? strerror((int) error) : curl_easy_strerror(code));
                        hint("Is it running? systemctl status cpuclassd.service");
                }
                return CODE_UNREACHABLE;
        case CURLE_OPERATION_TIMEDOUT:
                if (!quiet)
                        complain("the daemon did not answer in time");
                return CODE_FAILURE;
        case CURLE_GOT_NOTHING:
        case CURLE_RECV_ERROR:
        case CURLE_SEND_ERROR:
                if (!quiet)
                        complain("the daemon closed the connection without an answer");
                return CODE_UNREACHABLE;
        default:
                if (!quiet)
                        complain("the request failed: %s", curl_easy_strerror(code));
                return CODE_FAILURE;
        }
}

ExitCode http_call(const Client *c, const char *method, const char *path, json_t *body, unsigned timeout_sec, bool quiet, Answer *ret) {
        _cleanup_(curl_pointer) CURL *curl = new_handle(c, method, path);
        _cleanup_(slist_pointer) struct curl_slist *headers = NULL;
        _cleanup_(buffer_clear) Buffer buffer = {};
        _cleanup_free_ char *text = NULL;
        const char *type = NULL;
        CURLcode code;
        Answer a = {};

        if (!curl) {
                if (!quiet)
                        complain("cannot make a request to %s", c->socket);
                return CODE_FAILURE;
        }
        if (body) {
                text = json_dumps(body, JSON_COMPACT);
                headers = curl_slist_append(NULL, "Content-Type: application/json");
                if (!text || !headers) {
                        complain("out of memory");
                        return CODE_FAILURE;
                }
                (void) curl_easy_setopt(curl, CURLOPT_POSTFIELDS, text);
                (void) curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) strlen(text));
                (void) curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        }
        (void) curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long) timeout_sec);
        (void) curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
        (void) curl_easy_setopt(curl, CURLOPT_WRITEDATA, &buffer);
        code = curl_easy_perform(curl);
        if (code != CURLE_OK)
                return explain_transport(c, curl, code, quiet);
        (void) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &a.status);
        (void) curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
        if (!buffer.data && buffer_add(&buffer, "", 0) < 0) {
                complain("out of memory");
                return CODE_FAILURE;
        }
        a.length = buffer.length;
        a.body = TAKE_PTR(buffer.data);
        if (type && strstr(type, "json"))
                a.json = json_loadb(a.body, a.length, JSON_ALLOW_NUL, NULL);
        *ret = a;
        return CODE_OK;
}

ExitCode client_request(const Client *c, const char *method, const char *path, json_t *body, unsigned timeout_sec, Answer *ret) {
        Answer a = {};
        ExitCode code = http_call(c, method, path, body, timeout_sec, false, &a);

        if (code != CODE_OK)
                return code;
        if (a.status >= 200 && a.status < 300) {
                if (!a.json && a.length > 0) {
                        complain("the daemon's answer is no JSON");
                        answer_clear(&a);
                        return CODE_FAILURE;
                }
                *ret = a;
                return CODE_OK;
        }
        if (c->json)
                client_print_json(c, &a);
        problem_print(&a);
        code = exit_code_of_answer(a.status, a.json ? json_string_value(json_object_get(a.json, "type")) : NULL);
        answer_clear(&a);
        return code;
}

void client_print_json(const Client *c, const Answer *a) {
        _cleanup_free_ char *safe = NULL;

        if (a->length == 0)
                return;
        if (c->terminal)
                safe = text_escape_json(a->body, a->length);
        if (safe)
                (void) fputs(safe, stdout);
        else if (!c->terminal)
                (void) fwrite(a->body, 1, a->length, stdout);
        if (a->body[a->length - 1] != '\n')
                (void) putchar('\n');
}

ExitCode json_print(const Client *c, const json_t *o) {
        Answer a = { .body = json_dumps(o, JSON_INDENT(2)) };

        if (!a.body) {
                complain("out of memory");
                return CODE_FAILURE;
        }
        a.length = strlen(a.body);
        client_print_json(c, &a);
        answer_clear(&a);
        return CODE_OK;
}

/* ---- server-sent events: lines of "field: value", an empty line ends an event (HTML Living Standard, 9.2.6) ---- */

typedef struct Stream {
        CURL *curl;
        Buffer line, data, refused;
        char *id, *name;
        EventFn fn;
        void *userdata;
        time_t heard; /* when the last byte came */
        bool ended;
} Stream;

static void stream_clear(Stream *s) {
        free(s->line.data);
        free(s->data.data);
        free(s->refused.data);
        free(s->id);
        free(s->name);
}

/* One whole line without its end. */
static int stream_line(Stream *s, char *line) {
        char *value;
        int r;

        if (!*line) {
                if (s->data.length > 0 && s->fn(s->id, s->name, s->data.data, s->userdata) != 0) {
                        s->ended = true;
                        return -ECANCELED;
                }
                s->data.length = 0;
                return free_and_strdup(&s->name, NULL);
        }
        if (*line == ':')
                return 0;
        value = strchr(line, ':');
        if (value) {
                *value++ = 0;
                if (*value == ' ')
                        value++;
        } else
                value = line + strlen(line);
        if (streq(line, "id"))
                return free_and_strdup(&s->id, value);
        if (streq(line, "event"))
                return free_and_strdup(&s->name, value);
        if (streq(line, "data")) {
                if (s->data.length > 0) {
                        r = buffer_add(&s->data, "\n", 1);
                        if (r < 0)
                                return r;
                }
                return buffer_add(&s->data, value, strlen(value));
        }
        return 0;
}

static size_t on_stream(char *data, size_t size, size_t n, void *userdata) {
        Stream *s = userdata;
        size_t length = size * n;
        long status = 0;

        s->heard = time(NULL);
        (void) curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
        if (status != 200)
                return buffer_add(&s->refused, data, length) < 0 ? 0 : length;
        for (size_t i = 0; i < length; i++) {
                if (data[i] != '\n') {
                        if (data[i] != '\r' && data[i] != 0 && buffer_add(&s->line, data + i, 1) < 0)
                                return 0;
                        continue;
                }
                if (stream_line(s, s->line.data ? s->line.data : (char[]) { "" }) < 0)
                        return 0;
                s->line.length = 0;
                if (s->line.data)
                        s->line.data[0] = 0;
        }
        return length;
}

/* The daemon sends a comment every 15 s: a minute of silence is a dead connection. Called about once a second. */
static int on_progress(void *userdata, curl_off_t total_down, curl_off_t down, curl_off_t total_up, curl_off_t up) {
        const Stream *s = userdata;

        return time(NULL) - s->heard > 60;
}

ExitCode http_stream(const Client *c, const char *path, const char *last_id, EventFn fn, void *userdata, bool quiet, bool *ret_ended) {
        _cleanup_(curl_pointer) CURL *curl = new_handle(c, "GET", path);
        _cleanup_(slist_pointer) struct curl_slist *headers = NULL;
        _cleanup_(stream_clear) Stream s = { .curl = curl, .fn = fn, .userdata = userdata };
        long status = 0;
        CURLcode code;

        if (!curl) {
                complain("cannot make a request to %s", c->socket);
                return CODE_FAILURE;
        }
        if (last_id) {
                _cleanup_free_ char *line = NULL;

                if (asprintf(&line, "Last-Event-ID: %s", last_id) < 0)
                        line = NULL;
                else
                        headers = curl_slist_append(NULL, line);
                if (!headers) {
                        complain("out of memory");
                        return CODE_FAILURE;
                }
                (void) curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        }
        s.heard = time(NULL);
        (void) curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        (void) curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
        (void) curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &s);
        (void) curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_stream);
        (void) curl_easy_setopt(curl, CURLOPT_WRITEDATA, &s);
        code = curl_easy_perform(curl);
        *ret_ended = s.ended;
        if (s.ended)
                return CODE_OK;
        (void) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        if (status == 0 && code != CURLE_OK)
                return explain_transport(c, curl, code, quiet);
        if (status != 200) {
                Answer a = { .status = status, .body = s.refused.data, .length = s.refused.length };
                ExitCode r;

                if (a.body)
                        a.json = json_loadb(a.body, a.length, 0, NULL);
                problem_print(&a);
                r = exit_code_of_answer(status, a.json ? json_string_value(json_object_get(a.json, "type")) : NULL);
                if (a.json)
                        json_decref(a.json);
                return r;
        }
        return CODE_OK;
}

char *url_encode(const char *text) {
        static const char hex[] = "0123456789ABCDEF";
        char *out = malloc(strlen(text) * 3 + 1), *o = out;

        if (!out)
                return NULL;
        for (const unsigned char *p = (const unsigned char *) text; *p; p++) {
                if (*p < 0x80 && (isalnum(*p) || strchr("-._~", *p)))
                        *o++ = (char) *p;
                else {
                        *o++ = '%';
                        *o++ = hex[*p >> 4];
                        *o++ = hex[*p & 15];
                }
        }
        *o = 0;
        return out;
}

char *url_with_query(const char *path, ...) {
        char *url = strdup(path);
        va_list arguments;
        bool first = true;

        va_start(arguments, path);
        for (const char *key; url && (key = va_arg(arguments, const char *));) {
                const char *value = va_arg(arguments, const char *);
                _cleanup_free_ char *encoded = NULL, *before = NULL;

                if (!value)
                        continue;
                encoded = url_encode(value);
                before = TAKE_PTR(url);
                if (!encoded || asprintf(&url, "%s%c%s=%s", before, first ? '?' : '&', key, encoded) < 0)
                        url = NULL;
                first = false;
        }
        va_end(arguments);
        return url;
}
