/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Build-time helper: prints a file as a C array, so that the daemon can serve it without having to find it.
 * embed NAME FILE > OUT.c gives "const char NAME[]" and "const size_t NAME_size". */

#include <stdio.h>

int main(int argc, char *argv[]) {
        FILE *f;
        int c;
        unsigned long n = 0;

        if (argc != 3) {
                fprintf(stderr, "usage: %s NAME FILE\n", argv[0]);
                return 2;
        }
        f = fopen(argv[2], "rb");
        if (!f) {
                perror(argv[2]);
                return 1;
        }
        printf("#include <stddef.h>\nextern const char %s[];\nextern const size_t %s_size;\nconst char %s[] = {", argv[1], argv[1], argv[1]);
        while ((c = getc(f)) != EOF)
                printf("%s%d,", n++ % 24 == 0 ? "\n" : "", (int) (signed char) c);
        printf("0};\nconst size_t %s_size = %lu;\n", argv[1], n);
        if (ferror(f) || fflush(stdout) != 0) {
                perror(argv[2]);
                return 1;
        }
        (void) fclose(f);
        return 0;
}
