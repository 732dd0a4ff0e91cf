/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* top: asks, reckons, draws, and waits for a key. What it knows is in top-model.c, how it looks in top-view.c. */

#include <fcntl.h>
#include <inttypes.h>

#include "client/duration.h"
#include "client/format.h"
#include "client/groups.h"
#include "client/options.h"
#include "client/text.h"
#include "client/top-terminal.h"
#include "client/top-view.h"
#include "client/verbs.h"

const char help_top[] =
        "Groups live: CPU use and quota in percent of one CPU, throttled share of the periods,\n"
        "pressure, the controller's state, the age of its last action (\"!\": drift, somebody\n"
        "else changes the group), and the last minute's use, scaled to the quota.\n\n"
        "  -d, --delay DURATION   between two looks (1s, at least 100ms)\n"
        "  -n, --iterations N     ends after N looks\n"
        "  -b, --batch            plain text, one look after the other; one look in a pipe\n"
        "      --sort KEY         cpu, throttled, pressure, quota, class, name, age\n"
        "  -r, --reverse          the other way round\n"
        "      --filter TEXT      only names, paths, classes that hold TEXT\n"
        "      --class CLASS      only groups of this class\n"
        "  -t, --tree             by path, one below the other\n"
        "  -a, --all              also groups that nothing gives a class\n"
        "      --json             each look as GET /v1/groups, one after the other\n\n"
        "Keys: c t p u k n a sort; r reverse; / filter; f tree or flat; + - delay; space\n"
        "stands still; up, down, Page keys; q ends.";

#define TIMEOUT_TOP 5
#define DELAY_LEAST_USEC (100 * USEC_PER_MSEC)
#define DELAY_MOST_USEC (3600 * USEC_PER_SEC)

typedef struct Top {
        Client *client;
        GroupsFilter groups;
        TopFilter filter;
        TopModel model;
        TopHead head;
        char filter_text[128];
        uint64_t delay_usec;
        size_t first, selected;
        bool still, typing, asked_self;
        char *self;                    /* our daemon's cgroup; NULL not known */
        uint64_t self_usage_usec, self_at_usec;
} Top;

/* ---- the daemon's own cost, from its own cgroup's files, which everybody may read ---- */

static int read_small_file(const char *directory, const char *name, char *buffer, size_t size) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -1;
        ssize_t n;

        if (asprintf(&path, "/sys/fs/cgroup%s/%s", directory, name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, buffer, size - 1);
        if (n < 0)
                return -errno;
        buffer[n] = 0;
        return 0;
}

static void add_self(Top *t, FILE *f, uint64_t now) {
        char text[2048], share[FORMAT_MAX];
        unsigned long long usage, memory;

        if (!t->asked_self) {
                _cleanup_answer_ Answer a = {};

                t->asked_self = true;
                if (http_call(t->client, "GET", "/v1/groups/unit/cpuclassd.service", NULL, TIMEOUT_TOP, true, &a) == CODE_OK && a.status == 200 &&
                    !json_text(a.json, "cgroup_escaped") && json_text(a.json, "cgroup"))
                        t->self = strdup(json_text(a.json, "cgroup"));
        }
        if (!t->self)
                return;
        if (read_small_file(t->self, "cpu.stat", text, sizeof(text)) == 0 && sscanf(text, "usage_usec %llu", &usage) == 1) {
                if (t->self_at_usec > 0 && now > t->self_at_usec && usage >= t->self_usage_usec)
                        (void) fprintf(f, ", uses %s", format_permyriad((usage - t->self_usage_usec) * 10000 / (now - t->self_at_usec), share));
                t->self_usage_usec = usage;
                t->self_at_usec = now;
        }
        if (read_small_file(t->self, "memory.current", text, sizeof(text)) == 0 && sscanf(text, "%llu", &memory) == 1)
                (void) fprintf(f, ", %llu.%llu MiB", memory >> 20, (memory & 0xfffff) * 10 >> 20);
}

static void make_head(Top *t, const json_t *status, uint64_t now) {
        const json_t *groups = json_object_get(status, "groups");
        const char *error = json_text(json_object_get(status, "policy"), "error");
        char tick[FORMAT_MAX];
        FILE *f;

        memset(&t->head, 0, sizeof(t->head));
        f = fmemopen(t->head.text, sizeof(t->head.text) - 1, "w");
        if (!f)
                return;
        (void) setvbuf(f, NULL, _IOFBF, sizeof(t->head.text));
        (void) fprintf(f, "cpuclassd %s: %" PRIu64 " groups, %" PRIu64 " drift, %" PRIu64 " failed; tick %s", json_text(status, "version") ?: "",
                       json_number_or(groups, "classified", 0), json_number_or(groups, "drift", 0), json_number_or(groups, "failed", 0),
                       duration_format(json_number_or(status, "last_tick_usec", 0), tick, sizeof(tick)));
        add_self(t, f, now);
        (void) fclose(f);
        if (json_flag(status, "paused"))
                (void) snprintf(t->head.trouble, sizeof(t->head.trouble), "Everything is paused: cpuclassctl resume");
        else if (error)
                (void) snprintf(t->head.trouble, sizeof(t->head.trouble), "The policy on disk was refused: %s", error);
        else if (!json_flag(status, "bus_connected"))
                (void) snprintf(t->head.trouble, sizeof(t->head.trouble), "No connection to systemd");
}

/* One look. quiet: trouble goes to the head instead of standard error. */
static ExitCode look(Top *t, bool quiet, uint64_t *ret_now) {
        _cleanup_answer_ Answer status = {};
        json_t *all = NULL;
        ExitCode code = CODE_OK;

        if (!t->client->json) {
                code = http_call(t->client, "GET", "/v1/status", NULL, TIMEOUT_TOP, quiet, &status);
                if (code == CODE_OK && status.status != 200) {
                        if (!quiet)
                                problem_print(&status);
                        code = exit_code_of_answer(status.status, json_text(status.json, "type"));
                }
        }
        if (code == CODE_OK)
                code = groups_request(t->client, t->groups, quiet, &all);
        *ret_now = now_usec();
        if (code != CODE_OK) {
                (void) snprintf(t->head.trouble, sizeof(t->head.trouble), "No daemon answers; trying again");
                return code;
        }
        if (t->client->json)
                code = json_print(t->client, all);
        else {
                make_head(t, status.json, *ret_now);
                if (top_model_update(&t->model, json_object_get(all, "groups"), *ret_now) < 0)
                        code = CODE_FAILURE;
        }
        json_decref(all);
        return code;
}

static ExitCode batch(Top *t, unsigned long iterations) {
        for (unsigned long i = 0; iterations == 0 || i < iterations; i++) {
                _cleanup_free_ TopRow **rows = NULL;
                TopScreen screen = { .selected = SIZE_MAX, .width = 400, .whole = true };
                size_t n = 0, height;
                uint64_t now;
                ExitCode code;

                if (i > 0 && terminal_sleep(t->delay_usec))
                        return CODE_OK;
                code = look(t, false, &now);
                if (code != CODE_OK)
                        return code;
                if (t->client->json)
                        continue;
                if (t->client->terminal) {
                        terminal_size(&screen.width, &height);
                        screen.whole = false;
                }
                rows = top_model_select(&t->model, &t->filter, &n);
                if (!rows)
                        return CODE_FAILURE;
                if (i > 0)
                        (void) putchar('\n');
                top_view_print(stdout, t->client, &t->head, rows, n, &t->filter, &screen, now, false);
                if (fflush(stdout) != 0)
                        return errno == EPIPE ? CODE_OK : CODE_FAILURE;
        }
        return CODE_OK;
}

static void draw(Top *t, uint64_t now) {
        _cleanup_free_ TopRow **rows = NULL;
        TopScreen screen = {};
        char keys[512], delay[FORMAT_MAX], age[FORMAT_MAX];
        size_t n = 0, fit;

        rows = top_model_select(&t->model, &t->filter, &n);
        if (!rows)
                return;
        terminal_size(&screen.width, &screen.height);
        fit = top_view_rows(screen.height, t->head.trouble[0]);
        t->selected = n == 0 ? 0 : MIN_OF(t->selected, n - 1);
        if (t->selected < t->first)
                t->first = t->selected;
        if (t->selected >= t->first + fit)
                t->first = t->selected - fit + 1;
        if (t->first + fit > n)
                t->first = n > fit ? n - fit : 0;
        screen.first = t->first;
        screen.selected = n > 0 ? t->selected : SIZE_MAX;
        if (t->typing)
                (void) snprintf(keys, sizeof(keys), "Filter: %s_   Enter keeps it, Esc drops it", t->filter_text);
        else if (n > 0 && rows[t->selected]->action)
                (void) snprintf(keys, sizeof(keys), "%s: %.400s", format_age(rows[t->selected]->action_at_usec, now, age), rows[t->selected]->action);
        else
                (void) snprintf(keys, sizeof(keys), "%zu rows by %s, every %s%s%s%s   q quit  / filter  f tree  c t p u k n a sort", n, top_sort_to_string(t->filter.sort),
                                duration_format(t->delay_usec, delay, sizeof(delay)), *t->filter_text ? ", filter " : "", t->filter_text, t->still ? ", standing still" : "");
        screen.keys = keys;
        (void) fputs("\033[H", stdout);
        top_view_print(stdout, t->client, &t->head, rows, n, &t->filter, &screen, now, true);
        (void) fputs("\033[J", stdout);
        (void) fflush(stdout);
}

/* A key while a filter is typed. */
static void type(Top *t, int key) {
        size_t n = strlen(t->filter_text);

        if (key == KEY_ENTER)
                t->typing = false;
        else if (key == KEY_ESCAPE) {
                t->typing = false;
                t->filter_text[0] = 0;
        } else if (key == KEY_BACKSPACE) {
                while (n > 0 && (t->filter_text[n - 1] & 0xc0) == 0x80) /* the rest of a character */
                        t->filter_text[--n] = 0;
                if (n > 0)
                        t->filter_text[n - 1] = 0;
        } else if (key >= ' ' && key < 0x100 && n + 1 < sizeof(t->filter_text)) {
                t->filter_text[n] = (char) key;
                t->filter_text[n + 1] = 0;
        }
}

/* Returns true when the program is to end. */
static bool press(Top *t, int key) {
        static const struct {
                char key;
                TopSort sort;
        } sorts[] = { { 'c', SORT_CPU }, { 't', SORT_THROTTLED }, { 'p', SORT_PRESSURE }, { 'u', SORT_QUOTA }, { 'k', SORT_CLASS }, { 'n', SORT_NAME }, { 'a', SORT_AGE } };
        size_t width, height;

        if (key == KEY_QUIT)
                return true;
        if (t->typing) {
                type(t, key);
                return false;
        }
        terminal_size(&width, &height);
        for (size_t i = 0; i < ELEMENTSOF(sorts); i++)
                if (key == sorts[i].key) {
                        t->filter.sort = sorts[i].sort;
                        t->filter.tree = false;
                }
        switch (key) {
        case 'q':
                return true;
        case 'r':
                t->filter.reverse = !t->filter.reverse;
                break;
        case 'f':
                t->filter.tree = !t->filter.tree;
                break;
        case '/':
                t->typing = true;
                break;
        case KEY_ESCAPE:
                t->filter_text[0] = 0;
                break;
        case ' ':
                t->still = !t->still;
                break;
        case '+':
                t->delay_usec = MIN_OF(t->delay_usec * 2, DELAY_MOST_USEC);
                break;
        case '-':
                t->delay_usec = MAX_OF(t->delay_usec / 2, DELAY_LEAST_USEC);
                break;
        case KEY_UP:
                t->selected -= t->selected > 0;
                break;
        case KEY_DOWN:
                t->selected++;
                break;
        case KEY_PAGE_UP:
                t->selected -= MIN_OF(t->selected, top_view_rows(height, false));
                break;
        case KEY_PAGE_DOWN:
                t->selected += top_view_rows(height, false);
                break;
        case KEY_HOME:
                t->selected = 0;
                break;
        case KEY_END:
                t->selected = SIZE_MAX / 2;
                break;
        }
        return false;
}

static ExitCode live(Top *t, unsigned long iterations) {
        uint64_t now, next;
        ExitCode code;

        /* a first failure is told on the usual screen */
        code = look(t, false, &now);
        if (code != CODE_OK)
                return code;
        if (terminal_enter() < 0)
                return batch(t, iterations);
        for (unsigned long i = 1;; i++) {
                next = now + t->delay_usec;
                for (uint64_t at = now; at < next || t->still || t->typing;) {
                        int key;

                        draw(t, now);
                        key = terminal_wait(t->still ? DELAY_MOST_USEC : at < next ? next - at : t->delay_usec);
                        if (press(t, key)) {
                                terminal_leave();
                                return CODE_OK;
                        }
                        at = now_usec();
                        if (at < now || next > at + t->delay_usec) /* the clock was set, or the delay is shorter now */
                                next = at + t->delay_usec;
                }
                if (iterations > 0 && i >= iterations)
                        break;
                (void) look(t, true, &now);
        }
        terminal_leave();
        return CODE_OK;
}

int verb_top(Client *c, const Verb *verb, int argc, char **argv) {
        static const struct option options[] = {
                { "delay", required_argument, NULL, 'd' },
                { "iterations", required_argument, NULL, 'n' },
                { "batch", no_argument, NULL, 'b' },
                { "sort", required_argument, NULL, 's' },
                { "reverse", no_argument, NULL, 'r' },
                { "filter", required_argument, NULL, 'f' },
                { "class", required_argument, NULL, 'c' },
                { "tree", no_argument, NULL, 't' },
                { "all", no_argument, NULL, 'a' },
                {},
        };
        Top t = { .client = c, .delay_usec = USEC_PER_SEC };
        unsigned long iterations = 0;
        bool want_batch = false;
        const char *words[_SORT_MAX], *nearest;
        Options o;
        char *end;
        int option;
        ExitCode code;

        options_init(&o, c, verb, options, false, argc, argv);
        while ((option = options_next(&o)) >= 0)
                switch (option) {
                case 'd':
                        if (duration_parse(optarg, &t.delay_usec) < 0 || t.delay_usec < DELAY_LEAST_USEC || t.delay_usec > DELAY_MOST_USEC)
                                return options_wrong(&o, "--delay", optarg, "expected a duration from 100ms to 1h");
                        break;
                case 'n':
                        iterations = strtoul(optarg, &end, 10);
                        if (end == optarg || *end || *optarg == '-' || iterations == 0)
                                return options_wrong(&o, "-n", optarg, "expected a number from 1");
                        break;
                case 'b':
                        want_batch = true;
                        break;
                case 's':
                        if (top_sort_from_string(optarg, &t.filter.sort) < 0) {
                                for (size_t i = 0; i < _SORT_MAX; i++)
                                        words[i] = top_sort_to_string((TopSort) i);
                                nearest = text_suggest(optarg, words, _SORT_MAX);
                                code = options_wrong(&o, "--sort", optarg, "is no sort key");
                                if (nearest)
                                        hint("Did you mean \"%s\"?", nearest);
                                return code;
                        }
                        break;
                case 'r':
                        t.filter.reverse = true;
                        break;
                case 'f':
                        if (strlen(optarg) >= sizeof(t.filter_text))
                                return options_wrong(&o, "--filter", optarg, "is too long");
                        (void) strcpy(t.filter_text, optarg);
                        break;
                case 'c':
                        t.groups.service_class = optarg;
                        break;
                case 't':
                        t.filter.tree = true;
                        break;
                case 'a':
                        t.groups.all = true;
                        break;
                }
        if (option != OPTIONS_END || !options_check_arguments(&o, 0, 0))
                return o.exit_code;
        t.filter.text = t.filter_text;
        if (!c->terminal && !want_batch && iterations == 0)
                iterations = 1;
        code = want_batch || !c->terminal || c->json ? batch(&t, iterations) : live(&t, iterations);
        top_model_clear(&t.model);
        free(t.self);
        return code;
}
