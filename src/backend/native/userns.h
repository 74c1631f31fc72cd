/*
 * userns.h: whether this host lets an ordinary user have user namespaces, and if not, which setting
 * forbids it.
 */
#ifndef AGX_BACKEND_NATIVE_USERNS_H
#define AGX_BACKEND_NATIVE_USERNS_H

#include "base/error.h"
#include "base/str.h"

#include <limits.h>
#include <stdint.h>

/* What was found. A setting that the kernel does not have forbids nothing. */
struct agx_userns_facts {
    bool none_allowed;    /* user.max_user_namespaces is 0 */
    bool clone_forbidden; /* kernel.unprivileged_userns_clone is 0 (Debian's, of old) */
    bool apparmor;        /* kernel.apparmor_restrict_unprivileged_userns is 1 (Ubuntu's) */
    bool proc_hidden;     /* something is mounted over parts of /proc */
    char newuidmap[PATH_MAX], newgidmap[PATH_MAX]; /* programs; "": missing */
};

/* Looks below `root`, which is "" for the host itself. */
void agx_userns_look(const char *root, struct agx_userns_facts *ret);

/* A program, where packages put it; "": it is missing. PATH is the caller's to change. */
void agx_userns_find(const char *root, const char *name, char ret[PATH_MAX]);

/*
 * -AGX_FAILED_PRECONDITION with the setting and what helps. `tried`: a namespace was made, and did
 * not do: then what forbids only some programs counts too. 0: nothing is known against it.
 */
int agx_userns_check(const struct agx_userns_facts *f, bool tried,
                     struct agx_error **err) AGX_MUST_CHECK;

/* Ids that are set apart for a user in the text of /etc/subuid or /etc/subgid. */
struct agx_subids {
    uint32_t first, n;
};

/* The first range of at least AGX_IDMAP_IDS, of lines with the user's name or number.
 * -AGX_FAILED_PRECONDITION with the command that adds one; `groups`: it is about /etc/subgid. */
int agx_subids_find(struct agx_str text, const char *user, uint32_t uid, bool groups,
                    struct agx_subids *ret, struct agx_error **err) AGX_MUST_CHECK;

#endif
