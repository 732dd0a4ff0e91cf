/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two ways out: the journal with fields, or a readable line on stderr when a person runs the daemon by hand. */

#include "daemon/log.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>

#define FIELDS_MAX 24

static int max_priority = LOG_INFO;

/* $JOURNAL_STREAM names the device and inode of the journal's stream (systemd.exec(5)); it is inherited by processes whose stderr is something else. */
static bool stderr_is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

        return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 && st.st_dev == (dev_t) device &&
               st.st_ino == (ino_t) inode;
}

static bool to_stderr(void) {
        static int cached = -1;

        if (cached < 0) {
                const char *e = getenv("CPUCLASS_LOG");

                cached = e ? streq(e, "stderr") : !stderr_is_journal();
        }
        return cached;
}

void log_set_max_priority(int priority) {
        max_priority = priority;
}

static void print_escaped(const char *message) {
        for (const unsigned char *p = (const unsigned char *) message; *p; p++)
                if (*p < 0x20 || *p == 0x7f)
                        fprintf(stderr, "\\x%02x", *p);
                else
                        fputc(*p, stderr);
        fputc('\n', stderr);
}

void log_line(int priority, const char *format, ...) {
        char message[2048];
        va_list ap;

        if (priority > max_priority)
                return;
        va_start(ap, format);
        (void) vsnprintf(message, sizeof(message), format, ap);
        va_end(ap);
        if (to_stderr())
                print_escaped(message);
        else
                (void) sd_journal_send("MESSAGE=%s", message, "PRIORITY=%i", priority, NULL);
}

static bool add_field(struct iovec *iov, size_t *n, const char *name, const char *value) {
        char *field = NULL;
        int r = asprintf(&field, "%s=%s", name, value);

        if (r < 0)
                return false;
        iov[(*n)++] = (struct iovec) { .iov_base = field, .iov_len = (size_t) r };
        return true;
}

void log_fields(int priority, sd_id128_t message_id, const char *message, ...) {
        struct iovec iov[FIELDS_MAX + 3];
        char id[SD_ID128_STRING_MAX], prio[12];
        size_t n = 0;
        va_list ap;

        if (priority > max_priority)
                return;
        if (to_stderr()) {
                print_escaped(message);
                return;
        }
        (void) snprintf(prio, sizeof(prio), "%d", priority);
        (void) add_field(iov, &n, "MESSAGE", message);
        (void) add_field(iov, &n, "PRIORITY", prio);
        (void) add_field(iov, &n, "MESSAGE_ID", sd_id128_to_string(message_id, id));
        va_start(ap, message);
        for (const char *name = va_arg(ap, const char *); name && n < ELEMENTSOF(iov); name = va_arg(ap, const char *)) {
                const char *value = va_arg(ap, const char *);

                if (value)
                        (void) add_field(iov, &n, name, value);
        }
        va_end(ap);
        (void) sd_journal_sendv(iov, (int) n);
        for (size_t i = 0; i < n; i++)
                free(iov[i].iov_base);
}
