/* limits_runtime.h: limits of agentix-server, its worker and its clients; see limits.h. */
#ifndef AGX_BASE_LIMITS_RUNTIME_H
#define AGX_BASE_LIMITS_RUNTIME_H

/* HTTP timeouts: from the first byte of a request to the end of its head; between two pieces of its
 * body; idle. Generous for people, short for clients that only hold connections open. */
#define AGX_HTTP_HEAD_MS 10000
#define AGX_HTTP_BODY_MS 30000
#define AGX_HTTP_IDLE_MS 75000

/* Engine.IO: a busy host may be silent for minutes; later versions of the peer use 300 s. */
#define AGX_EIO_PING_INTERVAL_MS 25000
#define AGX_EIO_PING_TIMEOUT_MS 300000

/* From the request for a WebSocket to the end of the upgrade. */
#define AGX_EIO_UPGRADE_MS 10000

/* From the start of a session to its first message; real clients send it at once. After it, a
 * server that was itself delayed gets a moment to read what came meanwhile. */
#define AGX_EIO_FIRST_MS 10000
#define AGX_EIO_LAST_LOOK_MS 1000

/* Sessions of one server: far more than a sandbox has clients, far fewer than descriptors. */
#define AGX_EIO_SESSIONS_MAX 4096

/* Memory that all idle sessions together keep for their next large message: enough for 32 sessions
 * that send such messages, since each keeps at most 2 MiB; the others allocate new pages. */
#define AGX_EIO_KEPT_MAX ((size_t)64 << 20)

/* What the server adds to a client's message when it passes it to the worker as a frame. */
#define AGX_FRAME_EXTRA 256
#define AGX_FRAME_MAX (AGX_MESSAGE_MAX + AGX_FRAME_EXTRA)

/* Calls that one client may have unfinished or unacknowledged. */
#define AGX_CALLS_MAX 65536

/* With more bytes queued for a client's socket its producers wait, if the client grants no credit
 * itself. */
#define AGX_QUEUE_HIGH ((size_t)256 << 10)

/* Queued bidi input of one call, for a client without flow control. */
#define AGX_INPUT_MAX ((size_t)16 << 20)

/* Ended calls that a session keeps until they are acknowledged: clients acknowledge every 64 calls
 * or 100 ms. */
#define AGX_UNACKED_CALLS_MAX 4096
#define AGX_UNACKED_BYTES_MAX ((size_t)64 << 20)

/* How long a session waits for its client to reconnect: longer than a network outage usually takes,
 * shorter than patience. */
#define AGX_RESUME_MS 60000

/* A line of the worker's output; a longer one is cut into several. */
#define AGX_LOG_TEXT_MAX ((size_t)64 << 10)

/* How much of the worker's output is kept in memory, and in its file before that is rotated. */
#define AGX_WLOG_RECORDS 10000
#define AGX_WLOG_BYTES ((size_t)4 << 20)
#define AGX_WLOG_FILE ((size_t)64 << 20)

/* How long a worker may take to get ready: heavy imports on a busy machine take seconds. */
#define AGX_WORKER_BOOT_MS 60000

/* The longest pause before a worker that keeps dying is restarted. */
#define AGX_WORKER_RESTART_MAX_MS 5000

/* With more bytes waiting for the worker we stop reading from the client that sent them. */
#define AGX_LANE_HIGH ((size_t)8 << 20)

/* Origins, and host names, in the options of one server. */
#define AGX_CALLERS_MAX 32

/* A client that did not send the token in a header must send it in CONNECT within this time, and
 * only so many such clients may be connected. */
#define AGX_PROVE_MS 5000
#define AGX_UNPROVEN_MAX 64

/* Of the places for sessions that have not sent CONNECT, one address may hold the whole divided by
 * this number, so that a single silent client cannot keep others out. Clients behind one proxy
 * share an address, so the part must not be small. */
#define AGX_SILENT_PARTS 4

/* The largest message of such a client: a CONNECT packet with room for a long token. */
#define AGX_UNPROVEN_BYTES ((size_t)64 << 10)

/* How long an ended session keeps its last packets for a polling client between two requests. */
#define AGX_EIO_LAST_WORDS_MS 2000

/* How long running calls may continue after the server was asked to stop. */
#define AGX_GRACE_MS 5000

/* How long the server polls for the next message before it sleeps: waking a halted CPU costs more
 * than this. */
#define AGX_SPIN_US 200

/* How long a worker may take to exit before it is killed. */
#define AGX_WORKER_GRACE_MS 2000

/* A C function: parameters of one (more belong into a map), functions of one library, and the
 * length of their names, which become file names. */
#define AGX_FN_PARAMS_MAX 32
#define AGX_FN_TABLE_MAX 65536
#define AGX_FN_NAME_MAX 128

/* Threads that run C functions. Each call has its own, since it may block: this many calls run at
 * once, the others wait. An idle thread costs little, but exits after a while. */
#define AGX_FN_THREADS_MAX 1024
#define AGX_FN_THREAD_IDLE_MS 10000

/* Cancellations that may wait for their call, which arrives on the other lane. */
#define AGX_EARLY_CANCELS_MAX 65536

/* With more bytes waiting for a worker's socket, functions wait: a result queues behind them. */
#define AGX_WORKER_QUEUE_HIGH ((size_t)64 << 10)

/* How long C functions have to notice their cancellation when the server has gone. */
#define AGX_WORKER_ORPHAN_MS 1000

/* Bytes that a client buffers for its socket: several of the largest messages; with more, calls
 * fail instead of using up the memory. */
#define AGX_CLIENT_OUT_MAX ((size_t)1 << 30)

/* One attempt of a client to connect, up to the answer to its CONNECT. */
#define AGX_CLIENT_CONNECT_MS 10000

/* Pauses before a client reconnects: from an unnoticeable one, doubling, up to one that does not
 * load a server in trouble. */
#define AGX_CLIENT_RETRY_MIN_MS 50
#define AGX_CLIENT_RETRY_MAX_MS 2000

/* A client acknowledges this many events at once, and each event within AGX_CLIENT_ACK_MS. */
#define AGX_CLIENT_ACK_EVENTS 64
/* A large event counts once more for each so many bytes, because the server keeps it until it is
 * acknowledged. */
#define AGX_CLIENT_ACK_WEIGHT 4096
#define AGX_CLIENT_ACK_MS 100

/* A worker reads this much from a lane at once, and keeps a buffer up to AGX_IN_KEEP larger between
 * frames: a burst of small calls fits. */
#define AGX_IN_READ ((size_t)64 << 10)
#define AGX_IN_KEEP ((size_t)1 << 20)

/* Bytes of stream items that a worker writes before it looks for results again, and the memory that
 * its queues keep. */
#define AGX_OUT_CHUNK ((size_t)16 << 10)
#define AGX_OUT_KEEP ((size_t)256 << 10)

/* With more bytes of stream items waiting to be written, all generators of the worker wait. */
#define AGX_OUT_HIGH ((size_t)256 << 10)

/* Frames that the worker's loop handles in one turn, and items that a generator without awaits may
 * yield in one turn: others must get their turn. */
#define AGX_WORKER_FRAMES_TURN 64
#define AGX_WORKER_ITEMS_TURN 64

/* Threads for plain functions. Most wait; each costs its stack and a Python thread state. */
#define AGX_WORKER_THREADS_MAX 128

/* When a plain function runs longer than this, another thread reads the lane's frames. */
#define AGX_WORKER_SLOW_US 1000

/* How long answers of plain functions are collected for one write. */
#define AGX_WORKER_FLUSH_US 200

/* Callables that a worker keeps ready. */
#define AGX_WORKER_PLANS_MAX 4096

/* How long calls may take to end when the server closed its lane without a message. */
#define AGX_WORKER_EOF_GRACE_MS 2000

/* Ids of calls cancelled before they were read (runtime-protocol.md, section 4). */
#define AGX_WORKER_EARLY_CANCELS_MAX 4096

#endif
