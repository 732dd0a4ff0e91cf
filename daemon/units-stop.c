/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why are we being stopped? A stop puts everything back, a restart and a shutdown leave everything as it is. systemd knows: the job of our own unit, and
 * whether the host goes down. We are ending, so this is the one place that waits, and not for long. */

#include "daemon/units-internal.h"

#include <time.h>

#define ANSWER_USEC (700 * USEC_PER_MSEC)
/* systemd's own socket for root: there when the bus is gone already, at shutdown. */
#define PRIVATE_ADDRESS "unix:path=/run/systemd/private"
#define BUS_ADDRESS "unix:path=/run/dbus/system_bus_socket"

static void bus_close_pointer(sd_bus **bus) {
        *bus = sd_bus_close_unref(*bus);
}

static void message_unref_pointer(sd_bus_message **m) {
        *m = sd_bus_message_unref(*m);
}

static int connect_to(const char *address, bool is_bus, sd_bus **ret) {
        _cleanup_(bus_close_pointer) sd_bus *bus = NULL;
        int r;

        r = sd_bus_new(&bus);
        if (r >= 0)
                r = sd_bus_set_address(bus, address);
        if (r >= 0)
                r = sd_bus_set_bus_client(bus, is_bus);
        if (r >= 0)
                r = sd_bus_set_method_call_timeout(bus, ANSWER_USEC);
        if (r >= 0)
                r = sd_bus_start(bus);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(bus);
        return 0;
}

/* New reference in *ret; the error of the bus becomes a negative errno. */
static int call(sd_bus *bus, bool is_bus, const char *path, const char *interface, const char *member, sd_bus_message **ret, const char *types, ...) {
        _cleanup_(message_unref_pointer) sd_bus_message *m = NULL;
        sd_bus_error error = SD_BUS_ERROR_NULL;
        va_list ap;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, is_bus ? SYSTEMD_SERVICE : NULL, path, interface, member);
        if (r >= 0) {
                va_start(ap, types);
                r = sd_bus_message_appendv(m, types, ap);
                va_end(ap);
        }
        if (r >= 0) {
                r = sd_bus_call(bus, m, ANSWER_USEC, &error, ret);
                if (r < 0 && error.name)
                        r = bus_error_to_errno(&error);
        }
        sd_bus_error_free(&error);
        return r;
}

/* A string property; the string lives in *ret_message. */
static int get_string(sd_bus *bus, bool is_bus, const char *path, const char *interface, const char *property, sd_bus_message **ret_message, const char **ret) {
        int r;

        r = call(bus, is_bus, path, "org.freedesktop.DBus.Properties", "Get", ret_message, "ss", interface, property);
        return r < 0 ? r : sd_bus_message_read(*ret_message, "v", "s", ret);
}

static int ask_state(sd_bus *bus, bool is_bus, StopReason *ret) {
        _cleanup_(message_unref_pointer) sd_bus_message *m = NULL;
        const char *state;
        int r;

        r = get_string(bus, is_bus, SYSTEMD_PATH, SYSTEMD_MANAGER, "SystemState", &m, &state);
        if (r < 0)
                return r;
        if (streq(state, "stopping"))
                *ret = STOP_REASON_SHUTDOWN;
        return 0;
}

static int ask_job(sd_bus *bus, bool is_bus, const char *unit, StopReason *ret) {
        _cleanup_(message_unref_pointer) sd_bus_message *where = NULL, *job = NULL, *type_message = NULL;
        const char *path, *job_path, *type;
        uint32_t job_id;
        int r;

        r = unit ? call(bus, is_bus, SYSTEMD_PATH, SYSTEMD_MANAGER, "GetUnit", &where, "s", unit)
                 : call(bus, is_bus, SYSTEMD_PATH, SYSTEMD_MANAGER, "GetUnitByPID", &where, "u", (uint32_t) getpid());
        if (r >= 0)
                r = sd_bus_message_read(where, "o", &path);
        if (r >= 0)
                r = call(bus, is_bus, path, "org.freedesktop.DBus.Properties", "Get", &job, "ss", SYSTEMD_UNIT, "Job");
        if (r >= 0)
                r = sd_bus_message_read(job, "v", "(uo)", &job_id, &job_path);
        if (r < 0)
                return r;
        if (job_id == 0)
                return 0; /* no job: a signal from somewhere, a watchdog */
        r = get_string(bus, is_bus, job_path, SYSTEMD_SERVICE ".Job", "JobType", &type_message, &type);
        if (r < 0)
                return r;
        if (streq(type, "stop"))
                *ret = STOP_REASON_STOP;
        /* A restart is a stop whose job already says what comes after it. */
        else if (streq(type, "restart") || streq(type, "try-restart") || streq(type, "reload-or-start") || streq(type, "start"))
                *ret = STOP_REASON_RESTART;
        return 0;
}

static int ask(const char *address, bool is_bus, const char *unit, StopReason *ret) {
        _cleanup_(bus_close_pointer) sd_bus *bus = NULL;
        StopReason reason = STOP_REASON_UNKNOWN;
        int r;

        r = connect_to(address, is_bus, &bus);
        if (r >= 0)
                r = ask_state(bus, is_bus, &reason);
        if (r >= 0 && reason == STOP_REASON_UNKNOWN)
                r = ask_job(bus, is_bus, unit, &reason);
        if (r >= 0)
                *ret = reason;
        return r;
}

int units_stop_reason(const char *unit, StopReason *ret) {
        const char *address = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");
        int r;

        /* The private socket first: it answers while the bus restarts or is gone, and it does not start the bus. */
        r = ask(PRIVATE_ADDRESS, false, unit, ret);
        if (r < 0)
                r = ask(address ?: BUS_ADDRESS, true, unit, ret);
        return r < 0 ? r : 0;
}
