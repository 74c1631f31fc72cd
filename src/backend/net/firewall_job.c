/* firewall_job.c: the only thread that uses libnftables. */
#include "backend/net/firewall_job.h"

#include "backend/net/firewall_docker_user.h"
#include "backend/net/firewall_nft.h"
#include "backend/net/netns.h"

#include <linux/netlink.h>
#include <nftables/libnftables.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/banned.h"

/* The library's error text has lines that point into the script: only the first says what is
 * wrong. */
static int firewall_job_refuse(const char *complaint, struct agx_error **err)
{
    const char *from = strstr(complaint, "Error: ");
    struct agx_str line = agx_str_from(from ? from + strlen("Error: ") : "no reason was given");
    enum agx_code code = AGX_INTERNAL;

    line.len = agx_str_find(line, '\n');
    if (from && strstr(from, "Operation not permitted"))
        code = AGX_PERMISSION_DENIED;
    return agx_error_set(err, code, "change the packet filter by nftables: %.*s",
                         AGX_STR_ARG(line));
}

/* The library ends the process if it cannot get a socket, and later if the socket's number is too
 * large for select(). Opening one first detects both. */
static int try_socket(struct agx_error **err)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);

    if (fd < 0)
        return agx_error_errno(err, errno, "open nftables");
    (void)close(fd);
    return fd < FD_SETSIZE
               ? 0
               : agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                               "open nftables: all descriptors below %d are in use", FD_SETSIZE);
}

static int open_nft(struct agx_firewall_job *j, struct agx_error **err)
{
    int r;

    if (j->nft)
        return 0;
    r = try_socket(err);
    if (r < 0)
        return r;
    j->nft = nft_ctx_new(NFT_CTX_DEFAULT);
    if (!j->nft)
        return agx_error_set(err, AGX_INTERNAL, "open nftables");
    (void)nft_ctx_buffer_error(j->nft);
    (void)nft_ctx_buffer_output(j->nft);
    return 0;
}

static void open_early(void *job)
{
    (void)!open_nft(job, NULL);
}

void agx_firewall_job_open(struct agx_firewall_job *j)
{
    (void)!agx_netns_run(j->net_fd, open_early, j, NULL);
}

/* Runs once: the thread, which has no other work, stays in that namespace. */
static int firewall_job_enter(struct agx_firewall_job *j, struct agx_error **err)
{
    if (j->net_fd > 0 && !j->entered && setns(j->net_fd, CLONE_NEWNET) < 0)
        return agx_error_errno(err, errno, "enter the network namespace of the packet filter");
    j->entered = true;
    return 0;
}

int agx_firewall_job_run(struct agx_job *job, struct agx_error **err)
{
    struct agx_firewall_job *j = container_of(job, struct agx_firewall_job, job);
    const char *complaint;
    int r = firewall_job_enter(j, err);

    if (r < 0)
        return r;
    if (j->read_host)
        return agx_firewall_host_read(&j->host, err);
    if (j->failed) {
        r = -(int)j->failed->code;
        agx_error_propagate(err, &j->failed);
        return r;
    }
    r = open_nft(j, err);
    if (r == 0 && j->script && j->script[0] != '\0' &&
        (complaint = agx_firewall_nft_run(j->nft, j->script)))
        r = firewall_job_refuse(complaint, err);
    if (r == 0 && j->pass_mark)
        r = agx_firewall_docker_user_set(j->nft, j->pass_mark, j->pass_wanted, err);
    return r;
}

struct agx_firewall_job *agx_firewall_job_free(struct agx_firewall_job *j)
{
    if (!j)
        return NULL;
    if (j->nft)
        nft_ctx_free(j->nft);
    agx_firewall_host_done(&j->host);
    agx_error_free(j->failed);
    free(j->script);
    free(j);
    return NULL;
}
