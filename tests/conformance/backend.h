/* backend.h: the functions that each kind of backend provides to the conformance suite. */
#ifndef AGX_TESTS_CONFORMANCE_BACKEND_H
#define AGX_TESTS_CONFORMANCE_BACKEND_H

#include "backend/backend.h"
#include "tests/support/loop.h"

/* A world without sandboxes for one test, and its end. Sandboxes of other tests may be seen. */
void conformance_backend_begin(void);
void conformance_backend_remove(void);

/* A backend on the world of the test; more than one may be open, one after the other. */
struct agx_backend *conformance_backend_open(struct agx_loop *l);
/* It is closed: what was opened for it goes too. */
void conformance_backend_closed(struct agx_loop *l);

/* An image that this kind can run. */
const char *conformance_backend_image(void);

/* How many sandboxes "many" are. */
unsigned conformance_backend_many(void);

enum conformance_command {
    COMMAND_TRUE,
    COMMAND_EXIT_3,
    COMMAND_NO_FILE,        /* 127 */
    COMMAND_NOT_EXECUTABLE, /* 126 */
    COMMAND_HELLO,          /* "hello\n" on stdout */
    COMMAND_COMPLAIN,       /* something on stderr only */
    COMMAND_CAT,
    COMMAND_SLEEP,    /* longer than any test */
    COMMAND_STUBBORN, /* the same, and ignores TERM as soon as it has said something */
    COMMAND_FORKER,   /* its leader ends, another of its group does not */
    COMMAND_PRINT,    /* 100,000 bytes on stdout */
    COMMAND_LATER,    /* ends with 7 after 600 ms or so */
    COMMAND_PWD,
    COMMAND_VARIABLE, /* prints the variable AGX_TEST of its environment */
};

/* Appends the words of it. */
void conformance_backend_command(enum conformance_command c, struct agx_words *ret);

/* What was made to hang may end now. */
void conformance_backend_release(void);

/* What happens to a sandbox from outside. Each is false when this kind cannot do it; the test is
 * skipped then. */
bool conformance_backend_kills_main(const char *sandbox_id);
bool conformance_backend_removes(const char *sandbox_id);
/* The next operation of that verb on it takes for ever. `stubborn`: also when it is cancelled. */
bool conformance_backend_hangs(const char *sandbox_id, enum agx_do verb, bool stubborn);
/* The next operation of that verb on it fails. */
bool conformance_backend_fails(const char *sandbox_id, enum agx_do verb);
/* Something that is not ours, as close to a sandbox of that id as this kind has it; later, that it
 * is as it was. */
bool conformance_backend_makes_foreign(const char *sandbox_id);
void conformance_backend_checks_foreign(const char *sandbox_id);

#endif
