/*
 * fuzz.h: included by every fuzz target. FUZZ_CHECK aborts if a property does not hold, which is a
 * finding for libFuzzer and for the corpus run.
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
