/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cpuclassctl: one table of verbs, each in its own file. A verb asks the daemon over its socket and shows the answer; --json shows the
 * answer itself. */

#include <langinfo.h>
#include <locale.h>

#include "client/options.h"
#include "config.h"

static void help(void) {
        (void) puts("cpuclassctl [--json] [--socket PATH] VERB [ARGUMENT...]\n\n"
                    "Service classes for the CPU use of units, cgroups and pods.\n");
        for (const Verb *v = verbs; v->name; v++)
                if (v->summary)
                        (void) printf("  %-12s %s\n", v->name, v->summary);
        (void) puts("\n"
                    "  cpuclassctl VERB --help says more about a verb.\n\n"
                    "GROUP and TARGET: a unit (nginx, web.slice), a cgroup path (/system.slice/...),\n"
                    "pod:UID; a process id where the verb says so.\n"
                    "Exit codes: 0 fine, 1 failed, 2 usage, 3 not found, 4 refused, 5 no daemon,\n"
                    "6 invalid value or policy.\n"
                    "CPUCLASS_SOCKET and --socket name another socket; NO_COLOR turns colour off.");
}

int main(int argc, char **argv) {
        static const struct option options[] = {
                { "help", no_argument, NULL, 'h' },
                { "json", no_argument, NULL, 'j' },
                { "socket", required_argument, NULL, 's' },
                { "version", no_argument, NULL, 'V' },
                {},
        };
        const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM"), *socket_path = getenv("CPUCLASS_SOCKET");
        Client c = { .socket = socket_path && *socket_path ? socket_path : CPUCLASS_SOCKET };
        const Verb *verb;
        int option;
        ExitCode code;

        (void) setlocale(LC_ALL, "");
        c.utf8 = streq(nl_langinfo(CODESET), "UTF-8");
        c.terminal = isatty(STDOUT_FILENO);
        c.colour = c.terminal && !(no_colour && *no_colour) && term && !streq(term, "dumb");

        opterr = 0;
        while ((option = getopt_long(argc, argv, "+:hV", options, NULL)) != -1)
                switch (option) {
                case 'h':
                        help();
                        return CODE_OK;
                case 'V':
                        (void) puts("cpuclassctl " CPUCLASS_VERSION);
                        return CODE_OK;
                case 'j':
                        c.json = true;
                        break;
                case 's':
                        c.socket = optarg;
                        break;
                default:
                        complain("unknown or incomplete option %s", argv[optind - 1]);
                        hint("Options of a verb stand behind it. Try: cpuclassctl --help");
                        return CODE_USAGE;
                }
        if (optind >= argc) {
                help();
                return CODE_USAGE;
        }
        if (streq(argv[optind], "help") && optind + 1 < argc) {
                verb = verb_find(argv[optind + 1]);
                if (verb)
                        verb_help(verb);
                return verb ? CODE_OK : CODE_USAGE;
        }
        verb = verb_find(argv[optind]);
        if (!verb)
                return CODE_USAGE;
        code = verb->run(&c, verb, argc - optind, argv + optind);
        if (fflush(stdout) != 0 && errno != EPIPE && code == CODE_OK) {
                complain("cannot write the output: %s", strerror(errno));
                code = CODE_FAILURE;
        }
        return (int) code;
}
