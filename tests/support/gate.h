/*
 * gate.h: makes a command wait in the middle until the test opens the gate:
 *
 *     test_gate_shut(&gate);
 *     snprintf(line, sizeof(line), "echo one; %s echo two", gate.wait);
 *     ... sh -c line ...
 *     test_gate_open(&gate);
 */
#ifndef AGX_TESTS_GATE_H
#define AGX_TESTS_GATE_H

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct test_gate {
    char dir[24];   /* exists while the gate is shut */
    char wait[128]; /* shell code that waits; it ends, in case the test failed */
};

static inline void test_gate_shut(struct test_gate *g)
{
    (void)snprintf(g->dir, sizeof(g->dir), "/tmp/agx-gate-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(g->dir));
    (void)snprintf(g->wait, sizeof(g->wait),
                   "n=0; while [ -d %s ] && [ $n -lt 5000 ]; do n=$((n+1)); sleep 0.02; done;",
                   g->dir);
}

static inline void test_gate_open(const struct test_gate *g)
{
    ASSERT_INT(0, rmdir(g->dir));
}

#endif
