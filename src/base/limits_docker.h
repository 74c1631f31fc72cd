/* limits_docker.h: limits of the HTTP client and of the Docker backend; see limits.h. */
#ifndef AGX_BASE_LIMITS_DOCKER_H
#define AGX_BASE_LIMITS_DOCKER_H

/* Connections of one HTTP client: a sandbox in the making uses a few, an attached one keeps one;
 * and of those how many stay for the next call. Descriptors of a process are at most 20,000 here.
 */
#define AGX_FETCH_CONNECTIONS_MAX 8192
#define AGX_FETCH_IDLE_MAX 16

/* Bytes of one answer that libcurl may hand over in one turn of the loop: it reads at most a
 * hundred times 16 KiB. */
#define AGX_FETCH_TURN_MAX ((size_t)4 << 20)

/* Processes in one container: a large build fits, a fork bomb does not take the host along. */
#define AGX_DOCKER_PIDS 4096

/* The entrypoint of an image of agents-sandbox makes the user that commands run as. The container
 * is READY before: for so long after its start they wait for him. */
#define AGX_DOCKER_AWAIT_USER_MS 10000U

/* Networks that may be kept ready: each is a bridge on the host. */
#define AGX_DOCKER_READY_MAX 256

/* When one was taken the next is made somewhat later, and after a failure again: the engine has the
 * create first, and is not asked without end. */
#define AGX_DOCKER_NETWORK_LATER_MS 500
#define AGX_DOCKER_NETWORK_AGAIN_MS 5000

/* The Docker Engine: until a connection stands; for the version that it speaks; for an ordinary
 * call, which an engine that makes many containers at a time still answers. */
#define AGX_DOCKER_CONNECT_MS 10000
#define AGX_DOCKER_PING_MS 10000
#define AGX_DOCKER_CALL_MS 60000

/* An answer: the list of some ten thousand containers; and one event or line of progress, with all
 * labels of a container in it. */
#define AGX_DOCKER_ANSWER_MAX ((size_t)64 << 20)
#define AGX_DOCKER_OBJECT_MAX ((size_t)1 << 20)

/* The body of a request: a container with the largest environment and command that we accept. */
#define AGX_DOCKER_BODY_MAX ((size_t)64 << 20)

/* A request's path with its query: filters with a few labels are the longest. */
#define AGX_DOCKER_PATH_MAX ((size_t)32 << 10)

/* What may wait for a container's or command's standard input: as for init's own channel. */
#define AGX_DOCKER_HIJACK_OUT_MAX ((size_t)32 << 20)

/* Versions of the API, 1.x: the oldest that we need (Docker 20.10), and the newest that we know;
 * engines from 29 on refuse anything older than that. */
#define AGX_DOCKER_API_OLDEST 41
#define AGX_DOCKER_API_NEWEST 44

/* The engine's events: pauses before they are asked for again, doubling, and how long they must
 * have flowed for the pauses to begin anew. */
#define AGX_DOCKER_EVENTS_FIRST_MS 1000
#define AGX_DOCKER_EVENTS_MAX_MS 30000
#define AGX_DOCKER_EVENTS_STABLE_MS 30000

/* Threads that look at the sources of mounts, and that read those of copies: a few that hang leave
 * others; jobs that wait for one; and what they have at the end before they are left alone. */
#define AGX_DOCKER_HOST_THREADS 4
#define AGX_DOCKER_COPY_THREADS 8
#define AGX_DOCKER_POOL_QUEUE 1024
#define AGX_DOCKER_POOL_STOP_MS 500

/* A copy: as long as a create may take, or a minute without a byte; what waits between the thread
 * that reads and the engine; and links that are followed to its target. */
#define AGX_DOCKER_COPY_MS 1800000
#define AGX_DOCKER_COPY_QUIET_MS 60000
#define AGX_DOCKER_COPY_PIPE ((size_t)256 << 10)
#define AGX_DOCKER_COPY_LINKS 8

/* The text of an egress list in a label: the longest list of the longest names. */
#define AGX_DOCKER_EGRESS_TEXT ((size_t)2 << 20)

/* How often a companion is looked at until it is healthy; as the peer has it. */
#define AGX_DOCKER_HEALTH_MS 100

/* Starting a container mounts and attaches; on a busy host that takes seconds. */
#define AGX_DOCKER_START_MS 120000

/* What a stop may take beyond its grace: the engine kills, unmounts and detaches. */
#define AGX_DOCKER_STOP_MORE_MS 30000

/* A container that runs may not have its init yet, or have lost it without the engine knowing: how
 * soon it is looked at again, how often, and how long a new one has to answer. An engine that does
 * not answer is asked less often. */
#define AGX_DOCKER_REACH_MS 50
#define AGX_DOCKER_REACH_TRIES 100
#define AGX_DOCKER_REACH_AWAY_MS 1000
#define AGX_DOCKER_READY_MS 10000

/* How long init's last words may take to reach us when its sandbox was stopped. */
#define AGX_DOCKER_SETTLE_MS 2000

/* What the engine would not remove is tried again: it may be about to go by itself. */
#define AGX_DOCKER_REMOVE_AGAIN_MS 100
#define AGX_DOCKER_REMOVE_ROUNDS 50

/* A call that makes something is waited for when its operation has failed, or there would be
 * something that nobody knows of; and then the undoing of a create, as long as the peer takes. Of
 * one that was cancelled both must be over before the daemon gives the operation up. */
#define AGX_DOCKER_FAILED_PATIENCE_MS 30000
#define AGX_DOCKER_UNDO_MS 30000
#define AGX_DOCKER_CANCELLED_PATIENCE_MS 3000
#define AGX_DOCKER_UNDO_CANCELLED_MS 6000

/* Names that a former daemon's create still holds, and ranges of addresses that the engine knows to
 * be taken: how often another attempt is made. */
#define AGX_DOCKER_MAKE_ROUNDS 100
#define AGX_DOCKER_NET_TRIES 64

/* Containers that do not run, of which a look at all asks why. */
#define AGX_DOCKER_LOOK_INSPECTS 64

/* Pulling an image: how long the engine may tell nothing (it unpacks a layer of gigabytes without a
 * word); how often progress is told; layers that are told apart (images have at most 127). */
#define AGX_DOCKER_PULL_QUIET_MS 600000
#define AGX_DOCKER_PROGRESS_MS 500
#define AGX_DOCKER_LAYERS_MAX 256

#endif
