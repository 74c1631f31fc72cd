/*
 * fnlib.h: the functions of shared objects, found by "c:<library>::<function>".
 *
 * A library is a plain name, never a path: NAME.so or libNAME.so in one of the directories that the
 * administrator named. It is loaded at the first call and stays: code of it may run or be pointed
 * to from anywhere.
 *
 * Thread-safe. Loading runs the constructors of the library, so a look-up may take as long as user
 * code likes: never on the thread that reads frames.
 */
#ifndef AGX_WORKER_FNLIB_H
#define AGX_WORKER_FNLIB_H

#include "base/error.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/str.h"

#include <agentix/function.h>

struct agx_fncall;

/* A function that is ready to be called: its parameters are taken apart. */
struct agx_fn {
    const struct agx_function *def; /* in the shared object */
    bool any_args;                  /* it declared no parameters */
    unsigned n_params;
    struct agx_str params[AGX_FN_PARAMS_MAX]; /* names: views of def->params */
    bool optional[AGX_FN_PARAMS_MAX];
    /* AGX_FUNCTION_SERIAL: under the lock of the pool, which alone uses them. */
    bool busy;
    struct agx_list waiting; /* of struct agx_fncall */
};

/* Checks and takes apart a definition. -AGX_FAILED_PRECONDITION says what is wrong with it. */
int agx_fn_prepare(struct agx_fn *fn, const struct agx_function *def,
                   struct agx_error **err) AGX_MUST_CHECK;

struct agx_fnlib;

/* `path` is a list of directories with ':' between them; empty ones do not count. */
struct agx_fnlib *agx_fnlib_new(struct agx_str path);
/* No call of a function may be running. Libraries stay loaded. */
struct agx_fnlib *agx_fnlib_free(struct agx_fnlib *l);

/* True for targets that are ours: those that begin with "c:". */
static inline bool agx_fnlib_is_target(struct agx_str target)
{
    return agx_str_starts(target, AGX_STR("c:"));
}

/*
 * *ret_fn lives as long as `l`.
 * -AGX_INVALID_ARGUMENT: no such form of a target; -AGX_NOT_FOUND: no such library or function,
 * with the places that were searched; -AGX_FAILED_PRECONDITION: the library cannot be loaded.
 */
int agx_fnlib_find(struct agx_fnlib *l, struct agx_str target, struct agx_fn **ret_fn,
                   struct agx_error **err) AGX_MUST_CHECK;

#endif
