/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* run: this process moves into a group of its own and becomes the command. */

#include "client/format.h"
#include "client/http.h"
#include "client/names.h"
#include "client/options.h"
#include "client/verbs.h"

const char help_run[] =
        "Runs a command in a new group below cpuclass' own subtree, which gets a class at\n"
        "once and goes away with its last process. The exit code is the command's own;\n"
        "126 when it cannot be run, 127 when it is not found.\n\n"
        "  --pool NAME     the pool: lower-case letters, digits, dots, dashes\n"
        "  --class CLASS   its class (else rules decide, by the cgroup path)\n"
        "  --json          print the group's path as JSON on standard error before it runs";

#define CODE_CANNOT_RUN 126
#define CODE_NO_COMMAND 127

int verb_run(Client *c, const Verb *verb, int argc, char **argv) {
        static const struct option options[] = {
                { "pool", required_argument, NULL, 'p' },
                { "class", required_argument, NULL, 'c' },
                {},
        };
        const char *pool = NULL, *class_name = NULL;
        _cleanup_free_ char *url = NULL, *encoded = NULL;
        Answer a = {};
        json_t *body;
        Options o;
        int option;
        ExitCode code = CODE_OK;

        options_init(&o, c, verb, options, true, argc, argv);
        while ((option = options_next(&o)) >= 0)
                if (option == 'p')
                        pool = optarg;
                else
                        class_name = optarg;
        if (option != OPTIONS_END)
                return o.exit_code;
        if (!pool) {
                complain("run: --pool NAME is missing");
                hint("Usage: cpuclassctl run --pool NAME [--class CLASS] -- COMMAND...");
                return CODE_USAGE;
        }
        if (optind >= argc) {
                complain("run: no command");
                hint("Usage: cpuclassctl run --pool NAME [--class CLASS] -- COMMAND...");
                return CODE_USAGE;
        }
        body = json_object();
        if (json_object_set_new(body, "pid", json_integer(getpid())) < 0 ||
            (class_name && json_object_set_new(body, "class", json_string(class_name)) < 0)) {
                complain("\"%s\" is no class name", class_name ? class_name : "");
                code = CODE_INVALID;
        }
        encoded = url_encode(pool);
        if (code == CODE_OK && (!encoded || asprintf(&url, "/v1/pools/%s", encoded) < 0)) {
                url = NULL;
                code = CODE_FAILURE;
        }
        if (code == CODE_OK) {
                bool json = c->json;

                /* standard output is the command's */
                c->json = false;
                code = client_request(c, "POST", url, body, TIMEOUT_USUAL, &a);
                c->json = json;
                if (class_name && code == CODE_INVALID)
                        class_hint_unless_known(c, class_name);
        }
        json_decref(body);
        if (code != CODE_OK)
                return code;
        if (c->json)
                (void) fprintf(stderr, "%s\n", a.body);
        answer_clear(&a);
        (void) fflush(NULL);
        (void) execvp(argv[optind], argv + optind);
        code = errno == ENOENT ? CODE_NO_COMMAND : CODE_CANNOT_RUN;
        complain("cannot run %s: %s", argv[optind], strerror(errno));
        return code;
}
