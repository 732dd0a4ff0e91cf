/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The manager without its loop: open the ledger, restore, ask systemd to reload once. */

#include "daemon/restore-offline.h"

#include <systemd/sd-bus.h>

#include "daemon/manager-internal.h"

static bool all_records(const LedgerRecord *r, void *userdata) {
        return true;
}

int restore_offline(const ManagerConfig *config) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        RestoreResult result = { 0 };
        Manager *m = NULL;
        int r = sd_event_new(&event);

        if (r >= 0)
                r = manager_new(event, config, &m);
        if (r < 0) {
                fprintf(stderr, r == -EBUSY ? "cpuclassd runs: use cpuclassctl restore\n" : "cpuclassd --restore: %s\n", strerror(-r));
                return r == -EBUSY ? 3 : 1;
        }
        restore_records(m->ledger, &m->root, m->host.base_slice_nsec, all_records, NULL, &result);
        if (result.reload_due && !config->no_systemd) {
                _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
                _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

                r = sd_bus_open_system(&bus);
                if (r >= 0)
                        r = sd_bus_call_method(bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "Reload", &error, NULL, "");
                if (r < 0) {
                        fprintf(stderr, "systemd could not be asked to reload (%s): run systemctl daemon-reload\n", error.message ? error.message : strerror(-r));
                        result.n_failed++;
                }
        }
        printf("%zu values put back, %zu left as somebody else changed them since, %zu failed\n", result.n_restored, result.n_left, result.n_failed);
        (void) manager_free(m);
        return result.n_failed ? 1 : 0;
}
