/* firewall_job.h: the firewall's calls to the kernel, on its own thread. */
#ifndef AGX_BACKEND_NET_FIREWALL_JOB_H
#define AGX_BACKEND_NET_FIREWALL_JOB_H

#include "backend/net/firewall_host.h"
#include "loop/job.h"

/* The name of the one thread that changes the table; see firewall_watch.h. */
#define AGX_FIREWALL_THREAD "agx-firewall"

struct agx_firewall;
struct nft_ctx;

struct agx_firewall_job {
    struct agx_job job;
    struct nft_ctx *nft; /* used only by the thread from the first run on */
    int net_fd;          /* network namespace the thread works in; 0: our own. Borrowed */
    bool entered;
    struct agx_firewall *firewall; /* for its done; not used by the thread */
    struct agx_error *failed;      /* why there is no script; run() returns it */
    bool read_host;                /* fills `host` and changes nothing */
    struct agx_firewall_host host;
    char *script; /* owned; empty: no changes */
    /* The mark for the rules of firewall_docker_user.h, which are set afterwards; NULL: not this
     * time. Borrowed. */
    const char *pass_mark;
    bool pass_wanted;
};

/* Call it before the first run, while the process has few descriptors: libnftables waits for its
 * socket with select(), which needs a small descriptor number, and a daemon that adopts a thousand
 * sandboxes soon has none left. If it fails, run() tries again and reports why. */
void agx_firewall_job_open(struct agx_firewall_job *j);

/* The job's run(): one transaction, applied in full or not at all. */
int agx_firewall_job_run(struct agx_job *j, struct agx_error **err);

struct agx_firewall_job *agx_firewall_job_free(struct agx_firewall_job *j);

#endif
