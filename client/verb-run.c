/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* run: this process moves into a group of its own and becomes the command. */

#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

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

/* The subtree of the pools is a unit of its own that nothing starts at boot: its delegation switches the cpu controller on between the host's
 * slices, and that is for the first user of a pool to want. */
#define POOLS_UNIT "cpuclass-pools.service"
#define POOLS_WAIT_USEC (5 * USEC_PER_SEC)
#define POOLS_RETRY_USEC (100 * USEC_PER_MSEC)

static bool pools_are_there(const Client *c) {
        _cleanup_answer_ Answer a = {};

        return http_call(c, "GET", "/v1/groups/unit/" POOLS_UNIT, NULL, TIMEOUT_USUAL, true, &a) == CODE_OK && a.status == 200;
}

static bool start_pools(void) {
        const char *const arguments[] = { "systemctl", "start", POOLS_UNIT, NULL };
        posix_spawn_file_actions_t actions;
        int status = -1, r;
        pid_t pid;

        /* standard output is the command's */
        if (posix_spawn_file_actions_init(&actions) != 0)
                return false;
        r = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
        if (r == 0)
                r = posix_spawnp(&pid, arguments[0], &actions, NULL, (char *const *) arguments, environ);
        (void) posix_spawn_file_actions_destroy(&actions);
        while (r == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (r == 0 && status == 0)
                return true;
        complain("%s could not be started", POOLS_UNIT);
        return false;
}

/* Asks for the group; where the pools are not there yet, starts them, and waits until the daemon has seen them. */
static ExitCode ask(const Client *c, const char *url, json_t *body, Answer *ret) {
        bool started = false;

        for (uint64_t waited = 0;; waited += POOLS_RETRY_USEC) {
                _cleanup_answer_ Answer a = {};
                ExitCode code = http_call(c, "POST", url, body, TIMEOUT_USUAL, false, &a);

                if (code != CODE_OK)
                        return code;
                if (a.status < 500 || waited >= POOLS_WAIT_USEC || (!started && pools_are_there(c))) {
                        if (a.status >= 200 && a.status < 300) {
                                *ret = a;
                                a = (Answer) {};
                                return CODE_OK;
                        }
                        problem_print(&a);
                        return exit_code_of_answer(a.status, json_text(a.json, "type"));
                }
                if (!started && !start_pools())
                        return CODE_FAILURE;
                started = true;
                (void) nanosleep(&(struct timespec) { .tv_nsec = (long) (POOLS_RETRY_USEC * NSEC_PER_USEC) }, NULL);
        }
}

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
                code = ask(c, url, body, &a);
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
