/* netns.c: see netns.h. */
#include "backend/net/netns.h"

#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#include "base/banned.h"

struct errand {
    int net_fd;
    void (*work)(void *arg);
    void *arg;
    int fault; /* errno when `work` was not called */
};

static void *netns_go(void *arg)
{
    struct errand *e = arg;

    if (setns(e->net_fd, CLONE_NEWNET) == 0)
        e->work(e->arg);
    else
        e->fault = errno;
    return NULL;
}

int agx_netns_run(int net_fd, void (*work)(void *arg), void *arg, struct agx_error **err)
{
    struct errand e = { .net_fd = net_fd, .work = work, .arg = arg };
    pthread_t thread;
    int r;

    if (net_fd <= 0) {
        work(arg);
        return 0;
    }
    r = pthread_create(&thread, NULL, netns_go, &e);
    if (r != 0)
        return agx_error_errno(err, r, "start a thread");
    (void)pthread_join(thread, NULL);
    return e.fault ? agx_error_errno(err, e.fault, "enter a network namespace") : 0;
}

struct wish {
    int domain, type, protocol;
    int fd; /* or -1 with */
    int fault;
};

static void open_socket(void *arg)
{
    struct wish *w = arg;

    w->fd = socket(w->domain, w->type, w->protocol);
    w->fault = w->fd < 0 ? errno : 0;
}

int agx_netns_socket(int net_fd, int domain, int type, int protocol, struct agx_error **err)
{
    struct wish w = { .domain = domain, .type = type, .protocol = protocol, .fd = -1 };
    int r = agx_netns_run(net_fd, open_socket, &w, err);

    if (r < 0)
        return r;
    return w.fd < 0 ? agx_error_errno(err, w.fault, "open a socket") : w.fd;
}
