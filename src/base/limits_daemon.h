/* limits_daemon.h: limits of the store, of clients' requests, and of agentixd; see limits.h. */
#ifndef AGX_BASE_LIMITS_DAEMON_H
#define AGX_BASE_LIMITS_DAEMON_H

/* The store. */
#define AGX_STORE_KEY_MAX 511                  /* the longest key that LMDB accepts */
#define AGX_STORE_BATCH_MAX ((size_t)16 << 20) /* one batch: four of the largest gRPC messages */
#define AGX_STORE_QUEUE_MAX ((size_t)64 << 20) /* batches that wait for the disk */
#define AGX_STORE_GROUP_MAX ((size_t)16 << 20) /* one commit, whose pages stay in memory */

/* Initial address space for the store's file: more than most ever need, and free until it is used.
 * When it is full it doubles, up to the size of a large disk. */
#define AGX_STORE_MAP_BYTES ((size_t)256 << 20)
#define AGX_STORE_MAP_MAX ((size_t)1 << 40)

/* How long the check of the store's file may take after an unclean stop: it reads at least 100 MB
 * per second. */
#define AGX_STORE_VERIFY_S 300

/* How long closing the store waits for a running backup. */
#define AGX_STORE_BACKUP_STOP_MS 2000

/* Memory for decoding one message: a few bytes of protobuf can stand for a hundred in memory. A
 * request with the largest command and environment takes half of it. */
#define AGX_WIRE_MEMORY_MAX ((size_t)32 << 20)

/* Words of a command or list, pairs of a map: a command line with all files of a large tree fits. A
 * map is kept sorted, so an entry costs more. */
#define AGX_WORDS_MAX 65536
#define AGX_PAIRS_MAX 4096

/* Mounts, copies, ports, companions of one sandbox, each: far more than an engine supports, few
 * enough for comparing every pair. */
#define AGX_SPEC_ITEMS_MAX 1024

/* A sandbox's YAML file: its bytes, the nodes visited (also through aliases), and its anchors,
 * which are searched linearly. Such files have a page or two. */
#define AGX_YAML_MAX ((size_t)1 << 20)
#define AGX_YAML_NODES_MAX 16384
#define AGX_YAML_ANCHORS_MAX 1024

/* %TAG directives: libyaml compares each with every other, so a megabyte of them takes seconds.
 * Files have at most one. */
#define AGX_YAML_DIRECTIVES_MAX 16

/* A main process that keeps failing for longer than the window is not restarted any more; one that
 * ran for the stable time has recovered. As in the peer. */
#define AGX_CRASH_WINDOW_MS 300000
#define AGX_CRASH_STABLE_MS 30000

/* Pauses before a main process is restarted: at once for people, but no busy loop. */
#define AGX_REVIVE_FIRST_MS 100
#define AGX_REVIVE_MAX_MS 30000

/* How long a sandbox may idle before it is stopped, and how long a stopped or deleted one stays
 * before it is cleaned up. As in the peer. */
#define AGX_IDLE_TTL_NS (INT64_C(600) * 1000000000)
#define AGX_CLEANUP_TTL_NS (INT64_C(360) * 3600 * 1000000000)

/* The precision of idle and clean-up times, so that many wake the daemon once; and how often the
 * backend is asked without a reason. */
#define AGX_SWEEP_MS 1000
#define AGX_LOOK_MS 15000

/* How long a backend may take. A create may pull images; the others handle processes and files of
 * one host, which may be busy. */
#define AGX_CREATE_MS 1800000
#define AGX_RESUME_SANDBOX_MS 120000
#define AGX_STOP_MS 60000
#define AGX_DELETE_MS 120000
#define AGX_LOOK_DEADLINE_MS 10000
#define AGX_EXEC_START_MS 30000

/* Timeout of a resource usage query: what a person at a terminal would wait. */
#define AGX_USAGE_MS 5000

/* How long a cancelled operation may take to end before it is given up. */
#define AGX_ABANDON_MS 10000

/* In compatibility mode, the delay between an answer and the operation that it starts, as in the
 * peer: its command line reads the sandbox after the answer and then relies on events alone, so it
 * would wait for ever if the operation had ended before. */
#define AGX_AGBOX_SETTLE_MS 10

/* Between TERM and KILL. As in the peer. */
#define AGX_STOP_GRACE_MS 5000
#define AGX_EXEC_GRACE_MS 5000

/* Pauses before a failed commit, kill or look is retried: from an unnoticeable one, doubling, up to
 * one after which a disk that has space again is soon used. */
#define AGX_RETRY_FIRST_MS 100
#define AGX_RETRY_MAX_MS 10000

/* How much of a command's stream is kept: its beginning and its end. */
#define AGX_EXEC_LOG_HEAD ((uint64_t)8 << 20)
#define AGX_EXEC_LOG_TAIL ((uint64_t)8 << 20)

/* Threads that check the sources of mounts, which may hang, and requests that wait for one. */
#define AGX_ACCEPT_THREADS 4
#define AGX_ACCEPT_QUEUE 4096

/* A backend's message in a record or event: every subscriber receives it. */
#define AGX_FAILURE_TEXT_MAX 1024

/* Sandboxes or execs that a list visits in one slice: about half a millisecond. */
#define AGX_LIST_SLICE 128

/* Events and execs of a purged sandbox that are removed from the store in one go: a millisecond or
 * two of the loop, and a small part of a batch. */
#define AGX_PURGE_PAGE 1000

/* How long all slices (lists, old events and the like) may take in one turn of the loop. */
#define AGX_SLICES_TURN_US 1000

/* Sandboxes in a page, and the size at which a page is complete: well below the largest message
 * that a client accepts. */
#define AGX_PAGE_MAX 1000
#define AGX_PAGE_BYTES_MAX ((size_t)1 << 20)

/* Events that one stream sends in one slice. */
#define AGX_FEED_PAGE 64

/* After this many filtered events a watch tells its client the current position. */
#define AGX_WATCH_SKIP_MAX 1000

/* How often the progress of an operation is reported: visible movement at no cost. */
#define AGX_PROGRESS_MS 200

/* Concurrent event streams and waits of one user: the promised ten thousand, and some. */
#define AGX_SUBSCRIBERS_PER_UID 12000

/* Bytes of a command's output, or of a backup, in one message. */
#define AGX_OUTPUT_CHUNK ((size_t)32 << 10)
#define AGX_BACKUP_CHUNK ((size_t)64 << 10)

/* How often followed output is polled in addition to inotify. */
#define AGX_OUTPUT_POLL_MS 1000

/* Sandboxes and running commands of one user: above the 10,000 that are measured, and a bound on
 * the memory that one user can take. */
#define AGX_SANDBOXES_PER_UID 16384
#define AGX_EXECS_PER_UID 16384

/* Users in the daemon's configuration: the list is searched for each connection. */
#define AGX_ALLOW_UIDS_MAX 256

/* Nodes of the daemon's configuration file: enough for all keys and all those users. */
#define AGX_CONFIG_NODES_MAX 2048

/* The daemon's log: a size that an editor can still open, a few rotated files, and a cheap check of
 * its size. */
#define AGX_LOG_FILE_MAX ((uint64_t)16 << 20)
#define AGX_LOG_FILES_KEPT 4
#define AGX_LOG_CHECK_MS 5000

/* After SIGTERM: quick calls may finish, and we promise to be done within five seconds. */
#define AGX_SHUTDOWN_GRACE_MS 2000
#define AGX_SHUTDOWN_LIMIT_MS 4500

#endif
