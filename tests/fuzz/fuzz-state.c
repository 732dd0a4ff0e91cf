/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Any bytes as the ledger, the assignments, or a document of the state directory. Whatever is on disk, opening ends well, what is read is sound, and the second
 * opening finds it undamaged and the same.
 *
 * The first byte chooses. For the two logs it also says whether the bytes are the file itself, or lines that get their checksums here: a fuzzer can't guess those. */

#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/assignments.h"
#include "daemon/ledger.h"
#include "tests/fuzz/fuzz.h"

#define BOOT "0123456789abcdef"

static int directory = -1;

static void put_file(const char *name, const void *data, size_t size) {
        int fd = openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        must(fd >= 0 && write(fd, data, size) == (ssize_t) size);
        (void) close(fd);
}

static uint32_t crc32_of(const uint8_t *p, size_t n) {
        uint32_t crc = UINT32_MAX;

        for (; n > 0; n--, p++) {
                crc ^= *p;
                for (unsigned k = 0; k < 8; k++)
                        crc = crc & 1 ? crc >> 1 ^ UINT32_C(0xedb88320) : crc >> 1;
        }
        return ~crc;
}

static void put_lines(const char *name, const uint8_t *data, size_t size) {
        char *file = NULL;
        size_t length = 0;
        FILE *f = open_memstream(&file, &length);

        must(f);
        fputs("cpuclass-log 1\n", f);
        while (size > 0) {
                const uint8_t *end = memchr(data, '\n', size);
                size_t n = end ? (size_t) (end - data) : size;

                fprintf(f, "%08x ", crc32_of(data, n));
                fwrite(data, 1, n, f);
                fputc('\n', f);
                data += n + (end != NULL);
                size -= n + (end != NULL);
        }
        must(fclose(f) == 0);
        put_file(name, file, length);
        free(file);
}

static int drop_one(const LedgerRecord *r, void *userdata) {
        must(ledger_find(userdata, r->kind, r->key, r->inode, r->tid, r->start_ticks) == r);
        must(r->key || r->tid > 0);
        return 0;
}

static void try_ledger(void) {
        const LedgerRecord one = { .kind = LEDGER_THREAD_SLICE, .key = (char *) "/fuzz", .tid = 4242, .start_ticks = 4242 };
        size_t stale, damaged, n;
        Ledger *l = NULL;

        must(ledger_open(directory, BOOT, &stale, &damaged, &l) == 0);
        n = ledger_count(l, _LEDGER_KIND_MAX);
        must(ledger_for_each(l, _LEDGER_KIND_MAX, drop_one, l) == 0);
        must(ledger_put(l, &one, 1) == 0);
        must(ledger_drop(l, &one) == 0);
        must(ledger_count(l, _LEDGER_KIND_MAX) <= n);
        n = ledger_count(l, _LEDGER_KIND_MAX);
        ledger_close(l);

        must(ledger_open(directory, BOOT, &stale, &damaged, &l) == 0);
        must(stale == 0 && damaged == 0 && ledger_count(l, _LEDGER_KIND_MAX) == n);
        ledger_close(l);
}

static void try_assignments(void) {
        const Assignment one = { .kind = TARGET_UNIT, .target = (char *) "fuzz.service", .class_name = (char *) "batch", .owner = (char *) "fuzz-only" };
        Assignments *a = NULL;
        uint64_t revision;
        bool damaged;
        size_t n;

        must(assignments_open(directory, &damaged, &a) == 0);
        n = assignments_count(a);
        for (size_t i = 0; i < n; i++) {
                const Assignment *x = assignments_at(a, i);
                DiagList list = { 0 };
                json_t *j;

                must(assignments_get(a, x->kind, x->target) == x);
                must(target_is_valid(x->kind, x->target, "", &list));
                must(owner_is_valid(x->owner) && policy_name_is_valid(x->class_name));
                j = assignment_to_json(x);
                must(j);
                json_decref(j);
        }
        must(assignments_put(a, &one, true, NULL) == 0);
        must(assignments_delete(a, one.kind, one.target) == 0);
        n = assignments_count(a);
        revision = assignments_revision(a);
        assignments_close(a);

        must(assignments_open(directory, &damaged, &a) == 0);
        must(!damaged && assignments_count(a) == n && assignments_revision(a) == revision);
        assignments_close(a);
}

static void try_document(void) {
        char error[200];
        json_t *j = NULL;
        int r;

        error[0] = 0;
        r = state_read_json(directory, "document", 1 << 20, &j, error, sizeof(error));
        must(r == 0 || r == -EBADMSG);
        if (r < 0) {
                must(error[0]);
                for (const char *p = error; *p; p++)
                        must(*p >= 0x20 && *p < 0x7f);
                return;
        }
        must(state_write_json(directory, "document", j) == 0);
        json_decref(j);
        must(state_read_json(directory, "document", SIZE_MAX, &j, NULL, 0) == 0);
        json_decref(j);
}

static char scratch[] = "/dev/shm/cpuclass-fuzz-XXXXXX";

static void clean_up(void) {
        static const char *const names[] = { "ledger", "assignments", "document" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                (void) unlinkat(directory, names[i], 0);
                for (unsigned k = 1; k <= 9; k++) {
                        char name[40];

                        (void) snprintf(name, sizeof(name), "%s.damaged-%u", names[i], k);
                        if (unlinkat(directory, name, 0) < 0)
                                break;
                }
        }
}

static void remove_scratch(void) {
        clean_up();
        (void) rmdir(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char *const names[] = { "ledger", "assignments" };
        unsigned what;

        if (directory < 0) {
                must(mkdtemp(scratch));
                directory = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                must(directory >= 0);
                (void) atexit(remove_scratch);
        }
        if (size < 1)
                return 0;
        what = data[0] % 5;
        data++;
        size--;
        if (what == 4) {
                put_file("document", data, size);
                try_document();
        } else {
                if (what < 2)
                        put_lines(names[what], data, size);
                else
                        put_file(names[what - 2], data, size);
                if (what % 2 == 0)
                        try_ledger();
                else
                        try_assignments();
        }
        clean_up();
        return 0;
}
