#include "backend/proc.h"
#include "base/path.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

static pid_t start_child(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        for (;;)
            pause();
    }
    return pid;
}

TEST(native_proc_finds_a_process_by_what_was_noted)
{
    struct agx_native_proc p = { 0 };
    pid_t pid = start_child();
    int fd;

    ASSERT_OK(agx_native_proc_note(&p, pid, NULL));
    ASSERT_INT(pid, p.pid);
    fd = agx_native_proc_open(&p, NULL);
    ASSERT_TRUE(fd >= 0);
    (void)close(fd);
    ASSERT_INT(0, kill(pid, SIGKILL));
    ASSERT_INT(0, waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT));
    ASSERT_CODE(AGX_NOT_FOUND, agx_native_proc_open(&p, NULL)); /* ended, and not waited for */
    ASSERT_INT(pid, waitpid(pid, NULL, 0));
    ASSERT_CODE(AGX_NOT_FOUND, agx_native_proc_open(&p, NULL));
    ASSERT_CODE(AGX_NOT_FOUND, agx_native_proc_note(&p, pid, NULL));
}

TEST(native_proc_is_kept_in_a_file_with_what_is_to_be_known_of_it)
{
    char dir[] = "/tmp/agx-proc-XXXXXX";
    struct agx_native_proc mine = { 0 }, found = { 0 };
    _cleanup_buf_ struct agx_buf about = AGX_BUF_INIT(64), small = AGX_BUF_INIT(2);
    _cleanup_close_ int fd = -1;

    ASSERT_TRUE(mkdtemp(dir) != NULL);
    fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    ASSERT_FALSE(agx_native_proc_load(fd, "one", &found, NULL));
    ASSERT_OK(agx_native_proc_note(&mine, getpid(), NULL));
    ASSERT_OK(agx_native_proc_save(fd, "one", &mine, AGX_STR("eth0 192.0.2.1"), NULL));
    ASSERT_TRUE(agx_native_proc_load(fd, "one", &found, &about));
    ASSERT_INT(mine.pid, found.pid);
    ASSERT_UINT(mine.start, found.start);
    ASSERT_INT(0, strcmp(mine.boot, found.boot));
    ASSERT_STR(AGX_STR("eth0 192.0.2.1"), agx_buf_peek(&about));
    ASSERT_FALSE(agx_native_proc_load(fd, "one", &found, &small));
    ASSERT_OK(agx_path_write_file(fd, "one", AGX_STR("12 what\n"), 0600, NULL));
    ASSERT_FALSE(agx_native_proc_load(fd, "one", &found, NULL));
    ASSERT_INT(0, unlinkat(fd, "one", 0));
    ASSERT_INT(0, rmdir(dir));
}

TEST(native_proc_that_is_ended_is_waited_for)
{
    pid_t pid = start_child();

    agx_native_proc_end(pidfd_open(pid, 0));
    ASSERT_INT(-1, waitpid(pid, NULL, 0));
}

TEST(native_proc_takes_no_other_process_for_it)
{
    struct agx_native_proc mine = { 0 }, p;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    ASSERT_OK(agx_native_proc_note(&mine, getpid(), NULL));
    p = mine;
    p.start++;
    ASSERT_CODE(AGX_NOT_FOUND, agx_native_proc_open(&p, &err));
    ASSERT_MESSAGE(err, "is gone");
    p = mine;
    p.boot[0] = p.boot[0] == '0' ? '1' : '0';
    ASSERT_CODE(AGX_NOT_FOUND, agx_native_proc_open(&p, NULL));
    p = (struct agx_native_proc){ 0 };
    ASSERT_CODE(AGX_NOT_FOUND, agx_native_proc_open(&p, NULL));
}
