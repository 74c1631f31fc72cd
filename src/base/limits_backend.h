/* limits_backend.h: limits of what the backends share: the way to a sandbox's init, networks, the
 * packet filter, copies; see limits.h. */
#ifndef AGX_BASE_LIMITS_BACKEND_H
#define AGX_BASE_LIMITS_BACKEND_H

/* Bytes for a command's input in one call: several pipes full, and below any message of ours. */
#define AGX_BACKEND_WRITE_MAX ((size_t)1 << 20)

/* The channel to a sandbox's init: it answers within the first milliseconds of its life, on a host
 * that may be busy; how often one that is not there yet is looked for; what may wait for it:
 * several of the largest commands; and packets that are read in one turn. */
#define AGX_INITLINK_CONNECT_MS 10000
#define AGX_INITLINK_RETRY_MS 5
#define AGX_INITLINK_QUEUE_MAX ((size_t)32 << 20)
#define AGX_INITLINK_TURN 64

/* The same over an engine's attached streams: attempts while the engine is away do not make it
 * busier when it comes back. */
#define AGX_INITSTREAM_RETRY_MAX_MS 1000

/* Where sandboxes get their networks from: a range of the private ones that few sites use, cut into
 * pieces of 16 addresses: a gateway, a sandbox and a dozen companions, for 4096 sandboxes. And how
 * many ranges of a host may be in use: a thousand sandboxes with a few routes each. */
#define AGX_SUBNETS_POOL "10.213.0.0/16"
#define AGX_SUBNETS_PREFIX 28
#define AGX_SUBNETS_TAKEN_MAX 65536

/* Copies into sandboxes: threads that read their sources, which may hang, and copies that wait for
 * one; what stands between such a thread and the upload; directories of one source that are still
 * to be read, as names; and its .gitignore. */
#define AGX_COPIES_THREADS 4
#define AGX_COPIES_QUEUE 1024
#define AGX_COPIES_PIPE ((size_t)256 << 10)
#define AGX_COPIES_PENDING_MAX ((size_t)16 << 20)
#define AGX_COPIES_GITIGNORE_MAX ((size_t)1 << 20)

/* A file of the host that a builtin tool gives a copy of: the largest are settings of programs that
 * keep a history in them; all are in memory while the sandbox is made. */
#define AGX_TOOL_FILE_MAX ((size_t)8 << 20)
/* The image's list of users, which says whose they will be. */
#define AGX_TOOL_PASSWD_MAX ((size_t)4 << 20)

/* The packet filter: addresses in one sandbox's egress list, each an element in the kernel; the
 * text of one change, which holds several thousand sandboxes or some hundred of the longest
 * lists; a resolv.conf, which has a few lines; messages about changes of others that are read
 * in one turn, and what of them may wait to be read, for the kernel tells of each element: one
 * change of all sandboxes, or of somebody who bans addresses by the ten thousand; how long such
 * changes gather before they are looked at; the pause before a table that could not be put back
 * is tried again; how often in all something is tried that changes of others interrupted; and
 * how long the end waits for the kernel. */
#define AGX_FENCE_EGRESS_MAX 4096
#define AGX_FENCE_TEXT_MAX ((size_t)32 << 20)
#define AGX_FENCE_RESOLV_MAX ((size_t)64 << 10)
#define AGX_FENCE_NEWS_TURN 64
#define AGX_FENCE_NEWS_ROOM (8 << 20)
#define AGX_FENCE_NEWS_MS 20
#define AGX_FENCE_RETRY_MS 1000
#define AGX_FENCE_NFT_TRIES 4
#define AGX_FENCE_STOP_MS 2000

/* Names in egress lists: how often each is asked for, which is as long as most answers are good
 * for; how long an address stays that is no longer among them, which is longer than clients
 * remember one; how long a sandbox's start waits for the first answers; addresses of one name,
 * where large services have a dozen at a time; threads that ask, names that wait for one, and the
 * wait for them at the end, where a server that is silent must not hold it up. */
#define AGX_RESOLVE_EVERY_MS 60000
#define AGX_RESOLVE_KEEP_MS 600000
#define AGX_RESOLVE_FIRST_MS 5000
#define AGX_RESOLVE_ADDRESSES_MAX 128
#define AGX_RESOLVE_THREADS 4
#define AGX_RESOLVE_QUEUE 4096
#define AGX_RESOLVE_STOP_MS 500

#endif
