/* binds.c: a list with distinct targets. */
#include "backend/files/binds.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/banned.h"

/* The mounts of a spec and those of all tools. */
#define BINDS_MAX ((size_t)2 * AGX_SPEC_ITEMS_MAX)

static int binds_refuse(const struct agx_binds *b, const char *source, const char *target,
                        struct agx_error **err)
{
    const struct agx_bind *other = agx_binds_at(b, target);

    if (!agx_utf8_valid(agx_str_from(source)) || !agx_utf8_valid(agx_str_from(target)))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the path of a mount is not UTF-8");
    if (other)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "conflicting mount target '%s': for '%s' and for '%s'", target,
                             other->source, source);
    if (b->len >= BINDS_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "more than %zu mounts", BINDS_MAX);
    return 0;
}

int agx_binds_add(struct agx_binds *b, const char *source, const char *target, bool writable,
                  struct agx_error **err)
{
    struct agx_bind bind = { .writable = writable, .from = AGX_HOSTPATH_INIT };
    int r = binds_refuse(b, source, target, err);

    if (r < 0 || (r = agx_text_grow((void **)&b->items, b->len, sizeof(*b->items), err)) < 0)
        return r;
    if ((r = agx_text_set(&bind.source, source, err)) < 0 ||
        (r = agx_text_set(&bind.target, target, err)) < 0) {
        free(bind.source);
        return r;
    }
    b->items[b->len++] = bind;
    return 0;
}

int agx_binds_take(struct agx_binds *b, struct agx_hostpath *take_from, const char *target,
                   bool writable, struct agx_error **err)
{
    int r = agx_binds_add(b, take_from->path, target, writable, err);

    if (r < 0) {
        agx_hostpath_done(take_from);
        return r;
    }
    b->items[b->len - 1].from = *take_from;
    *take_from = (struct agx_hostpath)AGX_HOSTPATH_INIT;
    return 0;
}

int agx_binds_add_mounts(struct agx_binds *b, const struct agx_spec *spec, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < spec->mounts_len; i++) {
        const struct agx_mount *m = &spec->mounts[i];

        r = agx_binds_add(b, m->source, m->target, m->writable, err);
        if (r == 0)
            b->items[b->len - 1].suid = m->suid == AGX_SUID_ALLOW;
    }
    return r;
}

int agx_binds_keep(const struct agx_binds *b, struct agx_sources *sources, agx_done_fn done,
                   void *user, struct agx_writables_keep **ret_keep, struct agx_error **err)
{
    _cleanup_free_ struct agx_writable *dirs = agx_alloc((b->len + 1) * sizeof(*dirs));
    size_t n = 0;

    for (size_t i = 0; i < b->len; i++) {
        const struct agx_bind *one = &b->items[i];

        if (one->writable && S_ISDIR(one->from.mode))
            dirs[n++] = (struct agx_writable){ one->from.id, one->from.path };
    }
    if (n == 0 || !sources)
        return 1;
    return agx_writables_keep(agx_sources_writables(sources), dirs, n, done, user, ret_keep, err);
}

/* As in a list. The caller frees it; NULL without memory. */
static char *print_one(const struct agx_bind *b)
{
    char *text = NULL;

    if (asprintf(&text, "%" PRIu64 ":%" PRIu64 ":%s", b->from.id.dev, b->from.id.ino, b->target) <
        0)
        return NULL;
    return text;
}

int agx_binds_list(const struct agx_binds *b, struct agx_words *ret, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < b->len; i++) {
        _cleanup_free_ char *text = print_one(&b->items[i]);

        r = text ? agx_words_add(ret, agx_str_from(text), err) : agx_error_no_memory(err);
    }
    return r;
}

/* The text behind the two numbers. */
static const char *target_in(const char *text)
{
    for (int i = 0; text && i < 2; i++)
        text = strchr(text, ':') ? strchr(text, ':') + 1 : NULL;
    return text;
}

void agx_binds_log_changed(const struct agx_binds *b, const struct agx_words *list,
                           const char *sandbox_id)
{
    for (size_t i = 0; i < list->len; i++) {
        const char *target = target_in(list->items[i]);
        const struct agx_bind *now = target ? agx_binds_at(b, target) : NULL;
        _cleanup_free_ char *text = now ? print_one(now) : NULL;

        if (text && strcmp(text, list->items[i]) != 0)
            AGX_LOG(AGX_LOG_INFO, "source.changed", AGX_F_STR("sandbox", sandbox_id),
                    AGX_F_STR("source", now->source), AGX_F_STR("target", target));
    }
}

bool agx_binds_need_suid_guard(const struct agx_binds *b)
{
    for (size_t i = 0; i < b->len; i++) {
        if (b->items[i].writable && !b->items[i].suid)
            return true;
    }
    return false;
}

const struct agx_bind *agx_binds_at(const struct agx_binds *b, const char *target)
{
    for (size_t i = 0; i < b->len; i++) {
        if (strcmp(b->items[i].target, target) == 0)
            return &b->items[i];
    }
    return NULL;
}

void agx_binds_done(struct agx_binds *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->len; i++) {
        free(b->items[i].source);
        free(b->items[i].target);
        agx_hostpath_done(&b->items[i].from);
    }
    free(b->items);
    *b = (struct agx_binds){ 0 };
}
