/* initproto_plan.c: the plan of a sandbox, and the reports of the process that executes it. */
#include "codec/initproto_plan.h"

#include "codec/initproto_fields.h"

#include "base/banned.h"

enum {
    PLAN_KIND = 128, /* no other packet has this kind */
    REPORT_FIELDS_MAX = 4,
    REPORT_KINDS = AGX_PLAN_GO + 1,
    LAYERS_MAX = 500, /* the kernel's limit for one overlay */
    HOSTNAME_MAX = 64,
    FILTER_SIZE = 8,   /* of one instruction */
    FILTER_MAX = 4096, /* instructions: the kernel's limit */
    OOM_MAX = 1000,
};

#define F(type, name)                                                                              \
    {                                                                                              \
        AGX_FIELD_##type, offsetof(struct agx_plan, name)                                          \
    }

static const struct agx_init_field plan_fields[] = {
    F(U32, flags),     F(U32, report_fd),     F(U32, user_fd),       F(U32, net_fd),
    F(U32, cgroup_fd), F(NUMBERS, tasks_fds), F(WORDS, layers),      F(TEXT, writable),
    F(TEXT, devices),  F(U64, shm_bytes),     F(U32, ptys),          F(MOUNTS, mounts),
    F(WORDS, masked),  F(WORDS, frozen),      F(TEXT, hostname),     F(U64, caps),
    F(DATA, seccomp),  F(LIMITS, rlimits),    F(U32, oom_score_adj), F(TEXT, user),
    F(TEXT, groups),   F(U64, await_user_ms), F(U32, commands),      F(TEXT, cwd),
    F(WORDS, argv),    F(WORDS, env),         F(TEXT, log_dir),      F(U64, log_head),
    F(U64, log_tail),  { AGX_FIELD_END, 0 },
};

#undef F
#define F(type, name)                                                                              \
    {                                                                                              \
        AGX_FIELD_##type, offsetof(struct agx_plan_report, name)                                   \
    }

static const struct agx_init_field report_fields[REPORT_KINDS][REPORT_FIELDS_MAX] = {
    [AGX_PLAN_MADE] = { F(U32, pid) },
    [AGX_PLAN_CLONED] = { F(U32, pid) },
    [AGX_PLAN_READY] = { { AGX_FIELD_END, 0 } },
    [AGX_PLAN_RUNNING] = { { AGX_FIELD_END, 0 } },
    [AGX_PLAN_FAILED] = { F(U32, stage), F(U32, sys_errno), F(TEXT, what) },
    [AGX_PLAN_GO] = { { AGX_FIELD_END, 0 } },
};

static const char *const stages[AGX_STAGE_END] = {
    [AGX_STAGE_LIMITS] = "set the limit",
    [AGX_STAGE_CGROUP] = "enter the cgroup",
    [AGX_STAGE_SOURCE] = "open",
    [AGX_STAGE_IDMAP] = "map the ids of",
    [AGX_STAGE_NSSET] = "enter the namespaces of the sandbox",
    [AGX_STAGE_SETTING] = "set",
    [AGX_STAGE_CLONE] = "start PID 1 of the sandbox",
    [AGX_STAGE_IDENTITY] = "become root of the sandbox",
    [AGX_STAGE_STAGE] = "prepare the mounts of the sandbox",
    [AGX_STAGE_OVERLAY] = "mount overlay on",
    [AGX_STAGE_MOUNT] = "mount on",
    [AGX_STAGE_MASK] = "protect",
    [AGX_STAGE_ROOT] = "change to the root of the sandbox",
    [AGX_STAGE_HOSTNAME] = "set the host name",
    [AGX_STAGE_CAPS] = "give up capabilities",
    [AGX_STAGE_SECCOMP] = "filter system calls",
    [AGX_STAGE_CONTROL] = "give PID 1 of the sandbox its",
};

static bool is_absolute(struct agx_str path)
{
    return path.len > 0 && path.ptr[0] == '/';
}

static bool are_absolute(struct agx_init_list words)
{
    const char *word;

    while ((word = agx_init_list_next(&words))) {
        if (word[0] != '/')
            return false;
    }
    return true;
}

static bool are_mounts(struct agx_init_list mounts)
{
    struct agx_plan_mount m;

    while (agx_plan_mount_next(&mounts, &m)) {
        if (!is_absolute(m.source) || !is_absolute(m.target))
            return false;
    }
    return true;
}

static bool is_env(struct agx_init_list env)
{
    const char *word;

    while ((word = agx_init_list_next(&env))) {
        if (word[0] == '=' || !strchr(word, '='))
            return false;
    }
    return true;
}

/* Checks what the field types do not express. */
static int initproto_plan_check(const struct agx_plan *p, struct agx_error **err)
{
    int32_t oom = (int32_t)p->oom_score_adj;

    if (!is_absolute(p->writable) || !is_absolute(p->devices) || !are_absolute(p->layers) ||
        !are_absolute(p->masked) || !are_absolute(p->frozen) || !are_mounts(p->mounts) ||
        (p->cwd.len > 0 && !is_absolute(p->cwd)) ||
        (p->log_dir.len > 0 && !is_absolute(p->log_dir)))
        return agx_init_malformed(err, "a path of the plan is not absolute");
    if (p->layers.count > LAYERS_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "a plan: %u layers, the limit is %d",
                             p->layers.count, LAYERS_MAX);
    if (p->hostname.len > HOSTNAME_MAX)
        return agx_init_malformed(err, "the host name is too long");
    if (p->seccomp.len % FILTER_SIZE != 0 || p->seccomp.len > (size_t)FILTER_MAX * FILTER_SIZE)
        return agx_init_malformed(err, "the system call filter is malformed");
    if (oom < -OOM_MAX || oom > OOM_MAX)
        return agx_init_malformed(err, "oom_score_adj is out of range");
    if (!is_env(p->env))
        return agx_init_malformed(err, "an environment entry is not NAME=value");
    return 0;
}

int agx_plan_decode(struct agx_str packet, struct agx_plan *ret, struct agx_error **err)
{
    struct agx_str in;
    unsigned kind;
    int r = agx_init_head_take(packet, &in, &kind, err);

    *ret = (struct agx_plan){ 0 };
    if (r < 0)
        return r;
    if (kind != PLAN_KIND)
        return agx_init_malformed(err, "it is not a plan");
    r = agx_init_fields_take(in, plan_fields, ret, err);
    return r < 0 ? r : initproto_plan_check(ret, err);
}

size_t agx_plan_encode(const struct agx_plan *p, uint8_t *out, size_t size)
{
    struct agx_init_out o = { .at = out, .size = size };

    agx_init_packet_put(&o, PLAN_KIND, plan_fields, p);
    return o.len;
}

size_t agx_plan_mount_put(uint8_t *out, size_t size, const struct agx_plan_mount *m)
{
    struct agx_init_out o = { .at = out, .size = size };

    agx_init_u32_put(&o, m->flags);
    agx_init_text_put(&o, m->source);
    agx_init_text_put(&o, m->target);
    agx_init_u32_put(&o, m->fd);
    return o.len;
}

size_t agx_plan_number_put(uint8_t *out, size_t size, uint32_t number)
{
    struct agx_init_out o = { .at = out, .size = size };

    agx_init_u32_put(&o, number);
    return o.len;
}

bool agx_plan_mount_next(struct agx_init_list *l, struct agx_plan_mount *ret)
{
    if (l->count == 0)
        return false;
    l->count--;
    ret->flags = agx_init_u32_next(&l->bytes);
    ret->source = agx_init_text_next(&l->bytes);
    ret->target = agx_init_text_next(&l->bytes);
    ret->fd = agx_init_u32_next(&l->bytes);
    return true;
}

bool agx_plan_number_next(struct agx_init_list *l, uint32_t *ret)
{
    if (l->count == 0)
        return false;
    l->count--;
    *ret = agx_init_u32_next(&l->bytes);
    return true;
}

int agx_plan_report_decode(struct agx_str packet, struct agx_plan_report *ret,
                           struct agx_error **err)
{
    struct agx_str in;
    unsigned kind;
    int r = agx_init_head_take(packet, &in, &kind, err);

    *ret = (struct agx_plan_report){ 0 };
    if (r < 0)
        return r;
    if (kind == 0 || kind >= REPORT_KINDS)
        return agx_init_malformed(err, "unknown report");
    ret->kind = (enum agx_plan_kind)kind;
    r = agx_init_fields_take(in, report_fields[kind], ret, err);
    if (r < 0)
        return r;
    if (ret->what.len > AGX_PLAN_WHAT_MAX)
        return agx_init_malformed(err, "the report is too long");
    return 0;
}

size_t agx_plan_report_encode(const struct agx_plan_report *r, uint8_t *out, size_t size)
{
    struct agx_init_out o = { .at = out, .size = size };

    agx_init_packet_put(&o, r->kind, report_fields[r->kind], r);
    return o.len;
}

int agx_plan_failed(const struct agx_plan_report *r, struct agx_error **err)
{
    const char *stage = r->stage < AGX_STAGE_END ? stages[r->stage] : NULL;
    int sys_errno = r->sys_errno <= INT32_MAX ? (int)r->sys_errno : 0;

    if (r->stage == AGX_STAGE_IDMAP && sys_errno == EINVAL)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "map the ids of '%.*s': its file system, or one that is mounted below "
                             "it, cannot do that on this kernel",
                             AGX_STR_ARG(r->what));
    if (!stage)
        stage = "make the sandbox";
    if (sys_errno == 0)
        return agx_error_set(err, AGX_INTERNAL, "%s '%.*s'", stage, AGX_STR_ARG(r->what));
    if (r->what.len == 0)
        return agx_error_errno(err, sys_errno, "%s", stage);
    return agx_error_errno(err, sys_errno, "%s '%.*s'", stage, AGX_STR_ARG(r->what));
}
