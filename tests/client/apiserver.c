/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon's real API server with a manager without a kernel behind it: what cpuclassctl says and what the server understands are tried on each other.
 * Usage: apiserver DIRECTORY [MORE]; serves DIRECTORY/api.sock until standard input ends; a line "decide" there takes a decision. */

#include <systemd/sd-event.h>

#include "api/api.h"
#include "tests/unit/api/fake-manager.h"

static int everybody_writes(uid_t uid, void *userdata) {
        return 2;
}

static void no_audit(const ApiAudit *line, void *userdata) {
}

static int on_input(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        char text[256];
        ssize_t n = read(fd, text, sizeof(text));

        if (n <= 0)
                return sd_event_exit(sd_event_source_get_event(source), 0);
        fake_decide(userdata, "/system.slice/nginx.service", "raised the quota");
        return 0;
}

int main(int argc, char **argv) {
        _cleanup_free_ char *path = NULL;
        sd_event *event = NULL;
        ApiServer *server = NULL;
        ApiConfig config = { .rights = everybody_writes, .audit = no_audit };
        Manager *m;
        int r;

        if (argc < 2 || asprintf(&path, "%s/api.sock", argv[1]) < 0 || sd_event_new(&event) < 0)
                return 1;
        config.socket_path = path;
        m = fake_manager_new(event, argv[1], argc > 2 ? strtoul(argv[2], NULL, 10) : 0);
        if (api_server_new(event, m, -1, &config, &server) < 0 || sd_event_add_io(event, NULL, STDIN_FILENO, 1 /* EPOLLIN */, on_input, m) < 0)
                return 1;
        (void) puts("ready");
        (void) fflush(stdout);
        r = sd_event_loop(event);
        (void) api_server_free(server);
        (void) fake_manager_free(m);
        sd_event_unref(event);
        return r < 0;
}
