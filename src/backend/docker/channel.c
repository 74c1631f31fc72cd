/* channel.c: how the commands of a running primary are reached: by the way that its label names. */
#include "backend/docker/docker_internal.h"

#include "backend/docker/attach.h"
#include "backend/docker/body.h"
#include "backend/docker/engexec.h"

#include <sys/stat.h>

#include "base/banned.h"

/* A primary that runs, as the engine describes it. */
struct primary {
    const char *id;
    pid_t pid;
    const json_t *config;
};

/* Whose file PID 1 must be: the init that its own root has, which an upgrade of ours leaves alone
 * and code inside cannot replace: it is a read-only mount. */
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
    return agx_attend_up_pid(
        box->attend,
        &(struct agx_attend_pid){
            .pid = p->pid, .container_id = p->id, .init_dev = st.st_dev, .init_ino = st.st_ino },
        err);
}

/* What was put into its environment when it was made; NULL: nothing. */
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
    int r = agx_docker_attach_open(box->docker->engine, p->id, key_of(p), &agx_attend_link_ops,
                                   box->attend, &link, err);

    if (r == 0)
        agx_attend_up(box->attend, link);
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
    int r = agx_docker_engexec_open(&config, &agx_attend_link_ops, box->attend, &link, err);

    if (r == 0)
        agx_attend_up(box->attend, link);
    return r;
}

static pid_t pid_of(const json_t *inspect)
{
    json_int_t pid = json_integer_value(json_object_get(json_object_get(inspect, "State"), "Pid"));

    return pid > 1 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

int agx_docker_channel_up(struct agx_docker_box *box, const json_t *inspect,
                          const struct agx_docker_tag *tag, struct agx_error **err)
{
    const struct primary p = { .id = json_string_value(json_object_get(inspect, "Id")),
                               .pid = pid_of(inspect),
                               .config = json_object_get(inspect, "Config") };
    const char *cwd = json_string_value(json_object_get(p.config, "WorkingDir"));
    int r = agx_attend_set_defaults(box->attend, tag->exec_user, agx_text(cwd), err);

    if (r < 0)
        return r;
    if (p.pid == 0 || !p.id)
        return agx_error_set(err, AGX_NOT_FOUND, "container of sandbox '%s' has no process",
                             box->id);
    if (tag->control == AGX_DOCKER_CONTROL_PIDFD)
        r = take_pid1(box, &p, err);
    else if (tag->control == AGX_DOCKER_CONTROL_STDIO)
        r = take_streams(box, &p, err);
    else
        r = take_engine(box, &p, tag->exec_user, err);
    if (r < 0)
        return r;
    box->state = AGX_DOCKER_BOX_UP;
    box->pid = tag->control == AGX_DOCKER_CONTROL_PIDFD ? 0 : p.pid;
    return 0;
}

bool agx_docker_channel_is_stale(const struct agx_docker_box *box, const json_t *inspect)
{
    return box->pid != 0 && pid_of(inspect) != box->pid;
}
