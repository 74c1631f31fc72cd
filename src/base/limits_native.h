/* limits_native.h: limits of the native backend; see limits.h. */
#ifndef AGX_BASE_LIMITS_NATIVE_H
#define AGX_BASE_LIMITS_NATIVE_H

/* Processes and threads in one sandbox: a fork bomb stays in it. */
#define AGX_NATIVE_PIDS 4096

/* Descriptors of one process in a sandbox, as with engines, if our own limit allows it. */
#define AGX_NATIVE_NOFILE 1048576U

/* Size of /dev/shm, as with engines. */
#define AGX_NATIVE_SHM (64U << 20)

/* Terminals (ptys) that are open at a time: in a sandbox one for each command that may run, and
 * fewer in each companion. A sandbox with all its companions has 2560 then. By default the kernel
 * has 3072 for everybody but the host itself (kernel.pty.max less kernel.pty.reserve). */
#define AGX_NATIVE_PTYS 1024
#define AGX_NATIVE_COMPANION_PTYS 128

/* The kernel's limit of a host name, less one that some programs count wrongly. */
#define AGX_NATIVE_HOSTNAME_MAX 63

/* How many of the first and of the last bytes of a main process's output are kept: together as much
 * as we tell an engine to keep. */
#define AGX_NATIVE_LOG_HEAD (1U << 20)
#define AGX_NATIVE_LOG_TAIL (15U << 20)

/* How long commands wait for a user that the image's entrypoint makes (compatibility mode). */
#define AGX_NATIVE_AWAIT_USER_MS 10000

/* Bytes of a file in /etc that we write: most are names of an egress list. */
#define AGX_NATIVE_ETC_MAX (256U << 10)

/* How long operations wait until the state of earlier daemons is loaded, and the pause before a
 * failed firewall setup is retried. */
#define AGX_NATIVE_LOAD_MS 60000
#define AGX_NATIVE_FIREWALL_AGAIN_MS 1000

/* Restarts of a forwarder that ended by itself: the first pause, doubling up to the second; a
 * forwarder that ran for the third resets the pauses. The first is longer than a sandbox takes to
 * end, because its forwarder notices the end before us. */
#define AGX_NATIVE_FORWARD_FIRST_MS 100
#define AGX_NATIVE_FORWARD_MAX_MS 30000
#define AGX_NATIVE_FORWARD_STABLE_MS 60000

/* How long a started init may take to answer, on an overloaded machine. */
#define AGX_NATIVE_READY_MS 30000

/* Default intervals between health checks of a companion, as with engines. */
#define AGX_HEALTH_START_MS 5000
#define AGX_HEALTH_INTERVAL_MS 30000

/* After KILL: how long until the last process is gone, and until init's last messages are read. */
#define AGX_NATIVE_KILL_MS 30000
#define AGX_NATIVE_SETTLE_MS 2000

/* A cgroup whose last process was killed becomes empty some milliseconds later. */
#define AGX_NATIVE_GROUP_TRIES 1000
#define AGX_NATIVE_GROUP_PAUSE_US 5000

/* Bytes buffered between the thread that reads a copy and the program that unpacks it. */
#define AGX_NATIVE_COPY_PIPE (256U << 10)

/* Threads that check the host, that read copies, and that write our own files; jobs that wait for
 * them; and how long the close waits for running jobs. */
#define AGX_NATIVE_HOST_THREADS 4
#define AGX_NATIVE_COPY_THREADS 4
#define AGX_NATIVE_DISK_THREADS 4
#define AGX_NATIVE_POOL_QUEUE 65536
#define AGX_NATIVE_POOL_STOP_MS 3000

/* Measuring the disk usage of a sandbox. */
#define AGX_NATIVE_USAGE_THREADS 2
#define AGX_NATIVE_USAGE_QUEUE 256    /* queries that wait for a thread */
#define AGX_NATIVE_USAGE_WALK_MS 2000 /* the walk is given up after this */
#define AGX_NATIVE_USAGE_DEPTH 128    /* levels of directories, each with an open descriptor */

/* The period of the CPU quota: the kernel's and Docker's default. A shorter period lets a throttled
 * sandbox continue sooner, and costs more timers. */
#define AGX_CGROUP_CPU_PERIOD_US 100000

/* The smallest quota that the kernel accepts. */
#define AGX_CGROUP_CPU_QUOTA_MIN_US 1000

/* More cores than Linux supports: keeps the quota far from an overflow. */
#define AGX_CGROUP_MILLICORES_MAX (8192 * 1000)

/* The maximum of the kernel's io.weight; the default is 100. */
#define AGX_CGROUP_IO_WEIGHT_MAX 10000

/* Ids of one sandbox or companion: as many as an image of any distribution uses, up to `nobody`.
 * The ranges begin above those that systemd gives to containers and end below 2^32: enough for all
 * sandboxes that one machine keeps, including stopped ones. */
#define AGX_NSSET_IDS 65536U
#define AGX_NSSET_ID_BASE 0x70000000U
#define AGX_NSSET_RANGES 32768U
/* For sandboxes of an ordinary user: id 0 of the user's namespace is the user. */
#define AGX_NSSET_SHARED_ID 1U

/* Namespace sets prepared in advance: enough for a few creates at a time; and the most that may be
 * configured, each with about 300 KiB of kernel memory. */
#define AGX_NSSET_READY 6
#define AGX_NSSET_READY_MAX 256

/* A sandbox and its companions: the addresses of a /28 without network, gateway and broadcast
 * address. */
#define AGX_NSSET_MEMBERS_MAX 13

/* Jobs that may wait for the namespace sets' thread: one per sandbox being created. */
#define AGX_NSSET_QUEUE_MAX 65536

/* The host's routes are read again after this: sooner than people set up networks. */
#define AGX_NSSET_ROUTES_MS 500

/* How long a process may take to make its namespaces, on an overloaded machine. */
#define AGX_NSSET_SPAWN_MS 30000

/* Records of processes: one line of numbers, one of text; a hundred addresses are far more than an
 * interface has. And how long a killed process may take to end. */
#define AGX_NATIVE_PROC_MAX 4096
#define AGX_NATIVE_PROC_END_MS 10000

/* pasta, the network of an ordinary user's sandboxes. */
#define AGX_PASTA_NEWS_MS 100    /* how long changes of the host's network are collected */
#define AGX_PASTA_AGAIN_MS 100   /* pause before it is restarted after its end */
#define AGX_PASTA_RETRY_MS 2000  /* pause after a failed start */
#define AGX_PASTA_READY_MS 20000 /* how long it may take to start, on an overloaded machine */
#define AGX_PASTA_STOP_MS 20     /* how long the daemon's close waits for it */

/* The delay before the next namespace set is prepared after one was taken: the create goes first.
 */
#define AGX_NSSET_LATER_MS 10

/* The namespaces of removed sandboxes disappear by themselves some milliseconds later: when to
 * check; how long until a link that remains is deleted; and the pause before a failed preparation
 * of a namespace set is retried. */
#define AGX_NSSET_SWEEP_MS 20
#define AGX_NSSET_LINGER_MS 2000
#define AGX_NSSET_AGAIN_MS 1000

/* How long the close waits for the kernel. */
#define AGX_NSSET_STOP_MS 5000

/* The smallest disk: an ext4 with its journal, and some space. */
#define AGX_DISK_BYTES_MIN ((int64_t)16 << 20)

/* Bytes of a disk limit per inode, so that empty files only fill their own disk. Trees of small
 * files (npm's, git's) have some ten kilobytes per file. */
#define AGX_DISK_BYTES_PER_FILE 8192

/* The unit of quotas in the kernel's interface. */
#define AGX_DISK_QUOTA_UNIT 1024

/* Attempts to take a free loop device that another process may take first. */
#define AGX_DISK_LOOP_TRIES 100

#endif
