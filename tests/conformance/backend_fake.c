/* Runs the suite of all backends on the fake backend. */
#include "tests/conformance/backend.h"
#include "tests/support/fake.h"

static struct test_fake world;

void conformance_backend_begin(void)
{
    world = test_fake_make();
}

void conformance_backend_remove(void)
{
    test_fake_remove(&world);
}

struct agx_backend *conformance_backend_open(struct agx_loop *l)
{
    return test_fake_open(&world, l);
}

void conformance_backend_closed(struct agx_loop *l)
{
    (void)l;
}

void conformance_backend_release(void)
{
}

const char *conformance_backend_image(void)
{
    return "fake:1";
}

unsigned conformance_backend_many(void)
{
    return 64;
}

void conformance_backend_command(enum conformance_command c, struct agx_words *ret)
{
    static const char *const texts[] = {
        [COMMAND_TRUE] = "true",
        [COMMAND_EXIT_3] = "sh|-c|exit 3",
        [COMMAND_NO_FILE] = "no-such-command",
        [COMMAND_NOT_EXECUTABLE] = "/etc/",
        [COMMAND_HELLO] = "echo|hello",
        [COMMAND_COMPLAIN] = "no-such-command",
        [COMMAND_CAT] = "cat",
        [COMMAND_SLEEP] = "sleep|1000",
        [COMMAND_STUBBORN] = "sh|-c|echo stubborn; stubborn",
        [COMMAND_FORKER] = "forker",
        [COMMAND_PRINT] = "print|100000",
        [COMMAND_LATER] = "sh|-c|sleep 0.6; exit 7",
        [COMMAND_PWD] = "pwd",
        [COMMAND_VARIABLE] = "env|AGX_TEST",
    };
    struct agx_str rest = agx_str_from(texts[c]), word;

    while (agx_str_split(&rest, '|', &word))
        ASSERT_OK(agx_words_add(ret, word, NULL));
}

bool conformance_backend_kills_main(const char *sandbox_id)
{
    test_fake_script(&world, "now die %s", sandbox_id);
    return true;
}

bool conformance_backend_removes(const char *sandbox_id)
{
    test_fake_script(&world, "now vanish %s", sandbox_id);
    return true;
}

bool conformance_backend_hangs(const char *sandbox_id, enum agx_do verb, bool stubborn)
{
    test_fake_script(&world, "%s %s x1 %s", agx_do_name(verb), sandbox_id,
                     stubborn ? "hang" : "hang-cancellable");
    return true;
}

bool conformance_backend_fails(const char *sandbox_id, enum agx_do verb)
{
    test_fake_script(&world, "%s %s x1 fail UNAVAILABLE on purpose", agx_do_name(verb), sandbox_id);
    return true;
}

/* Another world's. */
static struct test_fake foreign;

bool conformance_backend_makes_foreign(const char *sandbox_id)
{
    (void)sandbox_id;
    foreign = test_fake_make();
    ASSERT_INT(0, test_fake_run(&foreign, "--start", NULL));
    return true;
}

void conformance_backend_checks_foreign(const char *sandbox_id)
{
    (void)sandbox_id;
    ASSERT_UINT(0, test_fake_count(&foreign, "ask"));
    test_fake_remove(&foreign);
}
