/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a fuzz target once on each file of the directories that the arguments name: the corpus as a test, without a fuzzer. */

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "policies/util.h"
#include "tests/fuzz/fuzz.h"

static bool run_file(const char *path) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        _cleanup_free_ uint8_t *data = NULL;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        /* Exactly as large as the input, so that a sanitizer sees a read beyond it. */
        data = malloc((size_t) st.st_size);
        if ((!data && st.st_size > 0) || read(fd, data, (size_t) st.st_size) != st.st_size)
                return false;
        (void) LLVMFuzzerTestOneInput(data, (size_t) st.st_size);
        return true;
}

int main(int argc, char **argv) {
        size_t n = 0;

        for (int i = 1; i < argc; i++) {
                DIR *d = opendir(argv[i]);

                if (!d) {
                        (void) fprintf(stderr, "%s: %m\n", argv[i]);
                        return EXIT_FAILURE;
                }
                for (struct dirent *e; (e = readdir(d));) {
                        _cleanup_free_ char *path = NULL;

                        if (e->d_name[0] != '.' && asprintf(&path, "%s/%s", argv[i], e->d_name) > 0 && run_file(path))
                                n++;
                }
                (void) closedir(d);
        }
        (void) printf("%zu inputs\n", n);
        return n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
