/* caps.c: the list, and why each is on it. */
#include "backend/native/limits/caps.h"

#include <linux/capability.h>

#include "base/banned.h"

#define BIT(cap) (UINT64_C(1) << (cap))

uint64_t agx_caps_kept(void)
{
    return
        /* Package managers unpack files of any owner and mode, and change their owners. */
        BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) |
        /* ... with the capabilities that the package names. No process gains them by running such a
         * file: no_new_privs. */
        BIT(CAP_SETFCAP) |
        /* su, sshd and every server that starts as root and continues as another user. */
        BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SETPCAP) | BIT(CAP_SYS_CHROOT) |
        /* Signals to processes of other users of the same sandbox. */
        BIT(CAP_KILL) |
        /* Port 80. */
        BIT(CAP_NET_BIND_SERVICE);
}

uint64_t agx_caps_of_files(void)
{
    return BIT(CAP_SETFCAP) | BIT(CAP_MKNOD);
}
