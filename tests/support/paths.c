/* paths.c: paths that the build sets (tests/meson.build). */
#include "tests/support/paths.h"

#include <stdio.h>

const char test_path_init[] = TEST_BUILD "/src/init/agentix-init";
const char test_path_unpack[] = TEST_BUILD "/src/image/agentix-unpack";
const char test_path_forward[] = TEST_BUILD "/src/forward/agentix-forward";
const char test_path_fakeworld[] = TEST_BUILD "/tests/fake/agentix-fakeworld";
const char test_path_stuck[] = TEST_BUILD "/tests/conformance/stuck";
const char test_path_init_prog[] = TEST_BUILD "/tests/integration/init_prog";
const char test_path_init_prog_glibc[] = TEST_BUILD "/tests/integration/init_prog_glibc";
#ifdef TEST_MUSL
const char test_path_init_prog_musl[] = TEST_BUILD "/tests/integration/init_prog_musl";
#else
const char test_path_init_prog_musl[] = "";
#endif

const char *test_path_recording(const char *name)
{
    static char path[4096];

    (void)snprintf(path, sizeof(path), TEST_SOURCE "/tests/recordings/%s", name);
    return path;
}
