/* world_use.c: the resource usage of sandboxes in the fake world, which is always the same. */
#include "tests/fake/world.h"

#include "core/resource_usage.h"

#include "base/banned.h"

/* A running sandbox with a memory limit and without a disk limit. */
static const struct agx_resource_usage running = {
    .known = ((1U << AGX_USAGE_COUNT) - 1) & ~(1U << AGX_USAGE_DISK_LIMIT),
    .figures = { [AGX_USAGE_CPU_NS] = 1500000000,
                 [AGX_USAGE_MEMORY] = 64000000,
                 [AGX_USAGE_MEMORY_PEAK] = 80000000,
                 [AGX_USAGE_MEMORY_LIMIT] = 512000000,
                 [AGX_USAGE_PIDS] = 3,
                 [AGX_USAGE_PIDS_LIMIT] = 4096,
                 [AGX_USAGE_IO_READ] = 1200000,
                 [AGX_USAGE_IO_WRITTEN] = 0,
                 [AGX_USAGE_DISK] = 20480,
                 [AGX_USAGE_RX] = 4500,
                 [AGX_USAGE_RX_PACKETS] = 12,
                 [AGX_USAGE_TX] = 700,
                 [AGX_USAGE_TX_PACKETS] = 9 },
};

static const struct agx_resource_usage standing = {
    .known = 1U << AGX_USAGE_DISK,
    .figures = { [AGX_USAGE_DISK] = 20480 },
};

static void answer_used(const struct world_asker *asker, size_t part, enum agx_seen seen)
{
    const struct agx_resource_usage *use = seen == AGX_SEEN_RUNNING ? &running : &standing;
    struct agx_fake_out o;

    agx_fake_link_begin(asker->link->link, &o, AGX_FAKE_USED, asker->tag);
    agx_fake_out_u64(&o, part);
    agx_fake_out_u64(&o, use->known);
    for (size_t i = 0; i < AGX_USAGE_COUNT; i++)
        agx_fake_out_u64(&o, use->figures[i]);
    if (agx_fake_link_send(asker->link->link, &o, NULL, 0) < 0)
        agx_fake_link_close(asker->link->link);
}

int world_use(struct world *w, struct world_asker asker, struct agx_fake_in *in)
{
    _cleanup_(agx_fake_plan_done) struct agx_fake_plan plan = { 0 };
    struct agx_str id = agx_fake_in_str(in);
    const struct world_sandbox *sb = world_find(w, id);
    char name[AGX_IDENT_MAX + 1];

    if (!agx_fake_in_ends(in) || id.len > AGX_IDENT_MAX)
        return -AGX_INVALID_ARGUMENT;
    (void)snprintf(name, sizeof(name), "%.*s", AGX_STR_ARG(id));
    agx_fake_rules_find(&w->rules, sb ? &sb->labels : NULL, "use", name, &plan);
    if (plan.way == AGX_FAKE_HANGS || plan.way == AGX_FAKE_HANGS_UNTIL_TOLD)
        return 0;
    if (plan.way == AGX_FAKE_FAILS) {
        world_answer_error(&asker, AGX_FAKE_DONE, plan.code, "%s", plan.message);
        return 0;
    }
    if (!sb || !sb->made || sb->primary == AGX_SEEN_MISSING) {
        world_answer_error(&asker, AGX_FAKE_DONE, AGX_NOT_FOUND, "there is no sandbox '%s'", name);
        return 0;
    }
    answer_used(&asker, 0, sb->primary);
    for (size_t i = 0; i < sb->companions_len; i++)
        answer_used(&asker, i + 1, (enum agx_seen)sb->companions[i]);
    world_answer_error(&asker, AGX_FAKE_DONE, AGX_OK, "%s", "");
    return 0;
}
