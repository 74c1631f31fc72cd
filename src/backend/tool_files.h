/*
 * tool_files.h: private copies of files of the host: logins that a builtin tool needs, and settings
 * that were named.
 *
 *     agx_tool_files_take(&files, home, ".codex/auth.json", err);      blocks: for a pool thread
 *     agx_tool_files_find_owner(user, passwd, home_env, &owner);       whose they will be
 *     agx_tool_files_tar(&files, &owner, binds, &tar, err);            as a tar for the sandbox's
 * root
 *
 * A copy is taken when the sandbox is made, belongs to the sandbox's user (0600), and goes with the
 * sandbox: nothing that is done to it reaches the host's file, which counts at the next create.
 *
 * Sandboxes may have had directories of the home as writable mounts, so no symlink beneath it is
 * followed, and what is no regular file is not opened. Contents are secrets: never in a message,
 * and our memory is wiped of them.
 */
#ifndef AGX_BACKEND_TOOL_FILES_H
#define AGX_BACKEND_TOOL_FILES_H

#include "backend/binds.h"
#include "base/buf.h"

#include <time.h>

struct agx_tool_file {
    char *path; /* beneath the home, there and here */
    struct timespec mtime;
    struct agx_buf bytes;
};

struct agx_tool_files {
    struct agx_tool_file *items;
    size_t len;
};

/* 1: it was read; 0: there is none. -AGX_FAILED_PRECONDITION with the path for what is no regular
 * file, is reached by a symlink, or is larger than AGX_TOOL_FILE_MAX. */
int agx_tool_files_take(struct agx_tool_files *f, const char *home, const char *path,
                        struct agx_error **err) AGX_MUST_CHECK;
/* Empties it. Accepts NULL. */
void agx_tool_files_done(struct agx_tool_files *f);

struct agx_tool_owner {
    uint32_t uid, gid;
    struct agx_str home; /* absolute */
};

/*
 * The image's user ("node", "1000:1000") by its passwd; a group that is a name counts as none.
 * `home_env` is the HOME that his processes have; NULL: that of passwd. What is returned borrows
 * from both. -AGX_FAILED_PRECONDITION: there is no such user, or his home is no path.
 */
int agx_tool_files_find_owner(const char *user, struct agx_str passwd, const char *home_env,
                              struct agx_tool_owner *ret, struct agx_error **err) AGX_MUST_CHECK;

/* The HOME of a sandbox's processes, by its spec or its image's variables; NULL: that of their
 * user. Borrowed. */
const char *agx_tool_files_home_env(const struct agx_spec *spec, const struct agx_words *image_env);

/*
 * Appends a tar for the root directory: the files, and the directories between them and the home,
 * which are the user's alone (0700). -AGX_INVALID_ARGUMENT when one of them is, or is in, a mount
 * of the host: nothing is ever written there.
 */
int agx_tool_files_tar(const struct agx_tool_files *f, const struct agx_tool_owner *owner,
                       const struct agx_binds *binds, struct agx_buf *out,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Wipes and frees. */
void agx_tool_files_wipe(struct agx_buf *b);

#endif
