/* Images with any libc or none, and their main processes. */
#include "base/fd.h"
#include "tests/support/paths.h"
#include "tests/support/sandbox.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

TEST(init_is_one_small_file_that_needs_no_loader)
{
    _cleanup_buf_ struct agx_buf bytes = AGX_BUF_INIT(1000000);
    const Elf64_Ehdr *head;

    ASSERT_OK(agx_fd_read_file(AT_FDCWD, test_path_init, &bytes, NULL));
    head = (const Elf64_Ehdr *)(const void *)bytes.data;
    for (unsigned i = 0; i < head->e_phnum; i++) {
        const Elf64_Phdr *part =
            (const Elf64_Phdr *)(const void *)(bytes.data + head->e_phoff + i * head->e_phentsize);

        ASSERT_TRUE(part->p_type != PT_INTERP);
    }
}

/* A command, a user, a directory that is made, a command that is not there; and the end. */
static void runs_commands(enum test_image image, bool user_namespace)
{
    const struct test_cmd there = { .cwd = "/a/b" },
                          agbox = { .user = "agbox", .cwd = "/home/agbox" };
    struct test_sandbox s;
    struct test_init t;

    test_sandbox_make(&s, image);
    s.user_namespace = user_namespace;
    test_sandbox_boot(&s, &t, NULL);
    test_init_connect(&t);
    ASSERT_FALSE(t.lost);
    test_init_exec(&t, "one", &there, TEST_ARGV("/prog", "id"));
    ASSERT_INT(0, t.exit_code);
    ASSERT_NOT_NULL(strstr(t.out, "uid=0 gid=0"));
    ASSERT_NOT_NULL(strstr(t.out, "cwd=/a/b"));
    ASSERT_NOT_NULL(strstr(t.out, "session=1"));
    test_init_run(&t, "two", "/prog", "exit", "9");
    ASSERT_INT(9, t.exit_code);
    test_init_run(&t, "three", "sleep-of-nobody");
    ASSERT_INT(127, t.exit_code);
    if (image != TEST_IMAGE_SCRATCH && !user_namespace) {
        test_init_exec(&t, "four", &agbox, TEST_ARGV("/prog", "id"));
        ASSERT_CSTR("uid=1000 gid=1001 groups=77,1001 cwd=/home/agbox home=/home/agbox session=1\n",
                    t.out);
    } else if (!user_namespace) {
        test_init_begin(&t, "four", &agbox, TEST_ARGV("/prog", "id"));
        ASSERT_CSTR("user 'agbox': no such user",
                    test_init_wait(&t, AGX_INIT_REFUSED, "four").text);
    }
    ASSERT_INT(0, kill(t.pid, SIGTERM));
    ASSERT_INT(0, test_init_status(&t));
    test_init_close(&t);
    test_sandbox_remove(&s);
}

TEST(scratch_image_with_one_static_binary_runs_it)
{
    runs_commands(TEST_IMAGE_SCRATCH, false);
}

TEST(busybox_image_runs_commands)
{
    runs_commands(TEST_IMAGE_BUSYBOX, false);
}

TEST(glibc_image_runs_commands)
{
    runs_commands(TEST_IMAGE_GLIBC, false);
}

TEST(musl_image_runs_commands)
{
    runs_commands(TEST_IMAGE_MUSL, false);
}

TEST(image_in_a_user_namespace_runs_commands)
{
    runs_commands(TEST_IMAGE_BUSYBOX, true);
}

#define HELD_MAIN "--await-go", "--", "sh", "-c", "echo ran >>/ran; exec sleep 1000"

TEST(main_process_that_waits_for_the_daemon_starts_once_it_says_so_and_once)
{
    const struct agx_init_msg go = { .kind = AGX_INIT_GO };
    struct test_sandbox s;
    struct test_init t;

    test_sandbox_make(&s, TEST_IMAGE_BUSYBOX);
    test_sandbox_boot(&s, &t, TEST_ARGV(HELD_MAIN));
    test_init_connect(&t);
    /* What the daemon runs does not wait; nothing else runs. */
    test_init_run(&t, "one", "sh", "-c", "test ! -e /ran && busybox ps -o comm | grep -c sleep");
    ASSERT_CSTR("0\n", t.out);
    test_init_send(&t, &go);
    test_init_send(&t, &go);
    test_init_run(&t, "two", "sh", "-c", "until test -e /ran; do busybox usleep 1000; done");
    ASSERT_INT(0, t.exit_code);
    test_init_run(&t, "three", "sh", "-c", "cat /ran");
    ASSERT_CSTR("ran\n", t.out);
    test_init_close(&t);
    test_sandbox_remove(&s);
}

TEST(init_whose_main_process_waits_ends_when_it_is_asked_to)
{
    struct test_sandbox s;
    struct test_init t;

    test_sandbox_make(&s, TEST_IMAGE_BUSYBOX);
    test_sandbox_boot(&s, &t, TEST_ARGV(HELD_MAIN));
    test_init_connect(&t);
    ASSERT_INT(0, kill(t.pid, SIGTERM));
    ASSERT_INT(0, test_init_status(&t));
    test_init_close(&t);
    test_sandbox_remove(&s);
}

/* Its main process has made /ready: its handlers are set. */
static void await_ready(const struct test_sandbox *s)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/ready", s->root);
    for (unsigned i = 0; access(path, F_OK) < 0; i++) {
        ASSERT_TRUE(i < 60000);
        (void)usleep(1000);
    }
}

/* Runs init with a main process until it ends by itself or, once that is ready, by `signo`; its
 * exit code. */
static int main_ends(const char *const *args, int signo)
{
    struct test_sandbox s;
    struct test_init t;
    int status;

    test_sandbox_make(&s, TEST_IMAGE_BUSYBOX);
    test_sandbox_boot(&s, &t, args);
    if (signo) {
        test_init_connect(&t);
        await_ready(&s);
        ASSERT_INT(0, kill(t.pid, signo));
    }
    status = test_init_status(&t);
    ASSERT_TRUE(WIFEXITED(status));
    test_init_close(&t);
    test_sandbox_remove(&s);
    return WEXITSTATUS(status);
}

TEST(exit_code_of_the_main_process_is_that_of_init)
{
    ASSERT_INT(0, main_ends(TEST_ARGV("--", "/prog", "exit", "0"), 0));
    ASSERT_INT(23, main_ends(TEST_ARGV("--", "/prog", "exit", "23"), 0));
    ASSERT_INT(137, main_ends(TEST_ARGV("--", "sh", "-c", "kill -9 $$"), 0));
}

TEST(main_process_that_cannot_run_is_127_or_126)
{
    ASSERT_INT(127, main_ends(TEST_ARGV("--", "nothing-there"), 0));
    ASSERT_INT(126, main_ends(TEST_ARGV("--", "/etc/passwd"), 0));
    ASSERT_INT(126, main_ends(TEST_ARGV("--user", "nobody-there", "--", "/prog", "id"), 0));
}

TEST(signals_reach_the_main_process)
{
    static const char handles[] = "trap 'exit 5' USR1; >/ready; while :; do sleep 0.05; done";

    ASSERT_INT(42, main_ends(TEST_ARGV("--", "/prog", "term", "/ready"), SIGTERM));
    ASSERT_INT(5, main_ends(TEST_ARGV("--", "sh", "-c", handles), SIGUSR1));
    ASSERT_INT(130, main_ends(TEST_ARGV("--", "sh", "-c", ">/ready; exec sleep 1000"), SIGINT));
}

TEST(main_process_has_the_image_s_user_and_his_home)
{
    ASSERT_INT(0, main_ends(TEST_ARGV("--user", "agbox", "--", "sh", "-c",
                                      "[ $(id -u).$(id -g).$HOME = 1000.1001./home/agbox ]"),
                            0));
    ASSERT_INT(0, main_ends(TEST_ARGV("--keep-home", "--user", "agbox", "--", "sh", "-c",
                                      "[ \"$HOME\" != /home/agbox ]"),
                            0));
}

TEST(commands_and_main_process_are_in_the_groups_that_init_was_given)
{
    const struct test_cmd cmd = { .user = "agbox" };
    struct test_sandbox s;
    struct test_init t;

    ASSERT_INT(0, main_ends(TEST_ARGV("--user", "agbox", "--groups", "44,105", "--", "sh", "-c",
                                      "[ $(id -G | tr ' ' '\\n' | grep -cx -e 44 -e 105) = 2 ]"),
                            0));
    ASSERT_INT(125, main_ends(TEST_ARGV("--groups", "video", "--", "/prog", "id"), 0));
    test_sandbox_make(&s, TEST_IMAGE_BUSYBOX);
    test_sandbox_boot(&s, &t, TEST_ARGV("--groups", "44,105"));
    test_init_connect(&t);
    test_init_exec(&t, "one", &cmd, TEST_ARGV("id", "-G"));
    ASSERT_NOT_NULL(strstr(t.out, " 44 "));
    ASSERT_NOT_NULL(strstr(t.out, " 105"));
    test_init_close(&t);
    test_sandbox_remove(&s);
}

TEST(user_whom_the_main_process_makes_is_waited_for)
{
    static const char make_late[] = "sleep 0.5; "
                                    "echo 'late:x:1234:1234::/:/bin/sh' >>/etc/passwd; "
                                    "sleep 1000";
    const struct test_cmd late = { .user = "late" };
    struct test_sandbox s;
    struct test_init t;

    test_sandbox_make(&s, TEST_IMAGE_BUSYBOX);
    test_sandbox_boot(&s, &t, TEST_ARGV("--await-user", "60000", "--", "sh", "-c", make_late));
    test_init_connect(&t);
    test_init_exec(&t, "one", &late, TEST_ARGV("id", "-u"));
    ASSERT_CSTR("1234\n", t.out);
    test_init_close(&t);
    test_sandbox_remove(&s);
}

TEST(user_whom_nobody_makes_is_not_waited_for_any_longer)
{
    const struct test_cmd nobody = { .user = "nobody-there" };
    struct test_sandbox s;
    struct test_init t;

    test_sandbox_make(&s, TEST_IMAGE_BUSYBOX);
    test_sandbox_boot(&s, &t, TEST_ARGV("--await-user", "500", "--", "sleep", "1000"));
    test_init_connect(&t);
    test_init_begin(&t, "one", &nobody, TEST_ARGV("id", "-u"));
    ASSERT_CSTR("user 'nobody-there': no such user",
                test_init_wait(&t, AGX_INIT_REFUSED, "one").text);
    test_init_close(&t);
    test_sandbox_remove(&s);
}

TEST(command_under_a_main_process_that_ends_is_told_with_its_log)
{
    struct test_sandbox s;
    struct test_init t;

    test_sandbox_make(&s, TEST_IMAGE_BUSYBOX);
    test_sandbox_boot(&s, &t, TEST_ARGV("--", "/prog", "term", "/ready"));
    test_init_connect(&t);
    test_init_begin(&t, "one", NULL, TEST_ARGV("sh", "-c", "echo begun; sleep 1000"));
    (void)test_init_wait(&t, AGX_INIT_STARTED, "one");
    do {
        test_init_pass(&t, 10);
        test_init_read_logs(&t);
    } while (t.out[0] == '\0');
    await_ready(&s);
    ASSERT_INT(0, kill(t.pid, SIGTERM));
    ASSERT_INT(AGX_INIT_EXIT_LOST, test_init_wait(&t, AGX_INIT_EXITED, "one").exit_code);
    test_init_read_logs(&t);
    ASSERT_CSTR("begun\n", t.out);
    ASSERT_INT(42, WEXITSTATUS(test_init_status(&t)));
    test_init_close(&t);
    test_sandbox_remove(&s);
}

TEST(stop_kills_a_main_process_that_does_not_end)
{
    struct test_sandbox s;
    struct test_init t;

    test_sandbox_make(&s, TEST_IMAGE_BUSYBOX);
    test_sandbox_boot(
        &s, &t, TEST_ARGV("--", "sh", "-c", "trap '' TERM; >/ready; while :; do sleep 0.05; done"));
    test_init_connect(&t);
    await_ready(&s);
    test_init_send(&t, &(struct agx_init_msg){ .kind = AGX_INIT_STOP, .grace_ms = 100 });
    ASSERT_INT(137, WEXITSTATUS(test_init_status(&t)));
    test_init_close(&t);
    test_sandbox_remove(&s);
}
