/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* What the files of the API room share: the server, a connection's peer, one request from its first line to its answer. */

#include <jansson.h>
#include <microhttpd.h>

#include "api/api.h"
#include "policies/fields.h"

typedef enum Right { RIGHT_NONE = 0, RIGHT_READ, RIGHT_WRITE } Right;

typedef struct Peer {
        uid_t uid;
        gid_t gid;
        pid_t pid;
        Right right;
        bool known;              /* the kernel told the credentials */
} Peer;

typedef struct Request Request;
typedef struct Client Client;
typedef struct Subscriber Subscriber;

/* Group numbers that give rights; (gid_t) -1: the group does not exist. */
typedef struct Groups {
        gid_t reader, writer;
        uint64_t looked_up_usec; /* monotonic; 0 never */
} Groups;

struct ApiServer {
        sd_event *event;
        Manager *manager;
        struct MHD_Daemon *http;
        int listen_fd;
        char *unlink_path;           /* socket that we made ourselves */
        sd_event_source *io, *timer, *kick, *sweep;
        ApiConfig config;
        Groups groups;
        Client *clients;             /* linked list */
        unsigned n_clients;
        Subscriber *subscribers;     /* linked list */
        unsigned n_subscribers;
        sd_event_source *heartbeat;
        size_t body_bytes;           /* of all requests in flight */
        uint64_t n_requests, n_refused, n_errors;
};

/* One connection. */
struct Client {
        ApiServer *server;
        struct MHD_Connection *connection;
        int fd;
        Peer peer;
        bool over_limit;             /* too many connections of this user: only gets the refusal */
        uint64_t deadline_usec;      /* monotonic; the connection ends then; USEC_INFINITY: does not */
        Request *request;            /* the one in progress */
        Client *next, **link;
};

typedef struct Param {
        char *name, *value;          /* decoded */
} Param;

#define PARAMS_MAX 16
#define CAPTURES_MAX 2

typedef struct Route Route;

/* An answer, filled by reply_*(); the server sends it. */
typedef struct Reply {
        bool ready;
        unsigned status;
        char *body;                  /* malloc'ed */
        size_t size;
        const char *body_static;     /* instead of body */
        const char *content_type;
        char etag[64];               /* with its quotes; "" none */
        char allow[64];
        unsigned retry_after_sec;
        char *detail;                /* of a problem, for the audit */
        struct MHD_Response *stream; /* instead of a body */
} Reply;

struct Request {
        ApiServer *server;
        Client *client;              /* its peer and descriptor */
        struct MHD_Connection *connection;
        char *uri;                   /* as it came */
        char method[16];
        bool head;                   /* HEAD: answered as GET */
        const Route *route;
        char *captures[CAPTURES_MAX];
        Param params[PARAMS_MAX];
        size_t n_params;
        bool started, dispatched;
        bool has_body;               /* headers announce one */
        bool must_close;             /* malformed: no further request on this connection */
        char *body;
        size_t body_size, body_capacity, body_discarded;
        bool body_too_big;
        json_t *json;                /* parsed body */
        Reply reply;
        /* waiting for the manager */
        bool suspended;              /* MHD_suspend_connection() was called */
        uint64_t wait_ticket;        /* 0: none */
        void (*abandon)(Request *r); /* the request ends while somebody holds a pointer to it */
        void *abandon_data;
        Subscriber *subscriber;
        unsigned success_status;     /* of the PUT whose effect is waited for */
};

/* ---- request.c: the library's callbacks, and the end of waiting ---- */
void *request_on_uri(void *userdata, const char *uri, struct MHD_Connection *connection);
size_t request_on_unescape(void *userdata, struct MHD_Connection *connection, char *s);
enum MHD_Result request_on_data(void *userdata, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
                                const char *data, size_t *data_size, void **request);
void request_on_completed(void *userdata, struct MHD_Connection *connection, void **request, enum MHD_RequestTerminationCode code);
/* A handler that answers later calls nothing and returns 1; who answers it then fills the reply and calls this. */
void request_resume(Request *r);
/* Ends a request: whoever holds a pointer to it is told. NULL is fine; returns NULL. */
Request *request_free(Request *r);

/* ---- server.c ---- */
/* Makes the loop call MHD_run() soon. */
void server_kick(ApiServer *s);

/* ---- uri.c ---- */
/* Strict percent-decoding of a segment or value (RFC 3986): only printable ASCII outside of escapes, no bad escape, never NUL or newline;
 * allow_control lets other control bytes through in escapes (cgroup names hold them). New string. -EINVAL, -ENOMEM. */
int uri_decode(const char *s, size_t length, bool allow_control, char **ret);
/* The opposite, for bytes that a JSON string can't hold: unreserved characters and "/" stay. New string or NULL. */
char *uri_encode(const char *s);
/* Opaque page tokens: base64url of a path. */
char *token_encode(const char *s);
int token_decode(const char *s, char **ret);

/* ---- strict.c ---- */
/* Whether the library's raw block of a request's head (its separators NULs) is nothing but lines of the right form. target and version are what the
 * library made of the first line; version points into the block. */
bool head_is_strict(const char *head, size_t size, const char *target, const char *version);

/* ---- auth.c ---- */
int peer_read(int fd, Peer *ret);
void groups_lookup(const ApiConfig *config, Groups *g);
/* The right that a peer has: uid 0 or member of the writer group; member of the reader group. fd asks the kernel for the supplementary groups. */
Right peer_right(int fd, const Peer *p, const Groups *g);
void audit_request(const Request *r, unsigned status, const char *detail);
/* "uid=N" */
void peer_describe(const Peer *p, char *buffer, size_t size);

/* ---- router.c ---- */
enum {
        BODY_NONE = 0,
        BODY_REQUIRED = 1,
        BODY_OPTIONAL = 2,
};
struct Route {
        const char *method;
        const char *path;            /* "*" is one captured segment */
        Right right;
        int body;
        const char *params;          /* allowed query parameters, space-separated; a path value may hold control bytes */
        /* 0: the reply is filled; 1: answered later; negative errno: an internal error. */
        int (*handler)(Request *r);
};
extern const Route api_routes[];
extern const size_t api_n_routes;
/* Finds the route, captures and parameters of a request from its raw URI and method. 0, or 1 when the reply has been filled with a problem. */
int router_resolve(Request *r);
/* The value of a parameter, NULL when it was not given. */
const char *request_param(const Request *r, const char *name);
/* Parameters of a kind; each returns 0, or 1 with the problem in the reply. Absent: *ret keeps its default. */
int request_param_bool(Request *r, const char *name, bool *ret);
int request_param_u64(Request *r, const char *name, uint64_t least, uint64_t most, uint64_t *ret);
const char *request_header(const Request *r, const char *name);
/* Takes the body apart by a table. 0, or 1 with a problem that names all that is wrong, or -ENOMEM; clear the target with fields_clear() in each case. */
int request_decode(Request *r, const Field *fields, void *target);
/* Parses the body; refuses what is no JSON object (except with BODY_OPTIONAL and an empty one). 0 or 1 with a problem. */
int request_parse_body(Request *r);

/* ---- problem.c ---- */
/* Fills the reply with problem+json. name is the last part of the type; list may be NULL. Always returns 0. */
int reply_problem(Request *r, unsigned status, const char *name, const DiagList *list, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same with further members: extra is taken over (may be NULL). */
int reply_problem_with(Request *r, unsigned status, const char *name, const DiagList *list, json_t *extra, const char *format, ...)
        __attribute__((format(printf, 6, 7)));
/* A problem for an error of a command of the manager. */
int reply_error(Request *r, int error, const DiagList *list);
const char *status_title(unsigned status);
json_t *diag_list_to_json(const DiagList *list);

/* ---- reply.c ---- */
/* Fills the reply; json is taken over. NULL json: -ENOMEM. */
int reply_json(Request *r, unsigned status, json_t *json);
/* body is taken over. */
int reply_text(Request *r, unsigned status, const char *content_type, char *body, size_t size);
int reply_static(Request *r, unsigned status, const char *content_type, const char *body, size_t size);
int reply_empty(Request *r, unsigned status);
void reply_clear(Reply *reply);
/* Sets the ETag of the answer. */
void reply_etag(Request *r, const char *etag);
/* Checks If-Match and If-None-Match against the current ETag (NULL: the thing does not exist). 0: go on. 1: the reply is filled (412, or 304 on GET). */
int check_preconditions(Request *r, const char *etag);
/* ETag of a JSON value's content. */
void etag_of_json(json_t *json, char etag[64]);

/* ---- json-text.c ---- */
/* Everything that a name may hold becomes a valid JSON string: bytes that are no UTF-8 become U+FFFD. NULL: JSON null. NULL only without memory. */
json_t *json_text(const char *s);
/* Text of a valid string, invalid bytes replaced. New string. */
char *utf8_sanitize(const char *s);
json_t *json_u64(uint64_t v);
json_t *json_quota(uint64_t quota_usec);
json_t *json_time_realtime(uint64_t usec);               /* 0: null */
json_t *json_time_monotonic(uint64_t usec);              /* 0 or infinity: null */
json_t *json_errno(int error);                           /* positive errno; 0: null; "EINVAL" */
const char *errno_word(int error, char buffer[16]);
json_t *json_bandwidth(bool has, const Bandwidth *b);
void format_time(uint64_t realtime_usec, char buffer[40]);
/* key and key_escaped (only when needed) of a path. 0 or -1 as jansson's setters. */
int set_path(json_t *o, const char *key, const char *path);
uint64_t now_monotonic_usec(void);
uint64_t now_realtime_usec(void);

/* Gives o when nothing went wrong (error: the setters' results, or-ed), else frees it: a view is whole or it is not there. */
static inline json_t *json_whole(json_t *o, int error) {
        if (error == 0)
                return o;
        json_decref(o);
        return NULL;
}

/* ---- json-*.c: new references, NULL without memory ---- */
json_t *json_group(ApiServer *s, const Group *g, bool full);
json_t *json_group_view(const GroupView *v, bool full);
const char *group_state(const GroupView *v, const char **ret_reason);
bool group_state_is_valid(const char *s);
const char *knob_status_to_string(KnobStatus s);
const char *writer_to_string(Writer w);
json_t *json_decision(const Decision *d);
json_t *json_assignment(const Assignment *a, const char *pending);
json_t *json_class_view(const ServiceClass *c, size_t n_groups);
/* Groups of each class of the policy: new array of n_classes numbers. */
size_t *count_groups(ApiServer *s, const Policy *p);
json_t *json_rules(ApiServer *s);
json_t *json_status(ApiServer *s);
json_t *json_host(ApiServer *s);
json_t *json_policy(ApiServer *s);
json_t *json_pause(ApiServer *s);
/* Why an assignment has no group yet; NULL when it has one. */
const char *assignment_pending_reason(ApiServer *s, const Assignment *a);

/* ---- route-decisions.c ---- */
/* The latest decisions of a group (cgroup and unit NULL: of all), oldest first; returns how many. */
size_t decisions_latest(ApiServer *s, const char *cgroup, const char *unit, const Decision **ret, size_t max);
/* Sequence of the latest decision; 0 none. */
uint64_t decisions_newest(ApiServer *s);

/* ---- handlers ---- */
int route_status(Request *r);
int route_host(Request *r);
int route_livez(Request *r);
int route_readyz(Request *r);
int route_openapi(Request *r);
int route_metrics(Request *r);
int route_classes(Request *r);
int route_class_get(Request *r);
int route_class_put(Request *r);
int route_class_delete(Request *r);
int route_rules_get(Request *r);
int route_rules_put(Request *r);
int route_policy_get(Request *r);
int route_policy_reload(Request *r);
int route_groups(Request *r);
int route_group_unit(Request *r);
int route_group_cgroup(Request *r);
int route_explain(Request *r);
int route_assignments(Request *r);
int route_assignment_get(Request *r);
int route_assignment_put(Request *r);
int route_assignment_delete(Request *r);
int route_owner_get(Request *r);
int route_owner_put(Request *r);
int route_decisions(Request *r);
int route_events(Request *r);
int route_pause_get(Request *r);
int route_pause_put(Request *r);
int route_pause_delete(Request *r);
int route_restore(Request *r);
int route_pool(Request *r);

/* ---- events.c ---- */
void events_decision(const Decision *d, void *userdata);
void events_forget(Request *r);
void events_stop(ApiServer *s);
