/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A request behind HTTP: "METHOD TARGET" on the first line, the body after it. Goes through routing, decoding, the handler and its answer, with a manager without
 * a kernel. */

#include <dirent.h>

#include "api/internal.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/api/fake-manager.h"

static ApiServer server;
static char directory[] = "/tmp/cpuclass-fuzz-XXXXXX";

static void open_manager(void) {
        server.manager = fake_manager_new(NULL, directory, 3);
        fake_decide(server.manager, STRANGE_CGROUP, "raised");
}

/* Ends the manager and forgets its state. */
static void close_manager(void) {
        DIR *d = opendir(directory);

        server.manager = fake_manager_free(server.manager);
        must(d);
        for (struct dirent *e; (e = readdir(d));)
                if (e->d_name[0] != '.')
                        (void) unlinkat(dirfd(d), e->d_name, 0);
        (void) closedir(d);
}

static void at_exit(void) {
        close_manager();
        (void) rmdir(directory);
}

static void ignore_audit(const ApiAudit *line, void *userdata) {
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const uint8_t *newline = memchr(data, '\n', size), *space;
        Client client = { .server = &server, .fd = -1, .peer = { .uid = 0, .pid = getpid(), .right = RIGHT_WRITE, .known = true } };
        Request *r;
        int k;

        if (!server.manager) {
                must(mkdtemp(directory));
                server.config = (ApiConfig) { .audit = ignore_audit, .reader_group = "cpuclass", .writer_group = "cpuclass-admin", .max_body = 1024 * 1024 };
                open_manager();
                must(atexit(at_exit) == 0);
        }
        space = newline ? memchr(data, ' ', (size_t) (newline - data)) : NULL;
        if (!space)
                return 0;
        r = calloc(1, sizeof(*r));
        must(r);
        r->server = &server;
        r->client = &client;
        (void) snprintf(r->method, sizeof(r->method), "%.*s", (int) (space - data), (const char *) data);
        r->head = streq(r->method, "HEAD");
        r->uri = strndup((const char *) space + 1, (size_t) (newline - space) - 1);
        r->body_size = size - (size_t) (newline + 1 - data);
        r->body = malloc(r->body_size + 1);
        must(r->uri && r->body);
        memcpy(r->body, newline + 1, r->body_size);
        server.manager->n_commands = 0;

        k = router_resolve(r);
        must(k >= 0);
        if (k == 0 && r->route->handler != route_events) {
                k = request_parse_body(r);
                must(k >= 0);
                if (k == 0) {
                        k = r->route->handler(r);
                        must(k == 0); /* nothing fails inside, and all is answered at once */
                }
                must(r->route->right == RIGHT_WRITE || server.manager->n_commands == 0);
                must(r->reply.ready && r->reply.status >= 200 && r->reply.status < 600);
                must(r->reply.status != 500 || r->route->handler == route_explain); /* that looks at real processes */
        } else if (k == 1)
                must(r->reply.ready && server.manager->n_commands == 0);
        if (r->reply.body && r->reply.content_type && strstr(r->reply.content_type, "json")) {
                json_t *j = json_loadb(r->reply.body, r->reply.size, JSON_REJECT_DUPLICATES, NULL);

                must(j);
                json_decref(j);
        }
        (void) request_free(r);
        if (server.manager->n_commands > 0) { /* each input finds the same */
                close_manager();
                open_manager();
        }
        return 0;
}
