/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cpuclassd: joins the manager and the API on one loop, and knows how to end.
 *
 * A stop puts back what is ours; a restart, an upgrade and a host's shutdown leave everything: the next start adopts what it finds. */

#include "daemon/manager.h"

#include "api/api.h"
#include "daemon/ledger.h"
#include "daemon/log.h"
#include "daemon/pools-holder.h"
#include "daemon/restore-offline.h"
#include "daemon/units.h"

#include "config.h"

#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <sys/prctl.h>
#include <systemd/sd-daemon.h>

typedef struct Daemon {
        sd_event *event;
        Manager *manager;
        ApiServer *api;
        bool ending;
} Daemon;

static void say_status(Daemon *d) {
        DaemonStatus s;

        manager_status(d->manager, &s);
        (void) sd_notifyf(false, "STATUS=%zu groups, %zu with a class, %zu pending%s%s%s", s.n_groups_seen, s.n_groups_classified, s.n_pending,
                          s.policy_error ? "; the policy on disk is refused" : "", s.paused ? "; paused" : "", s.bus_connected ? "" : "; waiting for systemd's bus");
}

static int on_status(sd_event_source *source, uint64_t usec, void *userdata) {
        say_status(userdata);
        (void) sd_event_source_set_time_relative(source, 10 * USEC_PER_SEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        Daemon *d = userdata;
        DiagList list = { 0 };

        (void) sd_notify(false, "RELOADING=1");
        (void) manager_reload_policy(d->manager, &list);
        diag_list_clear(&list);
        api_server_refresh_groups(d->api);
        (void) sd_notify(false, "READY=1");
        say_status(d);
        return 0;
}

static void on_restored(size_t n_restored, size_t n_left, void *userdata) {
        Daemon *d = userdata;

        (void) sd_event_exit(d->event, 0);
}

static int on_restore_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        Daemon *d = userdata;

        log_warning("systemd did not answer in time while our drop-ins were removed");
        return sd_event_exit(d->event, 0);
}

static int on_end(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        Daemon *d = userdata;
        StopReason reason = STOP_REASON_STOP;

        if (d->ending)
                return 0;
        d->ending = true;
        (void) sd_notify(false, "STOPPING=1");
        if (info->ssi_signo == SIGTERM && getenv("INVOCATION_ID")) {
                /* Which job ends us? Not knowing is taken for a restart: values that stay can still be put back, values put back by mistake hurt running services. */
                if (units_stop_reason(NULL, &reason) < 0)
                        reason = STOP_REASON_UNKNOWN;
        }
        if (reason != STOP_REASON_STOP) {
                log_info("Ending (%s): everything stays as it is", reason == STOP_REASON_SHUTDOWN ? "the host shuts down" : reason == STOP_REASON_RESTART ? "a restart" :
                         "the reason is unknown; cpuclassctl restore puts values back");
                return sd_event_exit(d->event, 0);
        }
        log_info("Stopping: putting back every value that is still ours");
        manager_quiesce(d->manager);
        if (sd_event_add_time_relative(d->event, NULL, CLOCK_MONOTONIC, 20 * USEC_PER_SEC, 0, on_restore_timeout, d) < 0)
                return sd_event_exit(d->event, 0);
        if (manager_restore_all(d->manager, on_restored, d) < 0)
                return sd_event_exit(d->event, EXIT_FAILURE);
        return 0;
}

static int listen_descriptor(void) {
        int n = sd_listen_fds(true);

        if (n > 1)
                log_warning("More than one socket was handed over: only the first is served");
        return n >= 1 ? SD_LISTEN_FDS_START : -1;
}

static void help(void) {
        printf("cpuclassd: gives every workload on this host a service class and keeps the scheduler's settings at it\n\n"
               "  --dry-run            decide and record, write nothing\n"
               "  --restore            put back what an earlier daemon left, then end (no daemon may run)\n"
               "  --hold-pools         hold the delegated subtree for cpuclassctl run --pool (cpuclass-pools.service)\n"
               "  --state-dir=DIR      ledger and assignments (%s)\n"
               "  --runtime-dir=DIR    lock (%s)\n"
               "  --policy-dir=DIR     read policies from here instead of the default directories; may be given again\n"
               "  --socket=PATH        API socket when none is handed over (%s)\n"
               "  --no-systemd         do not talk to systemd: all groups are written directly\n"
               "  --verbose            log each decision of the laws\n"
               "  --version, --help\n",
               CPUCLASS_STATE_DIR, CPUCLASS_RUNTIME_DIR, CPUCLASS_SOCKET);
}

int main(int argc, char *argv[]) {
        enum { OPT_DRY_RUN = 256, OPT_RESTORE, OPT_HOLD_POOLS, OPT_STATE_DIR, OPT_RUNTIME_DIR, OPT_POLICY_DIR, OPT_SOCKET, OPT_NO_SYSTEMD, OPT_VERBOSE, OPT_VERSION, OPT_HELP };
        static const struct option options[] = {
                { "dry-run", no_argument, NULL, OPT_DRY_RUN },       { "restore", no_argument, NULL, OPT_RESTORE },
                { "hold-pools", no_argument, NULL, OPT_HOLD_POOLS }, { "state-dir", required_argument, NULL, OPT_STATE_DIR },
                { "runtime-dir", required_argument, NULL, OPT_RUNTIME_DIR }, { "policy-dir", required_argument, NULL, OPT_POLICY_DIR },
                { "socket", required_argument, NULL, OPT_SOCKET },   { "no-systemd", no_argument, NULL, OPT_NO_SYSTEMD },
                { "verbose", no_argument, NULL, OPT_VERBOSE },       { "version", no_argument, NULL, OPT_VERSION },
                { "help", no_argument, NULL, OPT_HELP },             { NULL, 0, NULL, 0 },
        };
        const char *policy_dirs[17] = { CPUCLASS_VENDOR_POLICY_DIR, CPUCLASS_SYSCONF_POLICY_DIR, NULL };
        ManagerConfig config = { .state_dir = CPUCLASS_STATE_DIR, .policy_dirs = policy_dirs, .runtime_dir = CPUCLASS_RUNTIME_DIR };
        ApiConfig api = { .socket_path = CPUCLASS_SOCKET };
        Daemon d = { 0 };
        bool restore = false;
        size_t n_dirs = 0;
        sigset_t mask;
        int r, c;

        (void) setlocale(LC_CTYPE, "C.UTF-8");
        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (c) {
                case OPT_DRY_RUN:
                        config.dry_run = true;
                        break;
                case OPT_RESTORE:
                        restore = true;
                        break;
                case OPT_HOLD_POOLS:
                        return pools_hold() < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
                case OPT_STATE_DIR:
                        config.state_dir = optarg;
                        break;
                case OPT_RUNTIME_DIR:
                        config.runtime_dir = optarg;
                        break;
                case OPT_POLICY_DIR:
                        if (n_dirs + 1 >= ELEMENTSOF(policy_dirs)) {
                                fprintf(stderr, "cpuclassd: at most %zu policy directories\n", ELEMENTSOF(policy_dirs) - 1);
                                return 2;
                        }
                        policy_dirs[n_dirs++] = optarg;
                        policy_dirs[n_dirs] = NULL;
                        break;
                case OPT_SOCKET:
                        api.socket_path = optarg;
                        break;
                case OPT_NO_SYSTEMD:
                        config.no_systemd = true;
                        break;
                case OPT_VERBOSE:
                        log_set_max_priority(LOG_DEBUG);
                        break;
                case OPT_VERSION:
                        printf("cpuclassd %s\n", CPUCLASS_VERSION);
                        return 0;
                case OPT_HELP:
                        help();
                        return 0;
                default:
                        fprintf(stderr, "cpuclassd: see cpuclassd --help\n");
                        return 2;
                }
        if (optind < argc) {
                fprintf(stderr, "cpuclassd: no argument is taken: %s\n", argv[optind]);
                return 2;
        }
        if (restore)
                return restore_offline(&config);

        r = sd_event_default(&d.event);
        if (r < 0) {
                log_error("The event loop can't be made: %s", strerror(-r));
                return EXIT_FAILURE;
        }
        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGTERM);
        (void) sigaddset(&mask, SIGINT);
        (void) sigaddset(&mask, SIGHUP);
        (void) sigprocmask(SIG_BLOCK, &mask, NULL);
        (void) signal(SIGPIPE, SIG_IGN);
        (void) sd_event_set_watchdog(d.event, true);

        r = manager_new(d.event, &config, &d.manager);
        if (r < 0)
                goto finish;
        if ((r = sd_event_add_signal(d.event, NULL, SIGTERM, on_end, &d)) < 0 || (r = sd_event_add_signal(d.event, NULL, SIGINT, on_end, &d)) < 0 ||
            (r = sd_event_add_signal(d.event, NULL, SIGHUP, on_reload, &d)) < 0)
                goto finish;
        r = manager_start(d.manager);
        if (r < 0)
                goto finish;
        r = api_server_new(d.event, d.manager, listen_descriptor(), &api, &d.api);
        if (r < 0) {
                log_error("The API can't be served: %s", strerror(-r));
                goto finish;
        }
        (void) sd_notify(false, "READY=1");
        say_status(&d);
        if (sd_event_add_time_relative(d.event, NULL, CLOCK_MONOTONIC, 2 * USEC_PER_SEC, USEC_PER_SEC, on_status, &d) < 0)
                log_warning("The status line will not be kept");
        r = sd_event_loop(d.event);
finish:
        d.api = api_server_free(d.api);
        d.manager = manager_free(d.manager);
        sd_event_unref(d.event);
        if (r == -EREMOTE || r == -EBUSY)
                return 3;                    /* refused: another instance, or not the host's namespaces */
        return r < 0 ? EXIT_FAILURE : r;
}
