/* limits_backend.h: limits that the backends share: the channel to a sandbox's init, networks, the
 * firewall, copies; see limits.h. */
#ifndef AGX_BASE_LIMITS_BACKEND_H
#define AGX_BASE_LIMITS_BACKEND_H

/* Bytes of a command's input in one call: several pipes full, and below any message of ours. */
#define AGX_BACKEND_WRITE_MAX ((size_t)1 << 20)

/* The channel to a sandbox's init. */
#define AGX_INITLINK_CONNECT_MS 10000 /* init answers within milliseconds, but hosts may be busy */
#define AGX_INITLINK_RETRY_MS 5       /* pause between attempts to connect */
#define AGX_INITLINK_QUEUE_MAX ((size_t)32 << 20) /* queued bytes: several large commands */
#define AGX_INITLINK_TURN 64                      /* packets read in one turn */

/* The longest pause for the same channel over an engine's attached streams: attempts while the
 * engine is down must not load it when it comes back. */
#define AGX_INITSTREAM_RETRY_MAX_MS 1000

/* Networks of sandboxes: a private range that few sites use, in blocks of 16 addresses (a gateway,
 * a sandbox and a dozen companions) for 4096 sandboxes. The last limits how many ranges of the host
 * may be in use: a thousand sandboxes with a few routes each. */
#define AGX_SUBNETS_POOL "10.213.0.0/16"
#define AGX_SUBNETS_PREFIX 28
#define AGX_SUBNETS_TAKEN_MAX 65536

/* Copies into sandboxes. */
#define AGX_COPIES_PENDING_MAX ((size_t)16 << 20)  /* names of a source's unread directories */
#define AGX_COPIES_GITIGNORE_MAX ((size_t)1 << 20) /* a source's .gitignore */

/* A host file that a builtin tool copies: the largest are settings of programs that keep a history
 * in them. All are in memory while the sandbox is made. */
#define AGX_TOOL_FILE_MAX ((size_t)8 << 20)
/* The image's passwd file, which gives the owner of these copies. */
#define AGX_TOOL_PASSWD_MAX ((size_t)4 << 20)

/* The firewall. The text of one change holds several thousand sandboxes, or some hundred of the
 * longest egress lists. Events report changes of the rules by others, one per element: a burst is
 * one change of all sandboxes, or a program that bans addresses by the ten thousand. */
#define AGX_FIREWALL_EGRESS_MAX                                                                    \
    4096 /* addresses in one egress list, each an element in the kernel */
#define AGX_FIREWALL_TEXT_MAX ((size_t)32 << 20)   /* the text of one change */
#define AGX_FIREWALL_RESOLV_MAX ((size_t)64 << 10) /* a resolv.conf, which has a few lines */
#define AGX_FIREWALL_NEWS_TURN 64                  /* events read in one turn */
#define AGX_FIREWALL_NEWS_ROOM (8 << 20)           /* socket buffer for unread events: one burst */
#define AGX_FIREWALL_NEWS_MS 20    /* how long events are collected before a check */
#define AGX_FIREWALL_RETRY_MS 1000 /* pause before the next attempt to restore our table */
#define AGX_FIREWALL_NFT_TRIES 4   /* attempts of a change that changes of others interrupt */
#define AGX_FIREWALL_STOP_MS 2000  /* how long the close waits for the kernel */

/* DNS names in egress lists. */
#define AGX_RESOLVE_EVERY_MS 60000    /* between queries: most answers are valid that long */
#define AGX_RESOLVE_KEEP_MS 600000    /* an old address stays longer than clients cache it */
#define AGX_RESOLVE_FIRST_MS 5000     /* how long a sandbox's start waits for the first answers */
#define AGX_RESOLVE_ADDRESSES_MAX 128 /* addresses of one name; large services have a dozen */
#define AGX_RESOLVE_THREADS 4         /* threads that query */
#define AGX_RESOLVE_QUEUE 4096        /* names that wait for a thread */
#define AGX_RESOLVE_STOP_MS 500       /* wait at the close, which a silent server must not delay */

#endif
