/* channel.c: connects the init client to a running primary, in the way that its label names. */
#include "backend/docker/docker_internal.h"

#include "backend/docker/create_body.h"
#include "backend/docker/engexec.h"
#include "backend/docker/initlink_attach.h"
#include "backend/docker/mount_check.h"

#include <sys/stat.h>

#include "base/banned.h"

/* A running primary, as the engine describes it. */
struct primary {
    const char *id;
    pid_t pid;
    const json_t *config;
};

/* The file that PID 1 must be: the init in its own root, which an upgrade of ours does not change
 * and code inside cannot replace, because it is a read-only mount. */
static int take_pid1(struct agx_docker_box *box, const struct primary *p, struct agx_error **err)
{
    struct stat st;
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/root%s", (int)p->pid, AGX_DOCKER_INIT);
    if (stat(path, &st) < 0 && errno == EACCES)
        return agx_error_set(err, AGX_PERMISSION_DENIED,
                             "sandbox '%s' is reached by pidfd, which needs the right to trace "
                             "(CAP_SYS_PTRACE); docker.control: stdio does without it",
                             box->id);
    if (stat(path, &st) < 0)
        return agx_error_errno(err, errno, "look at '%s'", path);
    return agx_init_client_up_pid(
        box->init_client,
        &(struct agx_init_client_pid){
            .pid = p->pid, .container_id = p->id, .init_dev = st.st_dev, .init_ino = st.st_ino },
        err);
}

/* The key that was put into its environment when it was made; NULL: none. */
static const char *key_of(const struct primary *p)
{
    const json_t *env = json_object_get(p->config, "Env"), *value;
    size_t i;

    json_array_foreach(env, i, value)
    {
        struct agx_str text = agx_str_from(json_string_value(value));

        if (agx_str_starts(text, AGX_STR(AGX_DOCKER_INIT_KEY "=")))
            return text.ptr + sizeof(AGX_DOCKER_INIT_KEY);
    }
    return NULL;
}

static int take_streams(struct agx_docker_box *box, const struct primary *p, struct agx_error **err)
{
    struct agx_initlink *link;
    int r = agx_initlink_attach_open(box->docker->engine, p->id, key_of(p),
                                     &agx_init_client_link_ops, box->init_client, &link, err);

    if (r == 0)
        agx_init_client_up(box->init_client, link);
    return r;
}

static int take_engine(struct agx_docker_box *box, const struct primary *p, const char *user,
                       struct agx_error **err)
{
    const struct agx_docker_engexec_config config = { .engine = box->docker->engine,
                                                      .sandbox_id = box->id,
                                                      .container = p->id,
                                                      .user = user,
                                                      .state_dir = box->docker->state_dir };
    struct agx_initlink *link;
    int r =
        agx_docker_engexec_open(&config, &agx_init_client_link_ops, box->init_client, &link, err);

    if (r == 0)
        agx_init_client_up(box->init_client, link);
    return r;
}

static pid_t pid_of(const json_t *inspect)
{
    json_int_t pid = json_integer_value(json_object_get(json_object_get(inspect, "State"), "Pid"));

    return pid > 1 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

/* Its init is used, and may start the main process. */
static int take_init(struct agx_docker_box *box, const struct primary *p,
                     const struct agx_docker_tag *tag, struct agx_error **err)
{
    box->held = tag->held;
    agx_init_client_set_go(box->init_client, tag->held);
    box->pid = tag->control == AGX_DOCKER_CONTROL_PIDFD ? 0 : p->pid;
    if (tag->control == AGX_DOCKER_CONTROL_PIDFD)
        return take_pid1(box, p, err);
    if (tag->control == AGX_DOCKER_CONTROL_STDIO)
        return take_streams(box, p, err);
    return take_engine(box, p, tag->exec_user, err);
}

static struct primary primary_of(const json_t *inspect)
{
    return (struct primary){ .id = json_string_value(json_object_get(inspect, "Id")),
                             .pid = pid_of(inspect),
                             .config = json_object_get(inspect, "Config") };
}

/* ---- first its mounts are compared ---- */

void agx_docker_channel_drop(struct agx_docker_box *box)
{
    agx_docker_mount_check_abandon(AGX_TAKE_PTR(box->comparing));
    json_decref(box->inspect);
    box->inspect = NULL;
}

static void look_again(struct agx_docker_box *box)
{
    box->state = AGX_DOCKER_BOX_UNKNOWN;
    box->pid = 0;
    if (!box->task)
        agx_docker_box_reach(box);
}

/* Takes the error. The operation that brings it up is told, and waiting calls. */
static void channel_fail(struct agx_docker_box *box, struct agx_error *error)
{
    agx_error_free(box->other);
    box->other = box->task ? agx_error_dup(error) : NULL;
    agx_docker_box_down(box, error);
}

static void on_compared(struct agx_docker_box *box, enum agx_docker_compared result,
                        struct agx_error *error)
{
    _cleanup_json_ json_t *inspect = AGX_TAKE_PTR(box->inspect);
    const struct primary p = primary_of(inspect);
    struct agx_docker_tag tag;

    box->comparing = NULL;
    if (result == AGX_DOCKER_COMPARED_SAME &&
        agx_docker_labels_read(&box->docker->maker, json_object_get(p.config, "Labels"), &tag) &&
        take_init(box, &p, &tag, &error) < 0) {
        result =
            error->code == AGX_NOT_FOUND ? AGX_DOCKER_COMPARED_GONE : AGX_DOCKER_COMPARED_FAILED;
    }
    if (result == AGX_DOCKER_COMPARED_GONE) {
        agx_error_free(error);
        look_again(box);
    } else if (result == AGX_DOCKER_COMPARED_FAILED) {
        channel_fail(box, error);
    }
    agx_docker_op_hear(box->task, NULL);
}

static int channel_compare(struct agx_docker_box *box, const json_t *inspect,
                           const struct primary *p, const struct agx_docker_tag *tag,
                           struct agx_error **err)
{
    const json_t *host = json_object_get(inspect, "HostConfig");
    const struct agx_docker_mount_check_params params = {
        .container = p->id,
        .pid = p->pid,
        .owner = tag->owner,
        .mounts = json_object_get(host, "Mounts"),
        .may_be_elsewhere = tag->control == AGX_DOCKER_CONTROL_STDIO
    };

    box->inspect = json_deep_copy(inspect);
    if (!box->inspect)
        return agx_error_no_memory(err);
    agx_init_client_expect(box->init_client);
    box->pid = 0; /* the comparison itself notices that it is gone */
    return agx_docker_mount_check_start(box, &params, on_compared, &box->comparing, err);
}

int agx_docker_channel_up(struct agx_docker_box *box, const json_t *inspect,
                          const struct agx_docker_tag *tag, struct agx_error **err)
{
    const struct primary p = primary_of(inspect);
    const char *cwd = json_string_value(json_object_get(p.config, "WorkingDir"));
    int r = agx_init_client_set_defaults(box->init_client, tag->exec_user, agx_text(cwd), err);

    if (r < 0)
        return r;
    if (p.pid == 0 || !p.id)
        return agx_error_set(err, AGX_NOT_FOUND, "container of sandbox '%s' has no process",
                             box->id);
    agx_docker_channel_drop(box);
    r = tag->held ? channel_compare(box, inspect, &p, tag, err) : take_init(box, &p, tag, err);
    if (r == 0)
        box->state = AGX_DOCKER_BOX_UP;
    return r;
}

bool agx_docker_channel_is_stale(const struct agx_docker_box *box, const json_t *inspect)
{
    return box->pid != 0 && pid_of(inspect) != box->pid;
}
