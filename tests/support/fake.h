/* fake.h: a fake world in tests: its directory, its script, its journal, its end. */
#ifndef AGX_TESTS_FAKE_H
#define AGX_TESTS_FAKE_H

#include "base/fd.h"
#include "base/path.h"
#include "tests/fake/fake.h"
#include "tests/support/backend.h"
#include "tests/support/paths.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/wait.h>

struct test_fake {
    char dir[64];
};

/* The world ends with this process, even if it is killed. */
static inline struct test_fake test_fake_make(void)
{
    struct test_fake t = { .dir = "/tmp/agx-fake-XXXXXX" };
    char pid[32];

    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    ASSERT_INT(0, setenv("AGENTIX_FAKE_PARENT", pid, 1));
    ASSERT_NOT_NULL(mkdtemp(t.dir));
    return t;
}

static inline struct agx_backend *test_fake_open(const struct test_fake *t, struct agx_loop *l)
{
    struct agx_fake_config c = AGX_FAKE_CONFIG_INIT;
    struct agx_backend *b = NULL;

    c.dir = t->dir;
    c.program = test_path_fakeworld;
    ASSERT_OK(agx_backend_fake_open(l, &c, &b, NULL));
    return b;
}

/* Runs agentix-fakeworld OPTION DIR [TEXT] and returns its exit code. */
static inline int test_fake_run(const struct test_fake *t, const char *option, const char *text)
{
    int status;
    pid_t pid = fork();

    ASSERT_TRUE(pid >= 0);
    if (pid == 0) {
        execl(test_path_fakeworld, test_path_fakeworld, option, t->dir, text, (char *)NULL);
        _exit(127);
    }
    ASSERT_TRUE(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void test_fake_script(const struct test_fake *t, const char *fmt, ...)
    AGX_PRINTF(2, 3);
static inline void test_fake_script(const struct test_fake *t, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    ASSERT_INT(0, test_fake_run(t, "--start", NULL));
    ASSERT_INT(0, test_fake_run(t, "--script", text));
}

/* The number of lines in the journal that begin with these words. */
static inline unsigned test_fake_count(const struct test_fake *t, const char *words)
{
    _cleanup_buf_ struct agx_buf journal = AGX_BUF_INIT((size_t)64 << 20);
    struct agx_str rest, line;
    char path[128];
    unsigned n = 0;

    (void)snprintf(path, sizeof(path), "%s/journal", t->dir);
    ASSERT_OK(agx_fd_read_file(AT_FDCWD, path, &journal, NULL));
    rest = agx_buf_peek(&journal);
    while (agx_str_split(&rest, '\n', &line))
        n += agx_str_starts(line, agx_str_from(words));
    return n;
}

static inline void test_fake_remove(const struct test_fake *t)
{
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ASSERT_OK(agx_path_remove_tree(tmp, t->dir + strlen("/tmp/"), NULL));
    close(tmp);
}

#endif
