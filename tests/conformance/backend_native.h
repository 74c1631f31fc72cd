/* backend_native.h: the world of the native backend's tests. */
#ifndef AGX_TESTS_CONFORMANCE_BACKEND_NATIVE_H
#define AGX_TESTS_CONFORMANCE_BACKEND_NATIVE_H

#include "image/images.h"
#include "tests/conformance/backend_stage.h"

/* A directory of the test's, on the file system that sandboxes are on. */
const char *native_world_dir(void);

/* Those of the backend that is open. */
struct agx_images *native_world_images(void);

/* PID 1 of a part, by the record: 0 is the primary. */
pid_t native_world_pid(const char *sandbox_id, size_t part);

/* The forwarder of its ports, by the record. */
pid_t native_world_forwarder(const char *sandbox_id);

/* No sandbox has a directory or a control group. */
void native_world_is_empty(void);

/* The host is booted: what ran is gone, and a new backend finds only files. */
void native_world_boot(struct stage *s);

/* A line for a shell. */
static inline void command(struct agx_words *w, const char *script)
{
    ASSERT_OK(agx_words_add(w, AGX_STR("sh"), NULL));
    ASSERT_OK(agx_words_add(w, AGX_STR("-c"), NULL));
    ASSERT_OK(agx_words_add(w, agx_str_from(script), NULL));
}

#endif
