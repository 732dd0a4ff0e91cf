/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The units room against a real systemd. It makes units, reloads and restarts the bus, so it runs in the VM only (CPUCLASS_VM); elsewhere it is a skip.
 *
 * With the argument "stop-reason FILE" it is a service of its own test: it waits to be stopped and writes why to FILE. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "daemon/units-internal.h"

static sd_event *event;
static Units *units;

/* What the handlers saw. */
static struct {
        unsigned connected, disconnected, reloads_begun, reloads_ended, changed, removed;
        char last_removed[256];
        char watched[256];     /* changes of this unit are counted */
        unsigned watched_changes, watched_removals;
} seen;

static void on_connected(void *userdata) {
        seen.connected++;
}
static void on_disconnected(void *userdata) {
        seen.disconnected++;
}
static void on_changed(const UnitInfo *unit, void *userdata) {
        seen.changed++;
        if (streq(unit->id, seen.watched))
                seen.watched_changes++;
}
static void on_removed(const char *id, void *userdata) {
        seen.removed++;
        (void) snprintf(seen.last_removed, sizeof(seen.last_removed), "%s", id);
        if (streq(id, seen.watched))
                seen.watched_removals++;
}
static void on_reloading(bool active, void *userdata) {
        if (active)
                seen.reloads_begun++;
        else
                seen.reloads_ended++;
}

static const UnitsHandlers handlers = {
        .connected = on_connected, .disconnected = on_disconnected, .changed = on_changed, .removed = on_removed, .reloading = on_reloading,
};

static double now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static void turn(uint64_t usec) {
        int r = sd_event_run(event, usec);

        if (r < 0)
                fail_msg("sd_event_run: %s", strerror(-r));
}

static void turn_for(double seconds) {
        for (double end = now() + seconds; now() < end;)
                turn(20 * USEC_PER_MSEC);
}

/* Turns the loop until the condition holds. */
#define WAIT_FOR(condition)                                                                 \
        do {                                                                                \
                double _end = now() + 30;                                                   \
                while (!(condition)) {                                                      \
                        if (now() > _end)                                                   \
                                fail_msg("line %d: waited in vain: %s", __LINE__, #condition); \
                        turn(50 * USEC_PER_MSEC);                                           \
                }                                                                           \
        } while (0)

/* Runs a fixed command while the loop turns, so that what we watch can go on. */
static void run(const char *command) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                (void) execl("/bin/sh", "sh", "-c", command, (char *) NULL);
                _exit(127);
        }
        assert_true(pid > 0);
        for (double end = now() + 60;;) {
                pid_t r = waitpid(pid, &status, WNOHANG);

                if (r == pid)
                        break;
                if (now() > end)
                        fail_msg("no end: %s", command);
                turn(10 * USEC_PER_MSEC);
        }
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                fail_msg("%s: status %d", command, status);
}

static void write_text(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t) strlen(text))
                fail_msg("%s: %s", path, strerror(errno));
        close(fd);
}

static bool exists(const char *path) {
        return access(path, F_OK) == 0;
}

/* cpu.max of a unit as "quota period", "" without one. */
static const char *cpu_max(const char *id) {
        static char text[64];
        const UnitInfo *info = units_get(units, id);
        char path[600];
        ssize_t n;
        int fd;

        text[0] = 0;
        if (!info || !info->cgroup[0])
                return text;
        (void) snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", info->cgroup);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return text;
        n = read(fd, text, sizeof(text) - 1);
        close(fd);
        text[n > 0 ? n - 1 : 0] = 0;
        return text;
}

/* ---- calls ---- */

static struct {
        bool done;
        int error;
        char text[256], load_state[64];
} reply;

static void on_done(int error, const char *message, void *userdata) {
        reply.done = true;
        reply.error = error;
        (void) snprintf(reply.text, sizeof(reply.text), "%s", message ? message : "");
}

static void on_resolved(int error, const char *id, const char *load_state, void *userdata) {
        reply.done = true;
        reply.error = error;
        (void) snprintf(reply.text, sizeof(reply.text), "%s", id ? id : "");
        (void) snprintf(reply.load_state, sizeof(reply.load_state), "%s", load_state ? load_state : "");
}

static int await(int r) {
        if (r < 0)
                return r;
        WAIT_FOR(reply.done);
        reply.done = false;
        return reply.error;
}

static int set_quota(const char *id, uint64_t quota_usec, uint64_t period_usec) {
        return await(units_set_quota(units, id, quota_usec, period_usec, on_done, NULL));
}

static int reload(void) {
        return await(units_reload(units, on_done, NULL));
}

static int resolve(const char *name) {
        return await(units_resolve(units, name, on_resolved, NULL));
}

static void daemon_reload(void) {
        unsigned before = seen.reloads_ended;

        run("systemctl daemon-reload");
        WAIT_FOR(seen.reloads_ended > before);
        assert_int_equal(seen.reloads_begun, seen.reloads_ended);
}

/* ---- tests ---- */

static void test_listing(void **state) {
        const UnitInfo *info;

        assert_int_equal(units_new(event, NULL, &handlers, NULL, &units), 0);
        assert_false(units_are_connected(units));
        assert_int_equal(seen.connected + seen.changed, 0);
        WAIT_FOR(seen.connected == 1);
        assert_true(units_are_connected(units));

        info = units_get(units, "vm.service");
        assert_non_null(info);
        assert_false(info->loading);
        assert_string_equal(info->cgroup, "/system.slice/vm.service");
        assert_string_equal(info->slice, "system.slice");
        assert_string_equal(info->load_state, "loaded");
        assert_string_equal(info->active_state, "active");
        assert_false(info->transient);
        assert_true(info->quota_per_sec_usec == USEC_INFINITY);
        assert_true(info->cpu_weight == UINT64_MAX);
        assert_true(endswith(info->fragment_path, "/vm.service"));
        assert_true(info->owner_quota_known);
        assert_null(info->class_word);
        assert_ptr_equal(units_by_cgroup(units, "/system.slice/vm.service"), info);
        assert_non_null(units_get(units, "-.slice"));
        assert_non_null(units_get(units, "init.scope"));
        assert_null(units_get(units, "basic.target"));
        assert_null(units_get(units, "nonsense.service"));
        assert_null(units_by_cgroup(units, ""));
}

static void test_transient(void **state) {
        const UnitInfo *info;

        strcpy(seen.watched, "live-a.service");
        run("systemd-run -q --unit=live-a.service --slice=live.slice -p CPUQuota=20% -p User=nobody sleep 1000");
        WAIT_FOR((info = units_get(units, "live-a.service")) && streq(info->active_state, "active"));
        assert_string_equal(info->cgroup, "/live.slice/live-a.service");
        assert_string_equal(info->slice, "live.slice");
        assert_string_equal(info->user, "nobody");
        assert_true(info->transient);
        assert_int_equal(info->quota_per_sec_usec, 200000);
        assert_int_equal(info->owner_quota_per_sec_usec, 200000);
        WAIT_FOR(units_get(units, "live.slice") && streq(units_get(units, "live.slice")->cgroup, "/live.slice"));

        /* Our quota on it goes to the transient drop-in directory, and is not the owner's word. */
        assert_int_equal(set_quota("live-a.service", 50000, 100000), 0);
        WAIT_FOR(streq(cpu_max("live-a.service"), "50000 100000"));
        WAIT_FOR(units_get(units, "live-a.service")->quota_per_sec_usec == 500000);
        info = units_get(units, "live-a.service");
        assert_int_equal(info->owner_quota_per_sec_usec, 200000);
        assert_null(info->overriding_dropin);
        assert_true(exists("/run/systemd/transient/live-a.service.d/50-CPUQuota.conf"));
        assert_true(exists("/run/systemd/transient/live-a.service.d/50-CPUQuotaPeriodSec.conf"));
        daemon_reload();
        assert_string_equal(cpu_max("live-a.service"), "50000 100000");
        assert_int_equal(units_get(units, "live-a.service")->owner_quota_per_sec_usec, 200000);

        run("systemctl stop live-a.service");
        WAIT_FOR(!units_get(units, "live-a.service"));
        assert_int_equal(seen.watched_removals, 1);
        assert_null(units_by_cgroup(units, "/live.slice/live-a.service"));
}

static void test_names(void **state) {
        const UnitInfo *info;

        write_text("/run/systemd/system/live-b.service", "[Unit]\nStartLimitBurst=1000\n[Service]\nExecStart=sleep 1000\nSlice=live.slice\nCPUQuota=40%\n[X-CpuClass]\nClass = batch\n");
        (void) unlink("/run/systemd/system/live-alias.service");
        assert_int_equal(symlink("live-b.service", "/run/systemd/system/live-alias.service"), 0);
        write_text("/run/systemd/system/live-t@.service", "[Service]\nExecStart=sleep 1000\n[X-CpuClass]\nClass=interactive\n");
        daemon_reload();

        assert_int_equal(resolve("live-alias.service"), 0);
        assert_string_equal(reply.text, "live-b.service");
        assert_string_equal(reply.load_state, "loaded");
        assert_int_equal(resolve("live-t@x.service"), 0);
        assert_string_equal(reply.text, "live-t@x.service");
        assert_int_equal(resolve("live-none.service"), 0);
        assert_string_equal(reply.load_state, "not-found");
        assert_int_equal(resolve("live none.service"), -EINVAL);
        assert_int_equal(resolve("live-t@.service"), -EINVAL);
        assert_int_equal(resolve("x.timer"), -EINVAL);

        run("systemctl start live-alias.service 'live-t@a\\x2db.service'");
        WAIT_FOR((info = units_get(units, "live-alias.service")) && streq(info->active_state, "active") && info->cgroup[0]);
        assert_string_equal(info->id, "live-b.service");
        assert_ptr_equal(units_get(units, "live-b.service"), info);
        assert_string_equal(info->class_word, "batch");
        assert_int_equal(info->owner_quota_per_sec_usec, 400000);
        assert_true(streq(info->names[0], "live-alias.service") || streq(info->names[1], "live-alias.service"));
        WAIT_FOR((info = units_get(units, "live-t@a\\x2db.service")) && streq(info->active_state, "active"));
        assert_string_equal(info->class_word, "interactive");
        assert_string_equal(info->slice, "system-live\\x2dt.slice");
        run("systemctl stop 'live-t@a\\x2db.service'");
        WAIT_FOR(!units_get(units, "live-t@a\\x2db.service"));
}

static void test_refresh(void **state) {
        uint64_t before;

        /* By an alias that the table does not know yet: the entry of the alias gives way to the real one. */
        run("systemctl stop live-b.service; systemctl daemon-reload");
        WAIT_FOR(seen.reloads_begun == seen.reloads_ended);
        turn_for(0.5);
        assert_null(units_get(units, "live-b.service"));
        units_refresh(units, "live-alias.service");
        assert_true(units_get(units, "live-alias.service")->loading);
        WAIT_FOR(!units_get(units, "live-alias.service") || !units_get(units, "live-alias.service")->loading);
        units_refresh(units, "not a name");
        units_refresh(units, "live-nothing.service");
        WAIT_FOR(!units_get(units, "live-nothing.service") || !units_get(units, "live-nothing.service")->loading);
        /* What was loaded only for our question is forgotten again, and the table follows. */
        WAIT_FOR(!units_get(units, "live-nothing.service"));

        /* Questions of others make systemd load and forget units: that is no reason to ask and ask. */
        turn_for(0.5);
        before = units->n_asked;
        run("for i in 1 2 3 4 5 6 7 8 9 10; do systemctl show -p Id live-nothing-$i.service >/dev/null; done");
        turn_for(2);
        print_message("questions after ten units came and went: %" PRIu64 "\n", units->n_asked - before);
        assert_true(units->n_asked - before <= 20);
        before = units->n_asked;
        turn_for(1.5);
        assert_true(units->n_asked - before <= 2);
        run("systemctl start live-b.service");
        WAIT_FOR(units_get(units, "live-b.service") && streq(units_get(units, "live-b.service")->active_state, "active"));
}

static void test_quota(void **state) {
        _cleanup_free_ char *path = NULL, *content = NULL, *period_path = NULL, *period_content = NULL;
        const UnitInfo *info;

        assert_string_equal(cpu_max("live-b.service"), "40000 100000");
        assert_int_equal(units_read_dropin("live-b.service", "CPUQuota", &path, &content), -ENOENT);
        assert_int_equal(set_quota("live-b.service", 25000, 50000), 0);
        WAIT_FOR(streq(cpu_max("live-b.service"), "25000 50000"));
        WAIT_FOR(units_get(units, "live-b.service")->quota_period_usec == 50000);
        info = units_get(units, "live-b.service");
        assert_int_equal(info->quota_per_sec_usec, 500000);
        assert_int_equal(info->owner_quota_per_sec_usec, 400000);
        assert_true(info->owner_quota_period_usec == USEC_INFINITY);
        assert_string_equal(info->class_word, "batch");

        assert_int_equal(units_read_dropin("live-b.service", "CPUQuota", &path, &content), 0);
        assert_string_equal(path, "/run/systemd/system.control/live-b.service.d/50-CPUQuota.conf");
        assert_true(units_dropin_says("live-b.service", "CPUQuota", content, 500000));
        assert_false(units_dropin_says("live-b.service", "CPUQuota", content, 510000));
        assert_int_equal(units_read_dropin("live-b.service", "CPUQuotaPeriodSec", &period_path, &period_content), 0);
        assert_true(units_dropin_says("live-b.service", "CPUQuotaPeriodSec", period_content, 50000));

        /* Another Units, as after a restart of the daemon, without a word of what is ours: then the drop-in counts as the owner's. */
        {
                Units *mine = units;
                unsigned connected = seen.connected;

                units = NULL;
                assert_int_equal(units_new(event, NULL, &handlers, NULL, &units), 0);
                WAIT_FOR(seen.connected > connected);
                assert_int_equal(units_get(units, "live-b.service")->owner_quota_per_sec_usec, 500000);
                units_free(units);
                units = mine;
        }

        /* Undo of both, one reload; then the owner's edits count again. */
        assert_int_equal(units_undo_dropin(path, "something else", NULL), 0);
        assert_int_equal(units_undo_dropin(path, content, NULL), 1);
        assert_int_equal(units_undo_dropin(period_path, period_content, NULL), 1);
        assert_int_equal(units_undo_dropin(path, content, NULL), 2);
        assert_false(exists("/run/systemd/system.control/live-b.service.d"));
        assert_string_equal(cpu_max("live-b.service"), "25000 50000");
        assert_int_equal(reload(), 0);
        WAIT_FOR(seen.reloads_begun == seen.reloads_ended);
        WAIT_FOR(streq(cpu_max("live-b.service"), "40000 100000"));
        assert_int_equal(units_get(units, "live-b.service")->quota_per_sec_usec, 400000);
        write_text("/run/systemd/system/live-b.service", "[Unit]\nStartLimitBurst=1000\n[Service]\nExecStart=sleep 1000\nSlice=live.slice\nCPUQuota=60%\n[X-CpuClass]\nClass=\n");
        daemon_reload();
        WAIT_FOR(streq(cpu_max("live-b.service"), "60000 100000"));
        assert_int_equal(units_get(units, "live-b.service")->owner_quota_per_sec_usec, 600000);
        assert_null(units_get(units, "live-b.service")->class_word);
}

static void test_quota_refused(void **state) {
        assert_int_equal(set_quota("live-missing.service", 50000, 100000), -ENOENT);
        assert_true(reply.text[0]);
        assert_int_equal(set_quota("live-b.service", 999, 100000), -EINVAL);
        assert_int_equal(set_quota("live-b.service", 5000, 2000000), -EINVAL);
        assert_int_equal(set_quota("a b.service", 50000, 0), -EINVAL);
        assert_int_equal(set_quota("../b.service", 50000, 0), -EINVAL);
        assert_int_equal(await(units_set_weight(units, "live-b.service", 0, on_done, NULL)), -EINVAL);
        assert_string_equal(cpu_max("live-b.service"), "60000 100000");
}

static void test_overrides(void **state) {
        _cleanup_free_ char *path = NULL, *content = NULL;
        const UnitInfo *info;

        (void) mkdir("/run/systemd/system/live-b.service.d", 0755);
        write_text("/run/systemd/system/live-b.service.d/override.conf", "[Service]\nCPUQuota=30%\n");
        daemon_reload();
        assert_int_equal(set_quota("live-b.service", 80000, 0), 0);
        WAIT_FOR(streq(cpu_max("live-b.service"), "80000 100000"));
        WAIT_FOR(units_get(units, "live-b.service")->quota_per_sec_usec == 800000);
        info = units_get(units, "live-b.service");
        assert_int_equal(info->owner_quota_per_sec_usec, 300000);
        assert_string_equal(info->overriding_dropin, "/run/systemd/system/live-b.service.d/override.conf");
        daemon_reload();
        info = units_get(units, "live-b.service");
        assert_int_equal(info->quota_per_sec_usec, 300000); /* the later name won */
        assert_int_equal(info->owner_quota_per_sec_usec, 300000);
        assert_string_equal(info->overriding_dropin, "/run/systemd/system/live-b.service.d/override.conf");
        assert_int_equal(unlink("/run/systemd/system/live-b.service.d/override.conf"), 0);
        daemon_reload();
        info = units_get(units, "live-b.service");
        assert_null(info->overriding_dropin);
        assert_int_equal(info->quota_per_sec_usec, 800000);
        assert_int_equal(info->owner_quota_per_sec_usec, 600000);

        /* The admin's word for good, under the very name of ours: it wins at the next reload. */
        run("systemctl set-property live-b.service CPUQuota=70%");
        WAIT_FOR(streq(cpu_max("live-b.service"), "70000 100000"));
        WAIT_FOR(units_get(units, "live-b.service")->quota_per_sec_usec == 700000);
        info = units_get(units, "live-b.service");
        assert_int_equal(info->owner_quota_per_sec_usec, 700000);
        assert_string_equal(info->overriding_dropin, "/etc/systemd/system.control/live-b.service.d/50-CPUQuota.conf");
        daemon_reload();
        info = units_get(units, "live-b.service");
        assert_int_equal(info->quota_per_sec_usec, 700000);
        assert_int_equal(info->owner_quota_per_sec_usec, 700000);
        assert_non_null(info->overriding_dropin);
        run("rm -r /etc/systemd/system.control/live-b.service.d");
        assert_int_equal(units_read_dropin("live-b.service", "CPUQuota", &path, &content), 0);
        assert_int_equal(units_undo_dropin(path, content, NULL), 1);
        daemon_reload();
        assert_int_equal(units_get(units, "live-b.service")->quota_per_sec_usec, 600000);
}

/* systemd sends no signal for this, and still it is noticed: the first setting of a unit, the next, on a transient unit, and a setting taken back. */
static void test_set_property(void **state) {
        uint64_t before;

        run("systemctl set-property --runtime live-b.service CPUQuota=21%");
        WAIT_FOR(units_get(units, "live-b.service")->owner_quota_per_sec_usec == 210000);
        run("systemctl set-property --runtime live-b.service CPUQuota=22%");
        WAIT_FOR(units_get(units, "live-b.service")->owner_quota_per_sec_usec == 220000);
        run("systemctl set-property --runtime live-b.service CPUQuota=23% CPUQuotaPeriodSec=20ms");
        WAIT_FOR(units_get(units, "live-b.service")->owner_quota_period_usec == 20000 && units_get(units, "live-b.service")->quota_per_sec_usec == 230000);
        run("systemctl set-property live-b.service CPUQuota=24%");
        WAIT_FOR(units_get(units, "live-b.service")->owner_quota_per_sec_usec == 240000);
        turn_for(1.5);
        before = units->n_asked;
        run("systemctl set-property --runtime live-b.service MemoryHigh=1G");
        turn_for(1);
        assert_int_equal(units->n_asked, before); /* none of ours */
        run("systemctl revert live-b.service; systemctl daemon-reload");
        WAIT_FOR(units_get(units, "live-b.service")->owner_quota_per_sec_usec == 600000 && units_get(units, "live-b.service")->quota_per_sec_usec == 600000);

        run("systemd-run -q --unit=live-d.service sleep 1000");
        WAIT_FOR(units_get(units, "live-d.service") && streq(units_get(units, "live-d.service")->active_state, "active"));
        run("systemctl set-property live-d.service CPUQuota=31%");
        WAIT_FOR(units_get(units, "live-d.service")->owner_quota_per_sec_usec == 310000);
        run("systemctl stop live-d.service");
        WAIT_FOR(!units_get(units, "live-d.service"));
        assert_true(units->n_watches < 40);
}

/* The admin's run-time value was there before us: it is the owner's word, and what undo puts back. */
static void test_original(void **state) {
        _cleanup_free_ char *path = NULL, *original = NULL, *written = NULL, *after = NULL;

        run("systemctl set-property --runtime live-b.service CPUQuota=25%");
        WAIT_FOR(units_get(units, "live-b.service")->quota_per_sec_usec == 250000);
        assert_int_equal(units_get(units, "live-b.service")->owner_quota_per_sec_usec, 250000);
        assert_int_equal(units_read_dropin("live-b.service", "CPUQuota", NULL, &original), 0);
        assert_int_equal(set_quota("live-b.service", 50000, 0), 0);
        WAIT_FOR(units_get(units, "live-b.service")->quota_per_sec_usec == 500000);
        assert_int_equal(units_get(units, "live-b.service")->owner_quota_per_sec_usec, 250000);
        assert_int_equal(set_quota("live-b.service", 55000, 0), 0);
        WAIT_FOR(units_get(units, "live-b.service")->quota_per_sec_usec == 550000);
        assert_int_equal(units_get(units, "live-b.service")->owner_quota_per_sec_usec, 250000);
        assert_int_equal(units_read_dropin("live-b.service", "CPUQuota", &path, &written), 0);
        assert_int_equal(units_undo_dropin(path, written, original), 1);
        assert_int_equal(units_undo_dropin(path, written, original), 2);
        assert_int_equal(units_read_dropin("live-b.service", "CPUQuota", NULL, &after), 0);
        assert_string_equal(after, original);
        assert_int_equal(reload(), 0);
        WAIT_FOR(streq(cpu_max("live-b.service"), "25000 100000"));
        WAIT_FOR(seen.reloads_begun == seen.reloads_ended);
        assert_int_equal(units_get(units, "live-b.service")->owner_quota_per_sec_usec, 250000);
        assert_int_equal(unlink(path), 0);

        /* A file of the same name that ours hides. */
        (void) mkdir("/run/systemd/system/live-b.service.d", 0755);
        write_text("/run/systemd/system/live-b.service.d/50-CPUQuota.conf", "[Service]\nCPUQuota=35%\n");
        daemon_reload();
        assert_int_equal(units_get(units, "live-b.service")->owner_quota_per_sec_usec, 350000);
        assert_int_equal(set_quota("live-b.service", 50000, 0), 0);
        daemon_reload();
        assert_int_equal(units_get(units, "live-b.service")->quota_per_sec_usec, 500000);
        assert_int_equal(units_get(units, "live-b.service")->owner_quota_per_sec_usec, 350000);
        assert_null(units_get(units, "live-b.service")->overriding_dropin);
        run("rm -r /run/systemd/system/live-b.service.d /run/systemd/system.control/live-b.service.d");
        daemon_reload();
        assert_int_equal(units_get(units, "live-b.service")->owner_quota_per_sec_usec, 600000);
}

static void test_weight(void **state) {
        _cleanup_free_ char *path = NULL, *content = NULL;

        assert_int_equal(await(units_set_weight(units, "live-b.service", 123, on_done, NULL)), 0);
        WAIT_FOR(units_get(units, "live-b.service")->cpu_weight == 123);
        assert_int_equal(units_read_dropin("live-b.service", "CPUWeight", &path, &content), 0);
        assert_true(units_dropin_says("live-b.service", "CPUWeight", content, 123));
        assert_int_equal(units_undo_dropin(path, content, NULL), 1);
        daemon_reload();
        assert_true(units_get(units, "live-b.service")->cpu_weight == UINT64_MAX);
}

static void test_reload(void **state) {
        unsigned removed = seen.removed, changed;

        strcpy(seen.watched, "live-b.service");
        seen.watched_changes = seen.watched_removals = 0;
        turn_for(1);
        changed = seen.changed;
        daemon_reload();
        daemon_reload();
        /* A reload in which nothing changed says nothing of any unit. */
        assert_int_equal(seen.removed, removed);
        assert_int_equal(seen.watched_changes + seen.watched_removals, 0);
        print_message("changes in two reloads: %u\n", seen.changed - changed);

        run("systemctl daemon-reload & systemctl daemon-reload & systemctl daemon-reload & wait");
        WAIT_FOR(seen.reloads_begun == seen.reloads_ended);
        turn_for(0.5);
        assert_int_equal(seen.reloads_begun, seen.reloads_ended);
        assert_int_equal(seen.watched_changes + seen.watched_removals, 0);
}

static void test_reexec(void **state) {
        unsigned begun = seen.reloads_begun;

        run("systemctl daemon-reexec");
        WAIT_FOR(seen.reloads_begun > begun && seen.reloads_begun == seen.reloads_ended);
        turn_for(1);
        WAIT_FOR(seen.reloads_begun == seen.reloads_ended);
        assert_int_equal(seen.watched_removals, 0);
        assert_true(units_are_connected(units));
        /* Signals still come. */
        run("systemctl restart live-b.service");
        WAIT_FOR(seen.watched_changes > 0 && streq(units_get(units, "live-b.service")->active_state, "active"));
        assert_int_equal(set_quota("live-b.service", 50000, 0), 0);
        WAIT_FOR(streq(cpu_max("live-b.service"), "50000 100000"));
}

static void test_restarts(void **state) {
        uint64_t before = units->n_asked;

        run("for i in 1 2 3 4 5 6; do systemctl restart live-b.service; done");
        WAIT_FOR(streq(units_get(units, "live-b.service")->active_state, "active"));
        print_message("questions in six restarts: %" PRIu64 "\n", units->n_asked - before);
        assert_true(units->n_asked - before < 60);
}

/* Anybody may send us a signal; only systemd's count. */
static void test_forged(void **state) {
        sd_bus *bus = NULL;
        sd_bus_message *m = NULL;
        const char *us;

        assert_int_equal(sd_bus_get_unique_name(units->bus, &us), 0);
        assert_true(sd_bus_open_system(&bus) >= 0);
        assert_true(sd_bus_message_new_signal(bus, &m, SYSTEMD_PATH, SYSTEMD_MANAGER, "UnitRemoved") >= 0);
        assert_true(sd_bus_message_append(m, "so", "live-b.service", "/org/freedesktop/systemd1/unit/live_2db_2eservice") >= 0);
        assert_true(sd_bus_send_to(bus, m, us, NULL) >= 0);
        sd_bus_message_unref(m);
        assert_true(sd_bus_message_new_signal(bus, &m, SYSTEMD_PATH, SYSTEMD_MANAGER, "Reloading") >= 0);
        assert_true(sd_bus_message_append(m, "b", 1) >= 0);
        assert_true(sd_bus_send_to(bus, m, us, NULL) >= 0);
        sd_bus_message_unref(m);
        assert_true(sd_bus_flush(bus) >= 0);
        sd_bus_close_unref(bus);
        turn_for(1);
        assert_non_null(units_get(units, "live-b.service"));
        assert_int_equal(seen.reloads_begun, seen.reloads_ended);
}

static void test_bus_restart(void **state) {
        unsigned connected = seen.connected, disconnected = seen.disconnected;

        seen.watched_changes = seen.watched_removals = 0;
        assert_int_equal(units_set_quota(units, "live-b.service", 45000, 0, on_done, NULL), 0);
        run("systemctl kill -s KILL dbus.service");
        WAIT_FOR(seen.disconnected > disconnected);
        assert_false(units_are_connected(units));
        assert_non_null(units_get(units, "live-b.service")); /* the table stays as it was */
        run("systemctl reset-failed dbus.service; systemctl start dbus.socket dbus.service");
        WAIT_FOR(seen.connected > connected);
        assert_true(reply.done); /* an open call has its end, whichever */
        reply.done = false;
        assert_int_equal(seen.watched_removals, 0);
        assert_int_equal(set_quota("live-b.service", 50000, 0), 0);
        WAIT_FOR(streq(cpu_max("live-b.service"), "50000 100000"));
        run("systemctl restart live-b.service");
        WAIT_FOR(seen.watched_changes > 0 && streq(units_get(units, "live-b.service")->active_state, "active"));

        /* What went while we did not look is gone. */
        run("systemd-run -q --unit=live-c.service sleep 1000");
        WAIT_FOR(units_get(units, "live-c.service"));
        connected = seen.connected;
        run("systemctl stop dbus.socket dbus.service; systemctl stop live-c.service; systemctl start dbus.socket dbus.service");
        WAIT_FOR(seen.connected > connected);
        assert_null(units_get(units, "live-c.service"));
}

static void assert_stop_reason(const char *command, const char *expected) {
        char text[32] = "";
        int fd;

        (void) unlink("/run/live-stop-reason");
        run(command);
        for (double end = now() + 15; !exists("/run/live-stop-reason");) {
                if (now() > end)
                        fail_msg("%s: no reason", command);
                turn_for(0.1);
        }
        fd = open("/run/live-stop-reason", O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0);
        close(fd);
        assert_string_equal(text, expected);
}

static char self[1024];

static void test_stop_reason(void **state) {
        char text[1400];

        (void) snprintf(text, sizeof(text), "[Service]\nType=notify\nExecStart=%s stop-reason /run/live-stop-reason\n", self);
        write_text("/run/systemd/system/live-stop.service", text);
        daemon_reload();
        run("systemctl start live-stop.service");
        assert_stop_reason("systemctl restart live-stop.service", "restart");
        assert_stop_reason("systemctl try-restart live-stop.service", "restart");
        assert_stop_reason("systemctl kill live-stop.service", "unknown");
        run("systemctl start live-stop.service");
        assert_stop_reason("systemctl stop live-stop.service", "stop");
        run("systemctl start live-stop.service");
        run("systemctl stop dbus.socket dbus.service");
        assert_stop_reason("systemctl stop live-stop.service", "stop");
        run("systemctl start dbus.socket dbus.service");
}

static void test_end(void **state) {
        run("systemctl stop live-b.service; rm -f /run/systemd/system/live-*; systemctl daemon-reload");
        units = units_free(units);
        /* Free at once, and free with calls open. */
        assert_int_equal(units_new(event, NULL, &handlers, NULL, &units), 0);
        units = units_free(units);
        assert_int_equal(units_new(event, NULL, &handlers, NULL, &units), 0);
        for (unsigned i = 0; i < 20; i++)
                turn(1000);
        (void) units_reload(units, on_done, NULL);
        (void) units_resolve(units, "vm.service", on_resolved, NULL);
        units = units_free(units);
        /* No bus at all. */
        seen.connected = 0;
        assert_int_equal(units_new(event, "unix:path=/nowhere", &handlers, NULL, &units), 0);
        turn_for(0.5);
        assert_int_equal(seen.connected, 0);
        assert_int_equal(units_reload(units, on_done, NULL), -ENOTCONN);
        units_refresh(units, "vm.service");
        units = units_free(units);
}

static int write_stop_reason(const char *path) {
        static const char *const words[] = { "unknown", "stop", "restart", "shutdown" };
        StopReason reason = STOP_REASON_UNKNOWN;
        sigset_t set;
        int s, r;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) sd_notify(0, "READY=1");
        (void) sigwait(&set, &s);
        r = units_stop_reason(NULL, &reason);
        if (r < 0)
                fprintf(stderr, "%s\n", strerror(-r));
        write_text("/run/live-stop-reason.new", r < 0 ? "error" : words[reason]);
        return rename("/run/live-stop-reason.new", path) < 0;
}

int main(int argc, char *argv[]) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_listing),
                cmocka_unit_test(test_transient),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_refresh),
                cmocka_unit_test(test_quota),
                cmocka_unit_test(test_quota_refused),
                cmocka_unit_test(test_overrides),
                cmocka_unit_test(test_set_property),
                cmocka_unit_test(test_original),
                cmocka_unit_test(test_weight),
                cmocka_unit_test(test_reload),
                cmocka_unit_test(test_reexec),
                cmocka_unit_test(test_restarts),
                cmocka_unit_test(test_forged),
                cmocka_unit_test(test_bus_restart),
                cmocka_unit_test(test_stop_reason),
                cmocka_unit_test(test_end),
        };

        if (argc == 3 && streq(argv[1], "stop-reason"))
                return write_stop_reason(argv[2]);
        if (!getenv("CPUCLASS_VM") || sd_booted() <= 0)
                return 77;
        if (!realpath(argv[0], self) || sd_event_new(&event) < 0)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
