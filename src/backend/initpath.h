/* initpath.h: where the programs are that backends start: agentix-init and its like. */
#ifndef AGX_BACKEND_INITPATH_H
#define AGX_BACKEND_INITPATH_H

#include "base/error.h"

/*
 * `name` is "agentix-init"; `named` what the configuration says; NULL or empty: it is looked for
 * beside the program that runs (`program`; NULL: this one), in ../lib/agentix from there, where it
 * is installed, and where the build puts it. The caller owns *ret_path, which is absolute and
 * without links. -AGX_FAILED_PRECONDITION with the places.
 */
int agx_initpath_find(const char *name, const char *named, const char *program, char **ret_path,
                      struct agx_error **err) AGX_MUST_CHECK;

#endif
