/* limits.h: every limit that has a default, named once, with the reason for its value. */
#ifndef AGX_BASE_LIMITS_H
#define AGX_BASE_LIMITS_H

/* One Engine.IO message, WebSocket message or worker frame: what later versions of the peer use. */
#define AGX_MESSAGE_MAX ((size_t)256 << 20)

/* What the unchanged 0.1.5 client can receive in one message (its HTTP library's default). */
#define AGX_LEGACY_MESSAGE_MAX ((size_t)4 << 20)

/* Nesting of msgpack and JSON values. Deep enough for people, far below the end of a thread's
 * stack. */
#define AGX_DEPTH_MAX 128

/* The deepest msgpack that any caller may ask for: the peer's own packer stops at 511. The reader
 * keeps one counter a level on its stack (4 KiB). */
#define AGX_MP_DEPTH_CEILING 512

/* Elements of one msgpack array, pairs of one map: 128 MiB of pointers in a Python list. What is
 * larger travels as an array extension. */
#define AGX_MP_COUNT_MAX ((size_t)1 << 24)

/* Dimensions of an array extension: numpy's own maximum. */
#define AGX_MP_NDIM_MAX 64

/* Memory that a frame decoder keeps between frames: enough for those of ordinary calls. */
#define AGX_FRAME_HELD_KEEP ((size_t)64 << 10)

/* Packets in one polling payload: more, and the unchanged client drops the connection. */
#define AGX_EIO_PAYLOAD_PACKETS_MAX 16

/* A session id: ours and the common servers' have 20 characters; it stands in every polling URL. */
#define AGX_EIO_SID_MAX 128

/* The text of a Socket.IO packet in front of its attachments; ours are under 100 bytes. */
#define AGX_SIO_HEADER_MAX ((size_t)1 << 20)
#define AGX_SIO_ATTACHMENTS_MAX 64

/* A JSON document: an image's manifest or configuration is the largest that we read, and registries
 * refuse those above 4 MiB. */
#define AGX_JSON_MAX ((size_t)4 << 20)

/* One gRPC message: the default of every gRPC implementation. */
#define AGX_GRPC_MESSAGE_MAX ((size_t)4 << 20)

/* Calls at a time on one HTTP/2 connection; clients queue the others by themselves. */
#define AGX_RPC_STREAMS_MAX 1024

/* Connections of one gRPC server: below the descriptors of a process (20,000 here), with room for
 * other uses of them. */
#define AGX_RPC_CONNS_MAX 16384

/* Bytes that a client may send before we have used them: for one call, and for a connection. A
 * large message then takes few round trips. */
#define AGX_RPC_STREAM_WINDOW ((size_t)256 << 10)
#define AGX_RPC_CONN_WINDOW ((size_t)1 << 20)

/* What the calls of one connection may make us keep: requests under way and replies that its client
 * does not read. Several of the largest messages. */
#define AGX_RPC_CONN_BYTES_MAX ((size_t)64 << 20)

/* Bytes of one stream that wait to be sent past which its producer has to pause. */
#define AGX_RPC_STREAM_HIGH ((size_t)64 << 10)

/* A request's headers, as HTTP/2 counts them: what C-core's clients are ready to receive. */
#define AGX_RPC_HEADERS_MAX ((size_t)16 << 10)

/* Trailers, as HTTP/2 counts them: C-core's clients refuse more than 8 KiB at times and more than
 * 16 KiB always. */
#define AGX_RPC_TRAILERS_MAX ((size_t)8 << 10)

/* Calls that a client may cancel (or that we refuse as malformed) at once, and each second in the
 * long run: subscriptions and waits are cancelled all the time, but not by the thousand. */
#define AGX_RPC_RESETS_BURST 1000
#define AGX_RPC_RESETS_PER_S 200

/* PING, SETTINGS and empty DATA at once, and each second; each frame that we send allows one more,
 * since clients measure their bandwidth with a PING for each answer. */
#define AGX_RPC_CONTROLS_BURST 1000
#define AGX_RPC_CONTROLS_PER_S 100

/* From the connection to the end of its first SETTINGS. */
#define AGX_RPC_HANDSHAKE_MS 10000

/* Silence after which a client is asked for a sign of life, and the time that it has for one. A
 * process that died closed its socket long before; one in a debugger may be silent for long. */
#define AGX_RPC_KEEPALIVE_MS 600000
#define AGX_RPC_KEEPALIVE_WAIT_MS 20000

/* How long a stopping server waits for a client's answer before it takes no more of its calls. */
#define AGX_RPC_GOAWAY_MS 200

/* How long a client may take to close a connection that we ended. */
#define AGX_RPC_LINGER_MS 500

/* An HTTP/1.1 request line with its headers. */
#define AGX_HTTP_HEAD_MAX ((size_t)64 << 10)

/* A line of the log, with its newline: what a pipe takes in one piece (PIPE_BUF). */
#define AGX_LOG_LINE_MAX 4096

/* Read from one connection in one turn: a usual socket buffer, and small enough to be fair. */
#define AGX_CONN_READ_BYTES ((size_t)64 << 10)

/* Bytes waiting to be sent from which on a connection counts as slow. */
#define AGX_CONN_OUT_HIGH ((size_t)64 << 10)

/* How long a peer may take nothing of what a closed connection still has to send. */
#define AGX_CONN_LINGER_MS 2000

/* HTTP: from the first byte of a request to the end of its head; between two pieces of its body;
 * without any request. Generous for people, short for those who only hold connections open. */
#define AGX_HTTP_HEAD_MS 10000
#define AGX_HTTP_BODY_MS 30000
#define AGX_HTTP_IDLE_MS 75000

/* Engine.IO: a busy host may be silent for minutes; later versions of the peer proved 300 s. */
#define AGX_EIO_PING_INTERVAL_MS 25000
#define AGX_EIO_PING_TIMEOUT_MS 300000

/* From the request for a WebSocket to the end of the upgrade. */
#define AGX_EIO_UPGRADE_MS 10000

/* Sessions of one server: far more than a sandbox has clients, far fewer than descriptors. */
#define AGX_EIO_SESSIONS_MAX 4096

/* Memory that all idle sessions together keep for their next large message: enough for 32 that send
 * such messages one after another, for each keeps 2 MiB at most; the others pay for new pages. */
#define AGX_EIO_KEPT_MAX ((size_t)64 << 20)

/* Connections accepted in one turn of the loop, so that a flood of them leaves time for others. */
#define AGX_ACCEPT_BATCH 64

/* Pause after accept() found no free descriptor: soon enough for people, no spinning. */
#define AGX_ACCEPT_RETRY_MS 100

/* What the server adds to a client's message when it passes it to the worker as a frame. */
#define AGX_FRAME_EXTRA 256
#define AGX_FRAME_MAX (AGX_MESSAGE_MAX + AGX_FRAME_EXTRA)

/* Calls that one client may have unfinished or unacknowledged. */
#define AGX_CALLS_MAX 65536

/* Bytes queued for a client's socket past which its producers wait, when the client grants no
 * credit itself. */
#define AGX_QUEUE_HIGH ((size_t)256 << 10)

/* Bidi input that waits for one call of a client that cannot be held back. */
#define AGX_INPUT_MAX ((size_t)16 << 20)

/* What a session keeps of ended calls until they are acknowledged: clients acknowledge every 64
 * calls or 100 ms. */
#define AGX_KEPT_CALLS_MAX 4096
#define AGX_KEPT_BYTES_MAX ((size_t)64 << 20)

/* How long a session waits for its client: longer than a host's network takes to come back, shorter
 * than patience. */
#define AGX_RESUME_MS 60000

/* A line of the worker's output; a longer one is cut into several. */
#define AGX_LOG_TEXT_MAX ((size_t)64 << 10)

/* What is kept of the worker's output in memory, and in its file before that is renamed. */
#define AGX_WLOG_RECORDS 10000
#define AGX_WLOG_BYTES ((size_t)4 << 20)
#define AGX_WLOG_FILE ((size_t)64 << 20)

/* How long a worker may take until it is ready: heavy imports on a busy machine take seconds. */
#define AGX_WORKER_BOOT_MS 60000

/* The longest pause before a worker that dies again and again is started once more. */
#define AGX_WORKER_RESTART_MAX_MS 5000

/* Bytes waiting for the worker past which we read no more from the client that sent them. */
#define AGX_LANE_HIGH ((size_t)8 << 20)

/* A client that did not bring the token in a header must say it in CONNECT so soon, and only so
 * many at a time may try. */
#define AGX_PROVE_MS 5000
#define AGX_UNPROVEN_MAX 64

/* The largest message of such a client: a CONNECT packet with room for a long token. */
#define AGX_UNPROVEN_BYTES ((size_t)64 << 10)

/* How long an ended session keeps its last words for a polling client that is between two requests.
 */
#define AGX_EIO_LAST_WORDS_MS 2000

/* How long calls may go on after the server was told to stop. */
#define AGX_GRACE_MS 5000

/* How long the server looks for the next message before it sleeps: waking a halted CPU costs more
 * than this. */
#define AGX_SPIN_US 200

/* How long a worker may take to end by itself before it is killed. */
#define AGX_WORKER_GRACE_MS 2000

/* A C function: parameters of one (more belong into a map), functions of one library, and the
 * length of their names, which become file names. */
#define AGX_FN_PARAMS_MAX 32
#define AGX_FN_TABLE_MAX 65536
#define AGX_FN_NAME_MAX 128

/* Threads that run C functions. Each call has its own, for it may block: this many calls run at
 * once, the others wait. An idle thread costs little, but goes after a while. */
#define AGX_FN_THREADS_MAX 1024
#define AGX_FN_THREAD_IDLE_MS 10000

/* Cancellations that may wait for their call, which comes by the other lane. */
#define AGX_EARLY_CANCELS_MAX 65536

/* Bytes waiting for a worker's socket past which functions wait: a result stands behind them. */
#define AGX_WORKER_QUEUE_HIGH ((size_t)64 << 10)

/* Time for C functions to see their cancellation when the server has gone. */
#define AGX_WORKER_ORPHAN_MS 1000

/* Bytes that a client holds for its socket: several of the largest messages; beyond, calls fail
 * instead of taking all memory. */
#define AGX_CLIENT_OUT_MAX ((size_t)1 << 30)

/* One attempt of a client to connect, up to the answer to its CONNECT. */
#define AGX_CLIENT_CONNECT_MS 10000

/* Pauses before a client tries again to connect: from one that nobody notices, doubling, to one
 * that does not keep a server busy that has other troubles. */
#define AGX_CLIENT_RETRY_MIN_MS 50
#define AGX_CLIENT_RETRY_MAX_MS 2000

/* A client acknowledges so many events at once, and each within so much time. */
#define AGX_CLIENT_ACK_EVENTS 64
/* An event counts once more for each so many bytes: the server keeps them until they are
 * acknowledged. */
#define AGX_CLIENT_ACK_WEIGHT 4096
#define AGX_CLIENT_ACK_MS 100

/* A worker reads this much from a lane at once, and keeps a buffer up to that much more between
 * frames: a burst of small calls fits. */
#define AGX_IN_READ ((size_t)64 << 10)
#define AGX_IN_KEEP ((size_t)1 << 20)

/* Stream items that a worker writes before it looks for results again, and the memory that its
 * queues keep. */
#define AGX_OUT_CHUNK ((size_t)16 << 10)
#define AGX_OUT_KEEP ((size_t)256 << 10)

/* Stream items that wait to be written, past which every generator of the worker waits too. */
#define AGX_OUT_HIGH ((size_t)256 << 10)

/* Frames that the worker's loop handles in one turn, and items that a generator which never awaits
 * may give in one: others must get their turn. */
#define AGX_WORKER_FRAMES_TURN 64
#define AGX_WORKER_ITEMS_TURN 64

/* Threads for plain functions. Most wait for something; each costs its stack and a thread state. */
#define AGX_WORKER_THREADS_MAX 128

/* A plain function that runs longer no longer reads frames: another thread takes the lane. */
#define AGX_WORKER_SLOW_US 1000

/* Answers of plain functions wait this long for company in one write. */
#define AGX_WORKER_FLUSH_US 200

/* Callables that a worker keeps ready. */
#define AGX_WORKER_PLANS_MAX 4096

/* How long calls may take to end when the server has closed its lane without a word. */
#define AGX_WORKER_EOF_GRACE_MS 2000

/* Ids of calls that were cancelled before they were read (runtime-protocol.md, section 4). */
#define AGX_WORKER_EARLY_CANCELS_MAX 4096

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

/* Bytes for a command's input in one call: several pipes full, and below any message of ours. */
#define AGX_BACKEND_WRITE_MAX ((size_t)1 << 20)

/* The channel to a sandbox's init: it answers within the first milliseconds of its life, on a host
 * that may be busy; how often one that is not there yet is looked for; what may wait for it:
 * several of the largest commands; and packets that are read in one turn. */
#define AGX_INITLINK_CONNECT_MS 10000
#define AGX_INITLINK_RETRY_MS 5
#define AGX_INITLINK_QUEUE_MAX ((size_t)32 << 20)
#define AGX_INITLINK_TURN 64

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

/* What an operation has to end once it was cancelled, before it is given up. */
#define AGX_ABANDON_MS 10000

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

/* The command line: all pages of a list together, and the table that it prints of them: a hundred
 * thousand sandboxes. */
#define AGX_CLI_REPLY_MAX ((size_t)256 << 20)
#define AGX_CLI_TABLE_MAX ((size_t)256 << 20)

/* How long the command line waits: for an answer that needs no waiting, which a daemon under load
 * still gives; for a daemon that starts, which checks its store after a crash; for one that another
 * started; for one to stop, which takes 5 s at most; for one to come back in the middle of a wait;
 * for a cancelled command's last output. */
#define AGX_CLI_CALL_MS 30000
#define AGX_CLI_START_MS 330000
#define AGX_CLI_LOST_MS 10000
#define AGX_CLI_STOP_MS 10000
#define AGX_CLI_CANCEL_MS 1000

#endif
