/* program_path.h: finds the programs that backends start, such as agentix-init. */
#ifndef AGX_BACKEND_PROGRAM_PATH_H
#define AGX_BACKEND_PROGRAM_PATH_H

#include "base/error.h"

/*
 * `name` is "agentix-init", `named` the configured path. If `named` is NULL or empty, the program
 * is looked for beside the running program (`program`; NULL: this one), in ../lib/agentix from
 * there, where it is installed, and where the build puts it. The caller owns *ret_path, which is
 * absolute and without symlinks. -AGX_FAILED_PRECONDITION lists the places.
 */
int agx_program_path_find(const char *name, const char *named, const char *program, char **ret_path,
                          struct agx_error **err) AGX_MUST_CHECK;

#endif
