/*
 * firewall_watch.h: is notified by the kernel when another program changes our table, or when the
 * host's routes change.
 *
 * The kernel names the thread that made each rule change; the thread that makes ours has its own
 * name.
 */
#ifndef AGX_BACKEND_NET_FIREWALL_WATCH_H
#define AGX_BACKEND_NET_FIREWALL_WATCH_H

#include "loop/loop.h"

struct agx_firewall_watch;

/* These calls must not close the watch. */
struct agx_firewall_watch_ops {
    void (*table)(void *user);  /* our table may have been changed */
    void (*routes)(void *user); /* the uplinks of the host may have changed */
    void (*pass)(void *user);   /* the chain of firewall_docker_user.h may have changed */
};

/* Strings are copied. */
struct agx_firewall_watch_config {
    const char *table;
    const char *thread; /* thread whose changes are ours */
    int net_fd;         /* network namespace of the table; 0: our own */
    const struct agx_firewall_watch_ops *ops;
    void *user;
};

/* Does not keep the loop running. Changes are collected for AGX_FIREWALL_NEWS_MS. */
int agx_firewall_watch_open(struct agx_loop *l, const struct agx_firewall_watch_config *config,
                            struct agx_firewall_watch **ret_watch,
                            struct agx_error **err) AGX_MUST_CHECK;

/* No callback comes any more. Accepts and returns NULL. */
struct agx_firewall_watch *agx_firewall_watch_close(struct agx_firewall_watch *w);

#endif
