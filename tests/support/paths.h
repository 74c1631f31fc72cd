/*
 * paths.h: the paths of this build's programs and of this tree's files. Only one file is compiled
 * with these paths, so that the compiler's cache serves all other files in every directory.
 */
#ifndef AGX_TESTS_PATHS_H
#define AGX_TESTS_PATHS_H

extern const char test_path_init[], test_path_unpack[], test_path_forward[], test_path_fakeworld[];
extern const char test_path_stuck[]; /* tests/support/stuck.c */

/* tests/integration/init_prog.c, linked in three ways; the last is empty without that compiler. */
extern const char test_path_init_prog[], test_path_init_prog_glibc[], test_path_init_prog_musl[];

/* A path below tests/recordings/; valid until the next call. */
const char *test_path_recording(const char *name);

#endif
