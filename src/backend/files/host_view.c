/* host_view.c: the job that reads the host for a new primary. */
#include "backend/files/host_view.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/banned.h"

struct agx_host_view_job {
    struct agx_job job;
    struct agx_host_view_host host; /* a copy: a thread that hangs may outlive the backend */
    struct agx_spec spec;
    uid_t uid; /* of the sandbox */
    char *exec_user;
    bool makes;
    struct agx_host_view host_view;
    struct agx_writables_keep *keep; /* while the store saves the writable directories */
    agx_host_view_fn found;          /* NULL: abandoned */
    void *user;
};

void agx_host_view_done(struct agx_host_view *s)
{
    if (!s)
        return;
    agx_binds_done(&s->binds);
    agx_pairs_done(&s->envs);
    agx_tool_files_done(&s->files);
    *s = (struct agx_host_view){ 0 };
}

bool agx_host_view_is_needed(const struct agx_spec *spec)
{
    return spec->mounts_len > 0 || spec->builtin_tools.len > 0 || spec->gpus;
}

/* ---- the environment ---- */

static int set_env(struct agx_pairs *envs, const char *name, const char *value,
                   struct agx_error **err)
{
    return agx_pairs_set(envs, agx_str_from(name), agx_str_from(value), err);
}

static int set_number(struct agx_pairs *envs, const char *name, uint32_t n, struct agx_error **err)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIu32, n);
    return set_env(envs, name, text, err);
}

int agx_host_view_envs(const struct agx_binds *binds, const struct agx_pairs *tool_envs,
                       uint32_t uid, uint32_t gid, struct agx_pairs *envs, struct agx_error **err)
{
    int r;

    if ((r = set_number(envs, "HOST_UID", uid, err)) < 0 ||
        (r = set_number(envs, "HOST_GID", gid, err)) < 0)
        return r;
    if (agx_binds_at(binds, "/ssh-agent") &&
        (r = set_env(envs, "SSH_AUTH_SOCK", "/ssh-agent", err)) < 0)
        return r;
    if (agx_binds_at(binds, "/pulse-audio") &&
        (r = set_env(envs, "PULSE_SERVER", "unix:/pulse-audio", err)) < 0)
        return r;
    return agx_pairs_merge(envs, tool_envs, err);
}

/* ---- the host ---- */

static int keep_text(struct agx_host_view_host *h, const char *text, const char **ret,
                     struct agx_error **err)
{
    int r = text ? agx_words_add(&h->texts, agx_str_from(text), err) : 0;

    *ret = text && r == 0 ? h->texts.items[h->texts.len - 1] : NULL;
    return r;
}

int agx_host_view_host_init(struct agx_host_view_host *h, const struct agx_tools_host *tools,
                            struct agx_sources *sources, struct agx_error **err)
{
    int r;

    *h = (struct agx_host_view_host){ .tools.uid = tools->uid,
                                      .tools.compat = tools->compat,
                                      .tools.layers = tools->layers,
                                      .sources = agx_sources_ref(sources) };
    if ((r = keep_text(h, tools->home, &h->tools.home, err)) < 0 ||
        (r = keep_text(h, tools->sandbox_home, &h->tools.sandbox_home, err)) < 0 ||
        (r = keep_text(h, tools->ssh_auth_sock, &h->tools.ssh_auth_sock, err)) < 0 ||
        (r = keep_text(h, tools->runtime_dir, &h->tools.runtime_dir, err)) < 0)
        return r;
    return r;
}

void agx_host_view_host_done(struct agx_host_view_host *h)
{
    if (!h)
        return;
    agx_words_done(&h->texts);
    agx_sources_unref(h->sources);
    *h = (struct agx_host_view_host){ 0 };
}

/* ---- the job ---- */

/* Mounts first: when a tool wants the same target, the error blames the tool. */
static int run_job(struct agx_job *j, struct agx_error **err)
{
    struct agx_host_view_job *p = container_of(j, struct agx_host_view_job, job);
    struct agx_host_view *s = &p->host_view;
    const struct agx_sources_asker asker = { p->host.sources, p->uid };
    const struct agx_tools_given given = { &s->binds, &s->envs, p->makes ? &s->files : NULL };
    int r;

    if ((r = agx_binds_add_mounts(&s->binds, &p->spec, err)) < 0 ||
        (r = agx_binds_open(&s->binds, &asker, p->exec_user, err)) < 0 ||
        (r = agx_tools_add(&p->spec.builtin_tools, &p->host.tools, &asker, &given, err)) < 0)
        return r;
    return p->spec.gpus ? agx_gpus_find(&s->gpus, "/dev", err) : 0;
}

static void job_free(struct agx_host_view_job *p)
{
    agx_host_view_done(&p->host_view);
    agx_spec_done(&p->spec);
    agx_host_view_host_done(&p->host);
    free(p->exec_user);
    free(p);
}

/* Takes the error. */
static void host_view_finish(struct agx_host_view_job *p, struct agx_error *error)
{
    if (p->found)
        p->found(p->user, &p->host_view, error);
    else
        agx_error_free(error);
    job_free(p);
}

static void on_kept(void *user, struct agx_error *error)
{
    struct agx_host_view_job *p = user;

    p->keep = NULL;
    if (error)
        (void)agx_error_wrap(&error, -(int)error->code, "store the writable mounts");
    host_view_finish(p, error);
}

static void job_done(struct agx_job *j, struct agx_error *error)
{
    struct agx_host_view_job *p = container_of(j, struct agx_host_view_job, job);

    /* Before anything runs that could write there, so that a later daemon knows of it too. */
    if (error || !p->found ||
        agx_binds_keep(&p->host_view.binds, p->host.sources, on_kept, p, &p->keep, &error) != 0)
        host_view_finish(p, error);
}

static const struct agx_job_kind host_view_kind = { .name = "host-view",
                                                    .run = run_job,
                                                    .done = job_done };

int agx_host_view_start(const struct agx_host_view_host *h, const struct agx_sandbox *sandbox,
                        const char *exec_user, bool makes, agx_host_view_fn found, void *user,
                        struct agx_host_view_job **ret_job, struct agx_error **err)
{
    struct agx_host_view_job *p = agx_new(struct agx_host_view_job);
    int r;

    p->job.kind = &host_view_kind;
    p->makes = makes;
    p->found = found;
    p->user = user;
    p->uid = (uid_t)sandbox->owner_uid;
    r = agx_spec_copy(&p->spec, &sandbox->spec, err);
    if (r == 0)
        r = agx_host_view_host_init(&p->host, &h->tools, h->sources, err);
    if (r == 0)
        r = agx_text_set(&p->exec_user, exec_user, err);
    if (r == 0)
        r = agx_job_start(&p->job, h->pool, err);
    if (r < 0) {
        job_free(p);
        return r;
    }
    *ret_job = p;
    return 0;
}

void agx_host_view_abandon(struct agx_host_view_job *p)
{
    if (!p)
        return;
    p->found = NULL;
    if (!p->keep) {
        agx_job_cancel(&p->job);
        return;
    }
    agx_writables_abandon(AGX_TAKE_PTR(p->keep));
    job_free(p);
}
