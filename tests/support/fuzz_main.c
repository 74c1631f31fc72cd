/*
 * fuzz_main.c: runs a fuzz target over files and directories without libFuzzer, so that the
 * committed corpus is an ordinary test with any compiler.
 */
#include "tests/support/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    struct stat st;

    if (!f || fstat(fileno(f), &st) < 0 || !(data = malloc((size_t)st.st_size + 1)) ||
        fread(data, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
        perror(path);
        exit(1);
    }
    fclose(f);
    (void)LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
    free(data);
    return 1;
}

static int run_path(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    int n = 0;

    if (!d)
        return run_file(path);
    while ((e = readdir(d))) {
        char *child = NULL;

        if (e->d_name[0] == '.')
            continue;
        if (asprintf(&child, "%s/%s", path, e->d_name) < 0)
            exit(1);
        n += run_path(child);
        free(child);
    }
    closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;

    for (int i = 1; i < argc; i++)
        n += run_path(argv[i]);
    printf("%s 1 - %d corpus files\n1..1\n", n > 0 ? "ok" : "not ok", n);
    return n > 0 ? 0 : 1;
}
