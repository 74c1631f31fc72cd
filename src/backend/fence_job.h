/* fence_job.h: what the fence asks the kernel, on its own thread. */
#ifndef AGX_BACKEND_FENCE_JOB_H
#define AGX_BACKEND_FENCE_JOB_H

#include "backend/fence_host.h"
#include "loop/job.h"

/* Of the one thread that changes the table; see fence_watch.h. */
#define AGX_FENCE_THREAD "agx-fence"

struct agx_fence;
struct nft_ctx;

struct agx_fence_job {
    struct agx_job job;
    struct nft_ctx *nft; /* from the first run on the thread's alone */
    int net_fd;          /* the network namespace that the thread works in; 0: our own. Borrowed */
    bool entered;
    struct agx_fence *fence;  /* for its done; not for the thread */
    struct agx_error *failed; /* why there is no script; run() gives it back */
    bool read_host;           /* `host` is filled instead, and nothing changed */
    struct agx_fence_host host;
    char *script; /* owned; empty: nothing to do */
    /* What fence_pass.h does is done afterwards, under this mark; NULL: not this time. Borrowed. */
    const char *pass_mark;
    bool pass_wanted;
};

/* Before the first run, and before the process has many descriptors: libnftables waits for its
 * socket by select(), for which the number of that has to be small, and a daemon that adopts a
 * thousand sandboxes soon has no small ones left. Where it fails, run() tries again and says why.
 */
void agx_fence_job_open(struct agx_fence_job *j);

/* The job's run(): one transaction, all of it or nothing. */
int agx_fence_job_run(struct agx_job *j, struct agx_error **err);

struct agx_fence_job *agx_fence_job_free(struct agx_fence_job *j);

#endif
