/* limits_docker.h: limits of the HTTP client and of the Docker backend; see limits.h. */
#ifndef AGX_BASE_LIMITS_DOCKER_H
#define AGX_BASE_LIMITS_DOCKER_H

/* Connections of one HTTP client: creating a sandbox takes a few, an attached one keeps one; a
 * process has at most 20,000 descriptors here. The second limits idle connections kept for reuse.
 */
#define AGX_FETCH_CONNECTIONS_MAX 8192
#define AGX_FETCH_IDLE_MAX 16

/* Bytes of one answer that libcurl may deliver in one turn of the loop: it reads at most a hundred
 * times 16 KiB. */
#define AGX_FETCH_TURN_MAX ((size_t)4 << 20)

/* Processes in one container: enough for a large build; a fork bomb does not harm the host. */
#define AGX_DOCKER_PIDS 4096

/* The entrypoint of an agents-sandbox image creates the user that commands run as, but the
 * container is READY earlier: commands wait this long after its start for the user. */
#define AGX_DOCKER_AWAIT_USER_MS 10000U

/* Networks that may be prepared in advance: each is a bridge on the host. */
#define AGX_DOCKER_READY_MAX 256

/* The delay before the next network is prepared, after one was taken and after a failure: the
 * create goes first, and a failing engine is not asked without end. */
#define AGX_DOCKER_NETWORK_LATER_MS 500
#define AGX_DOCKER_NETWORK_AGAIN_MS 5000

/* Timeouts of the Docker Engine. */
#define AGX_DOCKER_CONNECT_MS 10000 /* to connect */
#define AGX_DOCKER_PING_MS 10000    /* to report its API version */
#define AGX_DOCKER_CALL_MS 60000    /* of a call, on an engine that makes many containers */

/* An answer (a list of some ten thousand containers), and one event or line of progress (with all
 * labels of a container). */
#define AGX_DOCKER_ANSWER_MAX ((size_t)64 << 20)
#define AGX_DOCKER_OBJECT_MAX ((size_t)1 << 20)

/* The body of a request: a container with the largest accepted environment and command. */
#define AGX_DOCKER_BODY_MAX ((size_t)64 << 20)

/* A request's path with its query: filters with a few labels are the longest. */
#define AGX_DOCKER_PATH_MAX ((size_t)32 << 10)

/* Bytes that may wait for a container's or command's stdin: as for init's own channel. */
#define AGX_DOCKER_HIJACK_OUT_MAX ((size_t)32 << 20)

/* Versions of the API, 1.x: the oldest that we need (Docker 20.10), and the newest that we know,
 * which is the oldest that engines from 29 on accept. */
#define AGX_DOCKER_API_OLDEST 41
#define AGX_DOCKER_API_NEWEST 44

/* The engine's event stream: pauses before it is opened again, doubling, and how long it must have
 * been open to reset the pauses. */
#define AGX_DOCKER_EVENTS_FIRST_MS 1000
#define AGX_DOCKER_EVENTS_MAX_MS 30000
#define AGX_DOCKER_EVENTS_STABLE_MS 30000

/* Thread pools. */
#define AGX_DOCKER_HOST_THREADS 4   /* that check mount sources: more than a few that hang */
#define AGX_DOCKER_COPY_THREADS 8   /* that read the sources of copies */
#define AGX_DOCKER_POOL_QUEUE 1024  /* jobs that wait for a thread */
#define AGX_DOCKER_POOL_STOP_MS 500 /* how long the close waits for running jobs */

/* A copy. */
#define AGX_DOCKER_COPY_MS 1800000               /* the same as for a create */
#define AGX_DOCKER_COPY_QUIET_MS 60000           /* time without a byte */
#define AGX_DOCKER_COPY_PIPE ((size_t)256 << 10) /* bytes buffered between reader and engine */
#define AGX_DOCKER_COPY_LINKS 8                  /* symlinks followed to its target */

/* The text of an egress list in a label: the longest list of the longest names. */
#define AGX_DOCKER_EGRESS_TEXT ((size_t)2 << 20)

/* How often a companion's health is checked until it is healthy; as in the peer. */
#define AGX_DOCKER_HEALTH_MS 100

/* Starting a container mounts and attaches; on a busy host that takes seconds. */
#define AGX_DOCKER_START_MS 120000

/* How much longer than its grace a stop may take: the engine kills, unmounts and detaches. */
#define AGX_DOCKER_STOP_MORE_MS 30000

/* A running container may not have its init yet, or have lost it without the engine knowing. */
#define AGX_DOCKER_REACH_MS 50        /* pause before the next check */
#define AGX_DOCKER_REACH_TRIES 100    /* number of checks */
#define AGX_DOCKER_REACH_AWAY_MS 1000 /* pause while the engine does not answer */
#define AGX_DOCKER_READY_MS 10000     /* time for a new init to answer */

/* How long init's last messages may take to reach us after its sandbox was stopped. */
#define AGX_DOCKER_SETTLE_MS 2000

/* A failed removal is retried: the object may be about to disappear by itself. */
#define AGX_DOCKER_REMOVE_AGAIN_MS 100
#define AGX_DOCKER_REMOVE_ROUNDS 50

/* After a failed operation we wait for its pending calls, because they may create objects that
 * nobody knows of; then for the undo of a create, as long as the peer does. For a cancelled
 * operation both must end before the daemon gives the operation up. */
#define AGX_DOCKER_FAILED_PATIENCE_MS 30000
#define AGX_DOCKER_UNDO_MS 30000
#define AGX_DOCKER_CANCELLED_PATIENCE_MS 3000
#define AGX_DOCKER_UNDO_CANCELLED_MS 6000

/* Attempts to make an object whose name a former daemon's create still holds, and a network with a
 * range of addresses that the engine refuses as taken. */
#define AGX_DOCKER_MAKE_ROUNDS 100
#define AGX_DOCKER_NET_TRIES 64

/* How many stopped containers a look at all sandboxes inspects for the reason. */
#define AGX_DOCKER_LOOK_INSPECTS 64

/* Pulling an image. */
#define AGX_DOCKER_PULL_QUIET_MS 600000 /* silence: it unpacks layers of gigabytes without a word */
#define AGX_DOCKER_PROGRESS_MS 500      /* how often progress is reported */
#define AGX_DOCKER_LAYERS_MAX 256       /* layers that are tracked; images have at most 127 */

#endif
