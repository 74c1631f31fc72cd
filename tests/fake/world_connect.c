/*
 * world_connect.c: the connection to the world: connects, starts a world if none listens, detects
 * its silence, and reconnects.
 */
#include "tests/fake/fake_internal.h"

#include "loop/child.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "base/banned.h"

extern char **environ; /* the world's limits are in it, see its main */

static void on_timer(uv_timer_t *t);

static void wait_and_retry(struct agx_fake *f)
{
    uint64_t ms = agx_backoff_ms(f->attempts++, f->config.retry_first_ms, f->config.retry_max_ms);

    f->state = AGX_FAKE_WAITING;
    (void)uv_timer_start(&f->timer, on_timer, ms, 0);
    agx_fake_fail_all(f, false);
}

static void on_link_closed(void *user)
{
    struct agx_fake *f = user;

    f->link = NULL;
    if (f->state == AGX_FAKE_CLOSED) {
        agx_fake_released(f);
        return;
    }
    f->n_handles--;
    if (f->state == AGX_FAKE_UP) {
        agx_fake_fail_all(f, true);
        if (f->state == AGX_FAKE_UP) /* it was not closed meanwhile */
            agx_fake_world_connect(f);
        return;
    }
    wait_and_retry(f);
}

static const struct agx_fake_link_ops link_ops = { agx_fake_on_message, on_link_closed };

void agx_fake_drop_link(struct agx_fake *f)
{
    if (f->link)
        agx_fake_link_close(f->link);
}

/* True if a world listens there. */
static bool connect_world(struct agx_fake *f)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", f->socket);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0 &&
           agx_fake_link_attach(f->link, &fd, NULL) == 0;
}

static void on_started(void *user, const struct agx_child_status *status)
{
    struct agx_fake *f = user;

    f->starter = NULL;
    if (f->state == AGX_FAKE_CLOSED) {
        agx_fake_released(f);
        return;
    }
    f->n_handles--;
    /* The welcome's deadline may have closed the link meanwhile. */
    if (f->state == AGX_FAKE_REACHING && f->link && (status->code != 0 || !connect_world(f)))
        agx_fake_drop_link(f);
}

static int start_world(struct agx_fake *f)
{
    const char *const argv[] = { f->program, "--start", f->dir, NULL };
    const struct agx_child_fd fds[] = { { STDERR_FILENO, STDERR_FILENO } };
    const struct agx_child_params params = { .file = f->program,
                                             .argv = argv,
                                             .env = (const char *const *)environ,
                                             .fds = fds,
                                             .n_fds = 1,
                                             .group = AGX_CHILD_NEW_SESSION };
    int r;

    if (f->starter)
        return 0; /* a slow one of the previous attempt */
    r = agx_child_start(f->base.loop, &params, on_started, f, &f->starter, NULL);
    if (r == 0)
        f->n_handles++;
    return r;
}

void agx_fake_world_connect(struct agx_fake *f)
{
    struct agx_fake_out o;

    f->state = AGX_FAKE_REACHING;
    f->link = agx_fake_link_new(f->base.loop, &link_ops, f);
    f->n_handles++;
    agx_fake_link_begin(f->link, &o, AGX_FAKE_HELLO, 0);
    agx_fake_out_u64(&o, AGX_FAKE_VERSION);
    if (agx_fake_link_send(f->link, &o, NULL, 0) < 0) {
        agx_fake_drop_link(f);
        return;
    }
    agx_fake_ask_for_execs(f);
    (void)uv_timer_start(&f->timer, on_timer, f->config.ping_ms, 0);
    if (!connect_world(f) && start_world(f) < 0)
        agx_fake_drop_link(f);
}

static void ping(struct agx_fake *f)
{
    struct agx_fake_out o;

    if (f->ops.len > 0 && !f->ponged) {
        agx_fake_drop_link(f);
        return;
    }
    f->ponged = false;
    agx_fake_link_begin(f->link, &o, AGX_FAKE_PING, 0);
    if (agx_fake_link_send(f->link, &o, NULL, 0) < 0)
        agx_fake_drop_link(f);
    else
        (void)uv_timer_start(&f->timer, on_timer, f->config.ping_ms, 0);
}

static void on_timer(uv_timer_t *t)
{
    struct agx_fake *f = container_of(t, struct agx_fake, timer);

    if (f->state == AGX_FAKE_UP)
        ping(f);
    else if (f->state == AGX_FAKE_WAITING)
        agx_fake_world_connect(f);
    else
        agx_fake_drop_link(f); /* no welcome in time */
}
