/* limits_runtime.h: limits of agentix-server, its worker and its clients; see limits.h. */
#ifndef AGX_BASE_LIMITS_RUNTIME_H
#define AGX_BASE_LIMITS_RUNTIME_H

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

/* From the start of a session to its first message; real clients send it at once. After it a server
 * that was itself held up has a moment to read what came meanwhile. */
#define AGX_EIO_FIRST_MS 10000
#define AGX_EIO_LAST_LOOK_MS 1000

/* Sessions of one server: far more than a sandbox has clients, far fewer than descriptors. */
#define AGX_EIO_SESSIONS_MAX 4096

/* Memory that all idle sessions together keep for their next large message: enough for 32 that send
 * such messages one after another, for each keeps 2 MiB at most; the others pay for new pages. */
#define AGX_EIO_KEPT_MAX ((size_t)64 << 20)

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

/* Origins, and names of hosts, that the options of one server name. */
#define AGX_CALLERS_MAX 32

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

#endif
