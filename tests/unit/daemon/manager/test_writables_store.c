#include "backend/files/sources.h"
#include "daemon/manager/writables_store.h"
#include "tests/support/manager.h"
#include "tests/support/store.h"

static const struct agx_writable dirs[] = { { { 1, UINT64_MAX, 3 }, "/proj" },
                                            { { 1, UINT64_MAX, 3 }, "/moved" },
                                            { { 0 }, "/by/path" } };

static void on_kept(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    *(bool *)user = true;
}

static void load(struct fixture *f, struct agx_writables *w)
{
    ASSERT_OK(agx_writables_init(w, NULL));
    ASSERT_OK(agx_writables_store_open(w, f->store, NULL));
}

static uint64_t count(struct fixture *f)
{
    return test_store_count(f->store, &(struct agx_store_range){ .table = AGX_TABLE_WRITABLES });
}

TEST(directories_that_were_kept_are_known_to_who_opens_the_store_next)
{
    struct agx_writables_keep *keep = NULL;
    struct agx_writables w;
    struct fixture f;
    bool kept = false;

    fixture_prepare(&f);
    load(&f, &w);
    ASSERT_INT(0, agx_writables_keep(&w, dirs, 3, on_kept, &kept, &keep, NULL));
    UNTIL(&f, kept);
    agx_writables_done(&w);
    ASSERT_UINT(3, count(&f));
    load(&f, &w);
    ASSERT_TRUE(agx_writables_has(&w, &dirs[0].id, "/elsewhere"));
    ASSERT_TRUE(agx_writables_has(&w, &(struct agx_file_id){ 1, 2, 3 }, "/moved"));
    ASSERT_TRUE(agx_writables_has(&w, &(struct agx_file_id){ 1, 2, 3 }, "/by/path"));
    ASSERT_FALSE(agx_writables_has(&w, &(struct agx_file_id){ 1, 2, 3 }, "/by"));
    ASSERT_FALSE(agx_writables_has(&w, &(struct agx_file_id){ 0 }, "/by"));
    ASSERT_INT(1, agx_writables_keep(&w, dirs, 3, on_kept, &kept, &keep, NULL));
    agx_writables_done(&w);
    fixture_close(&f);
}

TEST(record_that_is_none_makes_every_directory_one)
{
    struct agx_store_batch *b = agx_store_batch_new();
    struct agx_writables w;
    struct fixture f;
    bool stored = false;

    fixture_prepare(&f);
    agx_store_batch_put(b, AGX_TABLE_WRITABLES, AGX_STR("short"), AGX_STR("/a"));
    ASSERT_OK(agx_store_commit(f.store, &b, on_kept, &stored, NULL));
    UNTIL(&f, stored);
    load(&f, &w);
    ASSERT_TRUE(agx_writables_has(&w, &(struct agx_file_id){ 1, 2, 3 }, "/anywhere"));
    agx_writables_done(&w);
    fixture_close(&f);
}

static void create_with_mounts(struct fixture *f)
{
    static const struct {
        const char *source, *target;
        bool writable;
    } mounts[] = { { "/tmp", "/w", true }, { "/usr", "/r", false } };
    struct agx_spec spec;
    struct reply r = { 0 };

    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, "debian:12", NULL));
    for (size_t i = 0; i < AGX_ARRAY_LEN(mounts); i++) {
        struct agx_mount *m;

        ASSERT_OK(agx_spec_add_mount(&spec, &m, NULL));
        ASSERT_OK(agx_text_set(&m->source, mounts[i].source, NULL));
        ASSERT_OK(agx_text_set(&m->target, mounts[i].target, NULL));
        m->writable = mounts[i].writable;
    }
    agx_manager_create(f->manager, 1000, "older", &spec, reply_note, &r);
    UNTIL(f, r.n == 1);
    if (r.code != AGX_OK)
        FAIL("%s", r.text);
}

TEST(writable_mounts_of_a_daemon_that_did_not_remember_them_are_remembered)
{
    const struct agx_sources_config c = { 0 };
    struct agx_sources *sources;
    struct fixture f;

    fixture_open(&f);
    create_with_mounts(&f);
    fixture_close_manager(&f);
    ASSERT_UINT(0, count(&f));
    ASSERT_OK(agx_sources_new(&c, &sources, NULL));
    ASSERT_OK(agx_writables_store_open(agx_sources_writables(sources), f.store, NULL));
    f.config.sources = sources;
    fixture_open_manager(&f);
    ASSERT_TRUE(
        agx_writables_has(agx_sources_writables(sources), &(struct agx_file_id){ 0 }, "/tmp"));
    ASSERT_FALSE(
        agx_writables_has(agx_sources_writables(sources), &(struct agx_file_id){ 0 }, "/usr"));
    UNTIL(&f, count(&f) == 1);
    fixture_restart(&f);
    ASSERT_UINT(1, count(&f));
    fixture_close(&f);
    agx_sources_unref(sources);
}
