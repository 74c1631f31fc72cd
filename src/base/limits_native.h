/* limits_native.h: limits of the native backend; see limits.h. */
#ifndef AGX_BASE_LIMITS_NATIVE_H
#define AGX_BASE_LIMITS_NATIVE_H

/* Processes and threads in one sandbox: a fork bomb stays in it. */
#define AGX_NATIVE_PIDS 4096

/* Descriptors of one process in a sandbox, as engines give them, where we may have as many. */
#define AGX_NATIVE_NOFILE 1048576U

/* /dev/shm, as engines have it. */
#define AGX_NATIVE_SHM (64U << 20)

/* What the kernel takes as a host's name, less the one that some programs count wrongly. */
#define AGX_NATIVE_HOSTNAME_MAX 63

/* Of what a main process writes, so many of the first and of the last bytes are kept: together what
 * an engine is told to keep. */
#define AGX_NATIVE_LOG_HEAD (1U << 20)
#define AGX_NATIVE_LOG_TAIL (15U << 20)

/* How long commands wait for a user that the image's entrypoint makes (compatibility mode). */
#define AGX_NATIVE_AWAIT_USER_MS 10000

/* Bytes of a file of /etc that we write: names of an egress list are the most of them. */
#define AGX_NATIVE_ETC_MAX (256U << 10)

/* How long operations wait for what earlier daemons left to be read, and when the fence is tried
 * again that could not be put up. */
#define AGX_NATIVE_LOAD_MS 60000
#define AGX_NATIVE_FENCE_AGAIN_MS 1000

/* A forwarder that ended by itself is started again after the first of these, then after twice as
 * long each time up to the second; one that was at work for the third is as good as new. The first
 * is longer than a sandbox takes to end, of which a forwarder hears before us. */
#define AGX_NATIVE_FORWARD_FIRST_MS 100
#define AGX_NATIVE_FORWARD_MAX_MS 30000
#define AGX_NATIVE_FORWARD_STABLE_MS 60000

/* Until init must answer that runs, on a machine with far too much to do. */
#define AGX_NATIVE_READY_MS 30000

/* Between two looks at a companion's health, where its healthcheck does not say: as engines do. */
#define AGX_HEALTH_START_MS 5000
#define AGX_HEALTH_INTERVAL_MS 30000

/* After KILL: until the last process must be gone, and until init's last words are read. */
#define AGX_NATIVE_KILL_MS 30000
#define AGX_NATIVE_SETTLE_MS 2000

/* A control group whose last process was killed is empty some milliseconds later. */
#define AGX_NATIVE_GROUP_TRIES 1000
#define AGX_NATIVE_GROUP_PAUSE_US 5000

/* What may stand between the thread that reads a copy and the program that unpacks it. */
#define AGX_NATIVE_COPY_PIPE (256U << 10)

/* Threads that look at the host, that read copies, and that write our own files; how many wait for
 * them; and how long the end waits for what they do. */
#define AGX_NATIVE_HOST_THREADS 4
#define AGX_NATIVE_COPY_THREADS 4
#define AGX_NATIVE_DISK_THREADS 4
#define AGX_NATIVE_POOL_QUEUE 65536
#define AGX_NATIVE_POOL_STOP_MS 3000

/* Counting what a sandbox wrote: threads, who may wait for them, and how much is looked at before
 * it is given up. Directories that are open at a time are as many as they are deep. */
#define AGX_NATIVE_USE_THREADS 2
#define AGX_NATIVE_USE_QUEUE 256
#define AGX_NATIVE_USE_WALK_MS 2000
#define AGX_NATIVE_USE_DEPTH 128

/* Processor time is given out anew so often: the kernel's default, and Docker's. A shorter period
 * lets a throttled sandbox go on sooner, and costs more timers. */
#define AGX_CGROUP_CPU_PERIOD_US 100000

/* The least that the kernel takes as quota of a period. */
#define AGX_CGROUP_CPU_QUOTA_MIN_US 1000

/* More cores than Linux knows: keeps the quota far from the end of its type. */
#define AGX_CGROUP_MILLICORES_MAX (8192 * 1000)

/* What the kernel's io.weight takes; 100 is what a group has that says nothing. */
#define AGX_CGROUP_IO_WEIGHT_MAX 10000

/* Ids of one sandbox or companion: as many as an image of any distribution uses, up to `nobody`.
 * Ranges begin above those that systemd gives to containers and end below 2^32: enough for as many
 * sandboxes, stopped ones too, as one machine keeps. */
#define AGX_NEST_IDS 65536U
#define AGX_NEST_ID_BASE 0x70000000U
#define AGX_NEST_RANGES 32768U
/* Of an ordinary user's sandboxes: id 0 of his namespace is himself. */
#define AGX_NEST_SHARED_ID 1U

/* Nests that are kept ready: a few creates at a time find one; and how many may be asked for, each
 * about 300 KiB of the kernel's memory. */
#define AGX_NEST_READY 6
#define AGX_NEST_READY_MAX 256

/* A sandbox and its companions: addresses of a /28 without the network's, the gateway's and the one
 * for all. */
#define AGX_NEST_MEMBERS_MAX 13

/* Work that may wait for the thread of the nests: a take of each sandbox in the making. */
#define AGX_NEST_QUEUE_MAX 65536

/* What the host's routes use is read again after so long: sooner than people set up networks. */
#define AGX_NEST_ROUTES_MS 500

/* How long a process may take to make its namespaces, on a machine with far too much to do. */
#define AGX_NEST_SPAWN_MS 30000

/* Records of processes: one line of numbers, one about it. A hundred addresses are far more than an
 * interface has. And how long one that was killed may take to end. */
#define AGX_NATIVE_PROC_MAX 4096
#define AGX_NATIVE_PROC_END_MS 10000

/* The way out of an ordinary user's sandboxes: changes of the host's network gather for so long;
 * one that ended is started again after the first time, one that cannot be started is tried again
 * after the second. How long it may take to be at work, on a machine with far too much to do, and
 * how soon a daemon that ends does not wait for it any more. */
#define AGX_PASTA_NEWS_MS 100
#define AGX_PASTA_AGAIN_MS 100
#define AGX_PASTA_RETRY_MS 2000
#define AGX_PASTA_READY_MS 20000
#define AGX_PASTA_STOP_MS 20

/* When a ready nest was taken, the next is made somewhat later: the sandbox in the making has the
 * machine first. */
#define AGX_NEST_LATER_MS 10

/* Namespaces of what was removed go by themselves, some milliseconds later: when to look; how long
 * until a link that is still there is taken away; and the pause before a nest that could not be
 * made ready is tried again. */
#define AGX_NEST_SWEEP_MS 20
#define AGX_NEST_LINGER_MS 2000
#define AGX_NEST_AGAIN_MS 1000

/* How long the end waits for the kernel. */
#define AGX_NEST_STOP_MS 5000

/* The least size of a disk: an ext4 with its journal, and something left. */
#define AGX_DISK_BYTES_MIN ((int64_t)16 << 20)

/* One file for so many bytes of a limit, so that empty files fill nothing but their own disk. Trees
 * of small files (npm's, git's) have some ten kilobytes a file. */
#define AGX_DISK_BYTES_PER_FILE 8192

/* The kernel's interface counts quotas in these. */
#define AGX_DISK_QUOTA_UNIT 1024

/* Free loop devices that somebody else may take first. */
#define AGX_DISK_LOOP_TRIES 100

#endif
