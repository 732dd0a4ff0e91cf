/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of units against a systemd that we play ourselves, on a bus of our own: thousands of units, storms of signals, odd answers, losses. The real one is in
 * test-units-live. A skip where there is no dbus-daemon. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <time.h>

#include "daemon/units-internal.h"
#include "tests/unit/state-faults.h"

/* ---- a systemd to play with ---- */

#define FAKES_MAX 2000

typedef struct Fake {
        char name[64];
        char alias[64];       /* "" none */
        const char *state;
        uint64_t quota;
        enum { GOOD = 0, NO_SUCH_UNIT, BROKEN, WRONG_TYPES, WRONG_ID } mood;
} Fake;

static Fake fakes[FAKES_MAX];
static size_t n_fakes;
static sd_bus *fake_bus;
static bool fake_answers_list; /* false: with an error */
static unsigned n_lists, n_reloads, n_sets;

static sd_event *event;
static Units *units;
static pid_t bus_daemon;
static char address[128];

static Fake *fake_find(const char *name) {
        for (size_t i = 0; i < n_fakes; i++)
                if (streq(fakes[i].name, name) || (fakes[i].alias[0] && streq(fakes[i].alias, name)))
                        return &fakes[i];
        return NULL;
}

static Fake *fake_add(const char *format, unsigned i) {
        Fake *f = &fakes[n_fakes++];

        assert_true(n_fakes <= FAKES_MAX);
        *f = (Fake){ .state = "active", .quota = USEC_INFINITY };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void) snprintf(f->name, sizeof(f->name), format, i);
#pragma GCC diagnostic pop
        return f;
}

static char *fake_path(const char *name) {
        char *path = NULL;

        assert_true(sd_bus_path_encode(SYSTEMD_UNITS_PATH, name, &path) >= 0);
        return path;
}

static int answer_list(sd_bus_message *call) {
        sd_bus_message *m = NULL;

        n_lists++;
        if (!fake_answers_list)
                return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_ACCESS_DENIED, "No list today");
        assert_true(sd_bus_message_new_method_return(call, &m) >= 0);
        assert_true(sd_bus_message_open_container(m, 'a', "(ssssssouso)") >= 0);
        for (size_t i = 0; i < n_fakes; i++)
                assert_true(sd_bus_message_append(m, "(ssssssouso)", fakes[i].name, "d", "loaded", fakes[i].state, "s", "", "/x", (uint32_t) 0, "", "/") >= 0);
        for (size_t i = 0; i < 4; i++) /* names that are none */
                assert_true(sd_bus_message_append(m, "(ssssssouso)",
                                                  (const char *[]){ "a b.service", "../x.service", "\xc3\xa4\x1b.service", "gone.service" }[i], "d",
                                                  i == 3 ? "not-found" : "loaded", "inactive", "s", "", "/x", (uint32_t) 0, "", "/") >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(sd_bus_send(NULL, m, NULL) >= 0);
        sd_bus_message_unref(m);
        return 1;
}

static int answer_property(sd_bus_message *call, const Fake *f) {
        const char *interface, *property;

        assert_true(sd_bus_message_read(call, "ss", &interface, &property) >= 0);
        assert_string_equal(interface, SYSTEMD_UNIT);
        if (f->mood == WRONG_TYPES && !streq(property, "Id"))
                return sd_bus_reply_method_return(call, "v", "(si)", "x", 5);
        if (streq(property, "Id"))
                return f->mood == WRONG_ID ? sd_bus_reply_method_return(call, "v", "s", "no name\x1b") : sd_bus_reply_method_return(call, "v", "s", f->name);
        if (streq(property, "Names"))
                return f->alias[0] ? sd_bus_reply_method_return(call, "v", "as", 2, f->name, f->alias) : sd_bus_reply_method_return(call, "v", "as", 1, f->name);
        if (streq(property, "ActiveState"))
                return sd_bus_reply_method_return(call, "v", "s", f->state);
        if (streq(property, "LoadState"))
                return sd_bus_reply_method_return(call, "v", "s", "loaded");
        if (streq(property, "FragmentPath"))
                return sd_bus_reply_method_return(call, "v", "s", "");
        if (streq(property, "DropInPaths"))
                return sd_bus_reply_method_return(call, "v", "as", 0);
        assert_string_equal(property, "Transient");
        return sd_bus_reply_method_return(call, "v", "b", 0);
}

static int answer_type(sd_bus_message *call, const Fake *f) {
        char cgroup[100];

        (void) snprintf(cgroup, sizeof(cgroup), "/fake/%s", f->name);
        if (f->mood == WRONG_TYPES)
                return sd_bus_reply_method_return(call, "a{sv}", 3, "ControlGroup", "t", UINT64_C(5), "CPUQuotaPerSecUSec", "s", "x", "Slice", "a{ss}", 0);
        return sd_bus_reply_method_return(call, "a{sv}", 5, "Slice", "s", "fake.slice", "ControlGroup", "s", cgroup, "CPUQuotaPerSecUSec", "t", f->quota,
                                          "Delegate", "b", 1, "Unheard", "(sa{sv})", "x", 0);
}

static int answer(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_free_ char *name = NULL;
        const Fake *f;

        if (sd_bus_message_is_method_call(m, SYSTEMD_MANAGER, "Subscribe"))
                return sd_bus_reply_method_return(m, NULL);
        if (sd_bus_message_is_method_call(m, SYSTEMD_MANAGER, "ListUnits"))
                return answer_list(m);
        if (sd_bus_message_is_method_call(m, SYSTEMD_MANAGER, "Reload")) {
                n_reloads++;
                return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_FAILED, "Not \x1b[31m now");
        }
        if (sd_bus_message_is_method_call(m, SYSTEMD_MANAGER, "SetUnitProperties")) {
                n_sets++;
                return sd_bus_reply_method_return(m, NULL);
        }
        if (sd_bus_path_decode(sd_bus_message_get_path(m), SYSTEMD_UNITS_PATH, &name) <= 0) {
                if (sd_bus_message_is_method_call(m, "org.freedesktop.DBus.Properties", "Get"))
                        return sd_bus_reply_method_return(m, "v", "as", 1, "/nowhere");
                return 0;
        }
        f = fake_find(name);
        if (!f || f->mood == NO_SUCH_UNIT)
                return sd_bus_reply_method_errorf(m, SYSTEMD_SERVICE ".NoSuchUnit", "Unit %s not found", name);
        if (f->mood == BROKEN)
                return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_FAILED, "Out of order");
        if (sd_bus_message_is_method_call(m, "org.freedesktop.DBus.Properties", "Get"))
                return answer_property(m, f);
        if (sd_bus_message_is_method_call(m, "org.freedesktop.DBus.Properties", "GetAll"))
                return answer_type(m, f);
        return 0;
}

static void fake_signal(const char *member, const char *name) {
        _cleanup_free_ char *path = fake_path(name);

        assert_true(sd_bus_emit_signal(fake_bus, SYSTEMD_PATH, SYSTEMD_MANAGER, member, "so", name, path) >= 0);
}

static void fake_changed(const Fake *f) {
        _cleanup_free_ char *path = fake_path(f->name);

        assert_true(sd_bus_emit_signal(fake_bus, path, "org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as", SYSTEMD_UNIT, 2, "Other", "t",
                                       UINT64_C(1), "ActiveState", "s", f->state, 0) >= 0);
}

static void fake_reloading(int active) {
        assert_true(sd_bus_emit_signal(fake_bus, SYSTEMD_PATH, SYSTEMD_MANAGER, "Reloading", "b", active) >= 0);
}

static void fake_connect(void) {
        assert_true(sd_bus_new(&fake_bus) >= 0);
        assert_true(sd_bus_set_address(fake_bus, address) >= 0);
        assert_true(sd_bus_set_bus_client(fake_bus, true) >= 0);
        assert_true(sd_bus_start(fake_bus) >= 0);
        assert_true(sd_bus_add_filter(fake_bus, NULL, answer, NULL) >= 0);
        assert_true(sd_bus_request_name(fake_bus, SYSTEMD_SERVICE, 0) >= 0);
        assert_true(sd_bus_attach_event(fake_bus, event, 0) >= 0);
}

static void fake_disconnect(void) {
        if (fake_bus)
                (void) sd_bus_detach_event(fake_bus);
        fake_bus = sd_bus_close_unref(fake_bus);
}

/* ---- a bus of our own ---- */

static bool bus_begin(void) {
        static const char config[] = "<busconfig><type>session</type><listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth><policy context='default'>"
                                     "<allow send_destination='*' eavesdrop='true'/><allow eavesdrop='true'/><allow own='*'/></policy></busconfig>";
        char text[sizeof(config) + sizeof(scratch_path)], path[100], option[120];

        (void) snprintf(text, sizeof(text), config, scratch_path);
        (void) snprintf(path, sizeof(path), "%s/config", scratch_path);
        write_raw(AT_FDCWD, path, text, strlen(text));
        (void) snprintf(option, sizeof(option), "--config-file=%s", path);
        (void) snprintf(address, sizeof(address), "unix:path=%s/bus", scratch_path);
        bus_daemon = fork();
        if (bus_daemon == 0) {
                (void) execlp("dbus-daemon", "dbus-daemon", option, "--nofork", "--nopidfile", (char *) NULL);
                _exit(77);
        }
        for (unsigned i = 0; i < 1000; i++) {
                int status;

                (void) snprintf(path, sizeof(path), "%s/bus", scratch_path);
                if (access(path, F_OK) == 0)
                        return true;
                if (waitpid(bus_daemon, &status, WNOHANG) == bus_daemon)
                        return false;
                usleep(10000);
        }
        return false;
}

static void bus_end(void) {
        char path[100];
        int status;

        (void) kill(bus_daemon, SIGKILL);
        (void) waitpid(bus_daemon, &status, 0);
        (void) snprintf(path, sizeof(path), "%s/bus", scratch_path);
        (void) unlink(path);
}

/* ---- what the handlers saw ---- */

static struct {
        unsigned connected, disconnected, begun, ended, changed, removed;
} seen;

static void on_connected(void *userdata) {
        seen.connected++;
}
static void on_disconnected(void *userdata) {
        seen.disconnected++;
}
static void on_changed(const UnitInfo *unit, void *userdata) {
        seen.changed++;
        assert_false(unit->loading);
        assert_non_null(unit_type_of(unit->id));
        assert_ptr_equal(units_get(units, unit->id), unit);
}
static void on_removed(const char *id, void *userdata) {
        seen.removed++;
        assert_null(units_get(units, id));
}
static void on_reloading(bool active, void *userdata) {
        if (active)
                seen.begun++;
        else
                seen.ended++;
}

static const UnitsHandlers handlers = {
        .connected = on_connected, .disconnected = on_disconnected, .changed = on_changed, .removed = on_removed, .reloading = on_reloading,
};

static double now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static void turn_for(double seconds) {
        for (double end = now() + seconds; now() < end;)
                assert_true(sd_event_run(event, 10 * USEC_PER_MSEC) >= 0);
}

#define WAIT_FOR(condition)                                                                    \
        do {                                                                                   \
                double _end = now() + 150;                                                     \
                while (!(condition)) {                                                         \
                        if (now() > _end)                                                      \
                                fail_msg("line %d: waited in vain: %s", __LINE__, #condition); \
                        assert_true(sd_event_run(event, 20 * USEC_PER_MSEC) >= 0);             \
                }                                                                              \
        } while (0)

static void begin(size_t n) {
        n_fakes = 0;
        n_lists = n_reloads = n_sets = 0;
        fake_answers_list = true;
        for (unsigned i = 0; i < n; i++)
                (void) fake_add("f%u.service", i);
        memset(&seen, 0, sizeof(seen));
        assert_int_equal(units_new(event, address, &handlers, NULL, &units), 0);
        WAIT_FOR(seen.connected == 1);
        assert_int_equal(seen.changed, n);
}

static int end(void **state) {
        units = units_free(units);
        return 0;
}

/* ---- tests ---- */

static void test_many(void **state) {
        double start = now();
        char name[64], cgroup[100];

        begin(1500);
        print_message("1500 units listed in %.2f s\n", now() - start);
        for (unsigned i = 0; i < 1500; i++) {
                const UnitInfo *info;

                (void) snprintf(name, sizeof(name), "f%u.service", i);
                (void) snprintf(cgroup, sizeof(cgroup), "/fake/f%u.service", i);
                info = units_get(units, name);
                assert_non_null(info);
                assert_ptr_equal(units_by_cgroup(units, cgroup), info);
                assert_true(info->delegate);
        }
        assert_int_equal(units->n_asked, 1500);
        assert_null(units_get(units, "a b.service"));
        assert_null(units_get(units, "gone.service"));
}

static void test_reload(void **state) {
        begin(300);
        fake_reloading(1);
        WAIT_FOR(seen.begun == 1);
        /* systemd forgets all its units and announces them again. */
        for (size_t i = 0; i < n_fakes; i++)
                fake_signal("UnitRemoved", fakes[i].name);
        for (size_t i = 0; i < n_fakes; i++)
                fake_signal("UnitNew", fakes[i].name);
        turn_for(0.3);
        assert_int_equal(units->n_asked, 300);
        fakes[7].quota = 500000;
        fake_reloading(0);
        WAIT_FOR(seen.ended == 1);
        assert_int_equal(units->n_asked, 600);
        assert_int_equal(seen.removed, 0);
        assert_int_equal(seen.changed, 301);
        assert_int_equal(units_get(units, "f7.service")->quota_per_sec_usec, 500000);

        /* One reload in the middle of the listing of another, and a unit that the second one no longer has. */
        fake_reloading(1);
        fake_reloading(0);
        turn_for(0.02);
        fake_reloading(1);
        n_fakes--;
        fake_reloading(0);
        WAIT_FOR(seen.removed == 1);
        WAIT_FOR(seen.begun == seen.ended && !units->listing);
        assert_null(units_get(units, "f299.service"));
        assert_int_equal(seen.connected, 1);
        assert_int_equal(units->n_listing, 0);
}

static void test_storms(void **state) {
        uint64_t asked;

        begin(10);
        asked = units->n_asked;
        /* Units that come and go at once are not asked about. */
        for (unsigned i = 0; i < 2000; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "storm%u.service", i);
                fake_signal("UnitNew", name);
                fake_signal("UnitRemoved", name);
                if (i % 50 == 0)
                        turn_for(0.001);
        }
        turn_for(0.5);
        assert_int_equal(units->n_asked, asked);
        assert_null(units_get(units, "storm5.service"));
        assert_int_equal(seen.removed, 0); /* they were never told of */

        /* A service that changes its status text all the time. */
        for (unsigned i = 0; i < 300; i++) {
                fake_changed(&fakes[3]);
                turn_for(0.01);
        }
        print_message("questions in 3 s of news: %" PRIu64 "\n", units->n_asked - asked);
        assert_true(units->n_asked - asked >= 1 && units->n_asked - asked <= 6);

        /* A change of state is asked about soon. */
        fakes[3].state = "inactive";
        fake_changed(&fakes[3]);
        WAIT_FOR(streq(units_get(units, "f3.service")->active_state, "inactive"));
        /* A unit that we hear of by its change. */
        (void) fake_add("late%u.service", 1);
        fake_changed(&fakes[10]);
        WAIT_FOR(units_get(units, "late1.service") && !units_get(units, "late1.service")->loading);
        fake_signal("UnitRemoved", "late1.service");
        WAIT_FOR(seen.removed == 1);
        fake_signal("UnitRemoved", "late1.service");
        fake_signal("UnitNew", "not a name");
        fake_signal("UnitNew", "some.timer");
        turn_for(0.2);
        assert_int_equal(seen.removed, 1);
}

static void test_answers(void **state) {
        uint64_t asked;

        begin(5);
        fake_add("wrong%u.service", 1)->mood = WRONG_TYPES;
        fake_add("broken%u.service", 1)->mood = BROKEN;
        fake_add("nosuch%u.service", 1)->mood = NO_SUCH_UNIT;
        fake_add("badid%u.service", 1)->mood = WRONG_ID;
        strcpy(fake_add("real%u.service", 1)->alias, "alias.service");
        for (size_t i = 5; i < n_fakes; i++)
                units_refresh(units, fakes[i].name);
        /* An alias that we did not know gives way to the unit behind it. */
        units_refresh(units, "alias.service");
        assert_true(units_get(units, "alias.service")->loading);
        WAIT_FOR(units_get(units, "alias.service") && streq(units_get(units, "alias.service")->id, "real1.service"));
        assert_ptr_equal(units_get(units, "real1.service"), units_get(units, "alias.service"));
        /* Of wrong types nothing is taken. */
        WAIT_FOR(!units_get(units, "wrong1.service")->loading);
        assert_string_equal(units_get(units, "wrong1.service")->cgroup, "");
        assert_true(units_get(units, "wrong1.service")->quota_per_sec_usec == USEC_INFINITY);
        assert_string_equal(units_get(units, "wrong1.service")->names[0], "wrong1.service");
        WAIT_FOR(!units_get(units, "nosuch1.service"));
        /* What fails is tried a few times and then let be. */
        turn_for(9);
        assert_true(units_get(units, "broken1.service")->loading);
        assert_true(units_get(units, "badid1.service")->loading);
        asked = units->n_asked;
        turn_for(3);
        assert_int_equal(units->n_asked, asked);
        assert_int_equal(seen.removed, 0);
        /* A unit that was good and is gone now. */
        fakes[2].mood = NO_SUCH_UNIT;
        units_refresh(units, "f2.service");
        WAIT_FOR(seen.removed == 1);
        assert_null(units_by_cgroup(units, "/fake/f2.service"));
}

static struct {
        unsigned n;
        int error;
        char message[100];
} done;

static void on_done(int error, const char *message, void *userdata) {
        done.n++;
        done.error = error;
        (void) snprintf(done.message, sizeof(done.message), "%s", message ? message : "");
}

static void test_calls(void **state) {
        begin(3);
        memset(&done, 0, sizeof(done));
        assert_int_equal(units_set_quota(units, "f1.service", 50000, 100000, on_done, NULL), 0);
        WAIT_FOR(done.n == 1);
        assert_int_equal(done.error, 0);
        assert_int_equal(units_reload(units, on_done, NULL), 0);
        WAIT_FOR(done.n == 2);
        assert_int_equal(done.error, -EIO);
        assert_string_equal(done.message, "Not \x1b[31m now");
        /* Without a callback, and with the Units gone before the answer. */
        assert_int_equal(units_set_weight(units, "f1.service", 100, NULL, NULL), 0);
        turn_for(0.1);
        assert_int_equal(n_sets, 2);
        for (unsigned i = 0; i < 10; i++)
                assert_int_equal(units_set_quota(units, "f1.service", 50000 + i * 1000, 0, on_done, NULL), 0);
        units = units_free(units);
        turn_for(0.1);
        assert_int_equal(done.n, 2);
}

static void test_losses(void **state) {
        begin(50);
        /* systemd leaves the bus and comes back with one unit less. */
        fake_disconnect();
        WAIT_FOR(seen.begun == 1);
        turn_for(0.3);
        n_fakes--;
        fake_connect();
        WAIT_FOR(seen.ended == 1);
        assert_int_equal(seen.removed, 1);
        assert_int_equal(seen.connected, 1);
        /* Its signals still count, those of its former name on the bus do not. */
        fake_signal("UnitRemoved", "f1.service");
        WAIT_FOR(seen.removed == 2);

        /* The bus dies with questions open. */
        memset(&done, 0, sizeof(done));
        for (size_t i = 0; i < n_fakes; i++)
                units_refresh(units, fakes[i].name);
        assert_int_equal(units_set_quota(units, "f3.service", 50000, 0, on_done, NULL), 0);
        fake_disconnect();
        bus_end();
        WAIT_FOR(seen.disconnected == 1);
        assert_int_equal(done.n, 1);
        assert_true(done.error < 0);
        assert_int_equal(units_set_quota(units, "f3.service", 50000, 0, on_done, NULL), -ENOTCONN);
        assert_false(units_are_connected(units));
        assert_non_null(units_get(units, "f3.service"));
        turn_for(1);
        assert_true(bus_begin());
        fake_connect();
        WAIT_FOR(seen.connected == 2);
        assert_int_equal(seen.begun, seen.ended);
        assert_non_null(units_get(units, "f1.service"));

        /* A systemd that refuses the list for a while. */
        fake_answers_list = false;
        fake_reloading(1);
        fake_reloading(0);
        turn_for(1);
        assert_true(n_lists >= 4 && n_lists < 12);
        assert_int_equal(seen.ended, seen.begun - 1);
        fake_answers_list = true;
        WAIT_FOR(seen.begun == seen.ended);
}

/* Freed at each moment of a listing. */
static void test_freed(void **state) {
        n_fakes = 0;
        fake_answers_list = true;
        for (unsigned i = 0; i < 20; i++)
                (void) fake_add("f%u.service", i);
        for (unsigned steps = 0; steps < 400; steps += steps < 60 ? 1 : 17) {
                assert_int_equal(units_new(event, address, &handlers, NULL, &units), 0);
                for (unsigned i = 0; i < steps; i++)
                        assert_true(sd_event_run(event, 1000) >= 0);
                units = units_free(units);
        }
}

static int group_begin(void **state) {
        close(scratch_open());
        if (sd_event_new(&event) < 0 || !bus_begin())
                return -1;
        fake_connect();
        return 0;
}

static int group_end(void **state) {
        fake_disconnect();
        bus_end();
        event = sd_event_unref(event);
        scratch_close(-1);
        return 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(test_many, end),
                cmocka_unit_test_teardown(test_reload, end),
                cmocka_unit_test_teardown(test_storms, end),
                cmocka_unit_test_teardown(test_answers, end),
                cmocka_unit_test_teardown(test_calls, end),
                cmocka_unit_test_teardown(test_losses, end),
                cmocka_unit_test_teardown(test_freed, end),
        };

        if (system("command -v dbus-daemon >/dev/null") != 0)
                return 77;
        return cmocka_run_group_tests(tests, group_begin, group_end);
}
