/*
 * userns.h: whether this host allows an ordinary user to have user namespaces, and if not, which
 * setting forbids it.
 */
#ifndef AGX_BACKEND_NATIVE_NET_USERNS_H
#define AGX_BACKEND_NATIVE_NET_USERNS_H

#include "base/error.h"
#include "base/str.h"

#include <limits.h>
#include <stdint.h>

/* A setting that the kernel does not have forbids nothing. */
struct agx_userns_facts {
    bool none_allowed;    /* user.max_user_namespaces is 0 */
    bool clone_forbidden; /* kernel.unprivileged_userns_clone is 0 (old Debian) */
    bool apparmor;        /* kernel.apparmor_restrict_unprivileged_userns is 1 (Ubuntu's) */
    bool proc_hidden;     /* something is mounted over parts of /proc */
    char newuidmap[PATH_MAX], newgidmap[PATH_MAX]; /* programs; "": missing */
};

/* Reads below `root`, which is "" for the host itself. */
void agx_userns_look(const char *root, struct agx_userns_facts *ret);

/* Finds a program where packages install it; "": missing. PATH is not used: the caller may have
 * changed it. */
void agx_userns_find(const char *root, const char *name, char ret[PATH_MAX]);

/*
 * -AGX_FAILED_PRECONDITION with the setting and what helps. `tried`: making a namespace was tried
 * and failed: then settings that forbid only some programs count too. 0: nothing forbids it.
 */
int agx_userns_check(const struct agx_userns_facts *f, bool tried,
                     struct agx_error **err) AGX_MUST_CHECK;

/* A range for a user from the text of /etc/subuid or /etc/subgid. */
struct agx_subids {
    uint32_t first, n;
};

/* The first range of at least AGX_IDMAP_IDS in lines with the user's name or number.
 * -AGX_FAILED_PRECONDITION with the command that adds one; `groups`: it is about /etc/subgid. */
int agx_subids_find(struct agx_str text, const char *user, uint32_t uid, bool groups,
                    struct agx_subids *ret, struct agx_error **err) AGX_MUST_CHECK;

#endif
