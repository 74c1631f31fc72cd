/*
 * fuzz.h: what every fuzz target includes. A broken property calls FUZZ_CHECK, which aborts: to
 * libFuzzer, and to the corpus run, that is a finding.
 */
#ifndef AGX_TESTS_FUZZ_H
#define AGX_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(e)                                                                              \
    do {                                                                                           \
        if (!(e)) {                                                                                \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #e);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
