/* limits_daemon.h: limits of the store, of what clients ask for, and of agentixd; see limits.h. */
#ifndef AGX_BASE_LIMITS_DAEMON_H
#define AGX_BASE_LIMITS_DAEMON_H

/* The store: a key, which is what LMDB takes at most; one batch, which holds four of the largest
 * gRPC messages; batches that wait for the disk; and the batches of one commit, whose pages stand
 * in memory until then. */
#define AGX_STORE_KEY_MAX 511
#define AGX_STORE_BATCH_MAX ((size_t)16 << 20)
#define AGX_STORE_QUEUE_MAX ((size_t)64 << 20)
#define AGX_STORE_GROUP_MAX ((size_t)16 << 20)

/* Address space for the store's file at first: more than most ever need, and it costs nothing until
 * it is used. When it is full it doubles, up to what a disk may well have. */
#define AGX_STORE_MAP_BYTES ((size_t)256 << 20)
#define AGX_STORE_MAP_MAX ((size_t)1 << 40)

/* How long the check of the store's file may take after an unclean stop: it reads some 100 MB a
 * second at worst. */
#define AGX_STORE_VERIFY_S 300

/* How long closing the store waits for a backup that is being written. */
#define AGX_STORE_BACKUP_STOP_MS 2000

/* Memory for one message while it is read: a few bytes of protobuf can stand for a hundred in
 * memory. A request of the largest command and environment takes half of it. */
#define AGX_WIRE_MEMORY_MAX ((size_t)32 << 20)

/* Words of a command or list, pairs of a map: a command line of all files in a large tree fits; a
 * map is kept sorted, which costs more for each. */
#define AGX_WORDS_MAX 65536
#define AGX_PAIRS_MAX 4096

/* Mounts, copies, ports, companions of one sandbox, each: far more than an engine carries, few
 * enough to compare every one with every other. */
#define AGX_SPEC_ITEMS_MAX 1024

/* A sandbox's YAML file, the nodes in it that are looked at, aliases followed, and its anchors,
 * which are searched one by one: such files have a page or two. */
#define AGX_YAML_MAX ((size_t)1 << 20)
#define AGX_YAML_NODES_MAX 16384
#define AGX_YAML_ANCHORS_MAX 1024

/* Directives %TAG: libyaml compares each with every other, a megabyte of them for seconds. Files
 * have one at most. */
#define AGX_YAML_DIRECTIVES_MAX 16

/* A main process that fails for longer than the window is given up; one that ran for the stable
 * time has recovered. As the peer has them. */
#define AGX_CRASH_WINDOW_MS 300000
#define AGX_CRASH_STABLE_MS 30000

/* Pauses before a main process is started again: at once for people, without spinning. */
#define AGX_REVIVE_FIRST_MS 100
#define AGX_REVIVE_MAX_MS 30000

/* How long a sandbox may idle before it is stopped, and a stopped or deleted one stays before it is
 * cleaned up. As the peer has them. */
#define AGX_IDLE_TTL_NS (INT64_C(600) * 1000000000)
#define AGX_CLEANUP_TTL_NS (INT64_C(360) * 3600 * 1000000000)

/* Idle and clean-up times are met to within this, so that many wake the daemon once; and the
 * backend is looked at so often without a reason. */
#define AGX_SWEEP_MS 1000
#define AGX_LOOK_MS 15000

/* How long a backend may take. A create pulls images; the others move processes and files of one
 * host that may be busy. */
#define AGX_CREATE_MS 1800000
#define AGX_RESUME_SANDBOX_MS 120000
#define AGX_STOP_MS 60000
#define AGX_DELETE_MS 120000
#define AGX_LOOK_DEADLINE_MS 10000
#define AGX_EXEC_START_MS 30000

/* What a sandbox uses is worth a wait of a person at a terminal, and no more. */
#define AGX_USE_MS 5000

/* What an operation has to end once it was cancelled, before it is given up. */
#define AGX_ABANDON_MS 10000

/* In compatibility mode, from an answer to what it sets going, as the peer has it: its command
 * reads the sandbox after the answer and then goes by events alone, so that it would wait for ever
 * for an end that came before. */
#define AGX_AGBOX_SETTLE_MS 10

/* Between TERM and KILL. As the peer has it. */
#define AGX_STOP_GRACE_MS 5000
#define AGX_EXEC_GRACE_MS 5000

/* Pauses before a commit, a kill or a look that failed is tried again: from one that nobody
 * notices, doubling, to one after which a disk with space again is soon in use. */
#define AGX_RETRY_FIRST_MS 100
#define AGX_RETRY_MAX_MS 10000

/* What is kept of one stream of a command: its beginning and its end. */
#define AGX_EXEC_LOG_HEAD ((uint64_t)8 << 20)
#define AGX_EXEC_LOG_TAIL ((uint64_t)8 << 20)

/* Threads that look at the sources of mounts, which may hang, and requests that wait for one. */
#define AGX_ACCEPT_THREADS 4
#define AGX_ACCEPT_QUEUE 4096

/* A message of a backend in a record or event: it is told to every subscriber. */
#define AGX_FAILURE_TEXT_MAX 1024

/* Sandboxes or execs that a list looks at in one go: about half a millisecond. */
#define AGX_LIST_SLICE 128

/* Events, and as many execs, of a purged sandbox that leave the store in one go: a millisecond or
 * two of the loop, and a small part of a batch. */
#define AGX_PURGE_PAGE 1000

/* What lists, old events and the like may take of one turn of the loop, together. */
#define AGX_SLICES_TURN_US 1000

/* Sandboxes in a page, and its size from which on no more are added: well below what a client takes
 * in one message. */
#define AGX_PAGE_MAX 1000
#define AGX_PAGE_BYTES_MAX ((size_t)1 << 20)

/* Events that one stream sends in one go. */
#define AGX_FEED_PAGE 64

/* Events that a watch does not want, until its client is told how far it has come. */
#define AGX_WATCH_SKIP_MAX 1000

/* How often the progress of an operation is told: people see it move, and it costs nothing. */
#define AGX_PROGRESS_MS 200

/* Event streams and waits of one user at a time: the ten thousand that are promised, and some. */
#define AGX_SUBSCRIBERS_PER_UID 12000

/* Bytes of a command's output, or of a backup, in one message. */
#define AGX_OUTPUT_CHUNK ((size_t)32 << 10)
#define AGX_BACKUP_CHUNK ((size_t)64 << 10)

/* How often output that is followed is looked at although inotify tells of news. */
#define AGX_OUTPUT_POLL_MS 1000

/* Sandboxes and running commands of one user: above the 10,000 that are measured, and a bound to
 * what one user can make the daemon remember. */
#define AGX_SANDBOXES_PER_UID 16384
#define AGX_EXECS_PER_UID 16384

/* Users that the daemon's configuration may name: a list that is searched for each connection. */
#define AGX_ALLOW_UIDS_MAX 256

/* Nodes of the daemon's configuration file: it has fewer keys, and all of those users. */
#define AGX_CONFIG_NODES_MAX 2048

/* The daemon's log: a file that an editor still opens, a few of them, and a look at its size that
 * costs nothing. */
#define AGX_LOG_FILE_MAX ((uint64_t)16 << 20)
#define AGX_LOG_FILES_KEPT 4
#define AGX_LOG_CHECK_MS 5000

/* After SIGTERM: what is quick may finish, and five seconds are promised for all of it. */
#define AGX_SHUTDOWN_GRACE_MS 2000
#define AGX_SHUTDOWN_LIMIT_MS 4500

/* How long the lock of a daemon that was killed may stay with a child that it was just starting, on
 * a machine with far too much to do; and the pause between two looks. */
#define AGX_INSTANCE_WAIT_MS 10000
#define AGX_INSTANCE_PAUSE_MS 5

#endif
