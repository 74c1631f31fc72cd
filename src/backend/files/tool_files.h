/*
 * tool_files.h: private copies of host files: logins that a builtin tool needs, and settings that
 * were named.
 *
 *     agx_tool_files_take(&files, home, ".codex/auth.json", err);      blocks: for a pool thread
 *     agx_tool_files_find_owner(user, passwd, home_env, &owner);       who shall own them
 *     agx_tool_files_tar(&files, &owner, binds, &tar, err);            a tar for the sandbox's root
 *
 * A copy is made when the sandbox is created, belongs to the sandbox's user (0600) and is deleted
 * with the sandbox. Changes to it never reach the host's file, which is read again at the next
 * create.
 *
 * Sandboxes may have had directories of the home as writable mounts, so no symlink beneath it is
 * followed, and only regular files are opened. Contents are secrets: they never appear in a
 * message, and our memory is wiped of them.
 */
#ifndef AGX_BACKEND_FILES_TOOL_FILES_H
#define AGX_BACKEND_FILES_TOOL_FILES_H

#include "backend/files/binds.h"
#include "base/buf.h"

#include <time.h>

struct agx_tool_file {
    char *path; /* beneath the home, on the host and in the sandbox */
    struct timespec mtime;
    struct agx_buf bytes;
};

struct agx_tool_files {
    struct agx_tool_file *items;
    size_t len;
};

/* 1: it was read; 0: it does not exist. -AGX_FAILED_PRECONDITION with the path for anything but a
 * regular file, for one reached by a symlink, or larger than AGX_TOOL_FILE_MAX. */
int agx_tool_files_take(struct agx_tool_files *f, const char *home, const char *path,
                        struct agx_error **err) AGX_MUST_CHECK;
/* Empties it. Accepts NULL. */
void agx_tool_files_done(struct agx_tool_files *f);

struct agx_tool_owner {
    uint32_t uid, gid;
    struct agx_str home; /* absolute */
};

/*
 * Looks up the image's user ("node", "1000:1000") in its passwd; a group name is ignored.
 * `home_env` is the HOME of the user's processes; NULL: that of passwd. The result borrows from
 * both. -AGX_FAILED_PRECONDITION: no such user, or the home is not a path.
 */
int agx_tool_files_find_owner(const char *user, struct agx_str passwd, const char *home_env,
                              struct agx_tool_owner *ret, struct agx_error **err) AGX_MUST_CHECK;

/* The HOME of a sandbox's processes, from its spec or its image's variables; NULL: that of their
 * user. Borrowed. */
const char *agx_tool_files_home_env(const struct agx_spec *spec, const struct agx_words *image_env);

/*
 * Appends a tar for the root directory: the files, and the directories between them and the home,
 * which only the user may enter (0700). -AGX_INVALID_ARGUMENT when one of them is, or is in, a
 * mount of the host: nothing is ever written there.
 */
int agx_tool_files_tar(const struct agx_tool_files *f, const struct agx_tool_owner *owner,
                       const struct agx_binds *binds, struct agx_buf *out,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Wipes and frees. */
void agx_tool_files_wipe(struct agx_buf *b);

#endif
