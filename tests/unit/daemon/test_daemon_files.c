/* The daemon's own files: directories, lock, log; and its messages to a service manager. */
#include "base/fd.h"
#include "base/path.h"
#include "daemon/dirs.h"
#include "daemon/instance.h"
#include "daemon/logfile.h"
#include "daemon/systemd.h"
#include "tests/support/loop.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

struct place {
    char dir[64], file[96];
};

static struct place make_place(const char *name)
{
    struct place p = { .dir = "/tmp/agx-daemon-XXXXXX" };

    ASSERT_NOT_NULL(mkdtemp(p.dir));
    snprintf(p.file, sizeof(p.file), "%s/%s", p.dir, name);
    return p;
}

static void remove_place(const struct place *p)
{
    _cleanup_close_ int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ASSERT_OK(agx_path_remove_tree(root, p->dir + 1, NULL));
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    ASSERT_INT(0, stat(path, &st));
    return st.st_mode & 07777;
}

static struct agx_str content(const char *path, struct agx_buf *b)
{
    agx_buf_clear(b);
    ASSERT_OK(agx_fd_read_file(AT_FDCWD, path, b, NULL));
    return agx_buf_peek(b);
}

static bool has(const char *path, const char *words)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(10000);

    (void)content(path, &b);
    ASSERT_OK(agx_buf_push(&b, '\0'));
    return strstr((const char *)b.data, words) != NULL;
}

TEST(dirs_own_makes_what_is_missing_and_narrows_what_is_there)
{
    struct place p = make_place("a/b");

    ASSERT_OK(agx_dirs_own(p.file, 0700, NULL));
    ASSERT_UINT(0700, mode_of(p.file));
    ASSERT_INT(0, chmod(p.file, 0777));
    ASSERT_OK(agx_dirs_any(p.file, NULL));
    ASSERT_UINT(0777, mode_of(p.file));
    ASSERT_OK(agx_dirs_own(p.file, 0700, NULL));
    ASSERT_UINT(0700, mode_of(p.file));
    remove_place(&p);
}

TEST(dirs_own_refuses_what_is_no_directory_or_a_strangers)
{
    _cleanup_(agx_error_freep) struct agx_error *file = NULL, *link = NULL, *other = NULL;
    struct place p = make_place("x");
    int fd = open(p.file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    ASSERT_TRUE(fd >= 0);
    close(fd);
    ASSERT_TRUE(agx_dirs_own(p.file, 0700, &file) < 0);
    ASSERT_MESSAGE(file, p.file);
    ASSERT_INT(0, unlink(p.file));
    ASSERT_INT(0, symlink("/tmp", p.file));
    ASSERT_TRUE(agx_dirs_own(p.file, 0700, &link) < 0);
    ASSERT_INT(0, unlink(p.file));
    if (geteuid() == 0) {
        ASSERT_INT(0, mkdir(p.file, 0755));
        ASSERT_INT(0, chown(p.file, 12345, 12345));
        ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_dirs_own(p.file, 0700, &other));
        ASSERT_MESSAGE(other, "12345");
        ASSERT_UINT(0755, mode_of(p.file));
    }
    remove_place(&p);
}

TEST(instance_held_names_path_and_pid_and_is_free_after_close)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100);
    struct agx_instance *first = NULL, *second = NULL;
    struct place p = make_place("d.lock");
    char pid[32];

    ASSERT_OK(agx_instance_open(p.file, 0600, &first, NULL));
    snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    ASSERT_STR(agx_str_from(pid), content(p.file, &b));
    ASSERT_CODE(AGX_ALREADY_EXISTS, agx_instance_open(p.file, 0600, &second, &err));
    pid[strlen(pid) - 1] = '\0';
    ASSERT_MESSAGE(err, p.file);
    ASSERT_MESSAGE(err, "already held by process");
    ASSERT_MESSAGE(err, pid);
    first = agx_instance_close(first);
    ASSERT_OK(agx_instance_open(p.file, 0600, &second, NULL));
    second = agx_instance_close(second);
    ASSERT_NULL(agx_instance_close(NULL));
    ASSERT_INT(0, access(p.file, F_OK));
    remove_place(&p);
}

TEST(instance_of_a_killed_holder_is_free_and_its_pid_replaced)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100);
    struct place p = make_place("d.lock");
    struct agx_instance *mine = NULL;
    char mine_text[32];
    pid_t child = fork();

    if (child == 0) {
        if (agx_instance_open(p.file, 0600, &mine, NULL) == 0)
            (void)raise(SIGKILL);
        _exit(1);
    }
    ASSERT_INT(child, waitpid(child, NULL, 0));
    ASSERT_OK(agx_instance_open(p.file, 0600, &mine, NULL));
    snprintf(mine_text, sizeof(mine_text), "%ld\n", (long)getpid());
    ASSERT_STR(agx_str_from(mine_text), content(p.file, &b));
    agx_instance_close(mine);
    remove_place(&p);
}

/* As a program that is being started has it: until it is that program. */
TEST(instance_of_a_killed_holder_is_waited_for_while_a_child_of_it_has_it)
{
    struct place p = make_place("d.lock");
    struct agx_instance *mine = NULL;
    int ends[2];
    char byte;
    pid_t child;

    ASSERT_INT(0, pipe(ends));
    child = fork();
    if (child == 0) {
        if (agx_instance_open(p.file, 0600, &mine, NULL) == 0 && fork() == 0) {
            ASSERT_INT(1, write(ends[1], "x", 1));
            (void)usleep(50000);
            _exit(0);
        }
        while (true)
            (void)pause();
    }
    ASSERT_INT(1, read(ends[0], &byte, 1));
    ASSERT_INT(0, kill(child, SIGKILL));
    ASSERT_INT(child, waitpid(child, NULL, 0));
    ASSERT_OK(agx_instance_open(p.file, 0600, &mine, NULL));
    agx_instance_close(mine);
    (void)close(ends[0]);
    (void)close(ends[1]);
    remove_place(&p);
}

TEST(instance_refuses_a_symlink_and_a_missing_directory)
{
    struct place p = make_place("d.lock");
    struct agx_instance *i = NULL;

    ASSERT_INT(0, symlink("/tmp/agx-no-such-file", p.file));
    ASSERT_TRUE(agx_instance_open(p.file, 0600, &i, NULL) < 0);
    ASSERT_CODE(AGX_NOT_FOUND, agx_instance_open("/tmp/agx-none/x.lock", 0600, &i, NULL));
    remove_place(&p);
}

static void stop_loop(uv_timer_t *t)
{
    agx_loop_stop(t->data);
}

static void run_for(struct agx_loop *l, uint64_t ms)
{
    uv_timer_t t = { .data = l };

    (void)uv_timer_init(agx_loop_uv(l), &t);
    (void)uv_timer_start(&t, stop_loop, ms, 0);
    test_loop_run_until_stop(l);
    uv_close((uv_handle_t *)&t, NULL);
    (void)uv_run(agx_loop_uv(l), UV_RUN_NOWAIT);
}

TEST(logfile_at_its_size_is_put_aside_and_old_ones_go)
{
    const struct agx_log_config log = AGX_LOG_CONFIG_INIT;
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct agx_loop *l = test_loop_open();
    struct place p = make_place("d.log");
    const struct agx_logfile_config c = { p.file, 10, 2, 1 };
    struct agx_logfile *f = NULL;
    char older[128];

    ASSERT_OK(agx_logfile_open(l, &c, &log, &f, NULL));
    ASSERT_UINT(0600, mode_of(p.file));
    for (int i = 1; i <= 4; i++) {
        AGX_LOG(AGX_LOG_INFO, "test.line", AGX_F_INT("n", i));
        run_for(l, 30);
        ASSERT_UINT(0, content(p.file, &b).len);
    }
    snprintf(older, sizeof(older), "%s.1", p.file);
    ASSERT_TRUE(has(older, "n=4\n"));
    snprintf(older, sizeof(older), "%s.2", p.file);
    ASSERT_TRUE(has(older, "n=3\n"));
    snprintf(older, sizeof(older), "%s.3", p.file);
    ASSERT_INT(-1, access(older, F_OK));
    f = agx_logfile_close(f);
    agx_log_setup(&log);
    test_loop_close(l);
    ASSERT_NULL(agx_logfile_close(NULL));
    remove_place(&p);
}

TEST(logfile_moved_away_is_made_again_when_reopened)
{
    const struct agx_log_config log = AGX_LOG_CONFIG_INIT;
    struct agx_loop *l = test_loop_open();
    struct place p = make_place("d.log");
    const struct agx_logfile_config c = { p.file, 1 << 20, 0, 1 };
    struct agx_logfile *f = NULL;
    char moved[128];

    ASSERT_OK(agx_logfile_open(l, &c, &log, &f, NULL));
    snprintf(moved, sizeof(moved), "%s.moved", p.file);
    ASSERT_INT(0, rename(p.file, moved));
    AGX_LOG(AGX_LOG_INFO, "test.before");
    ASSERT_OK(agx_logfile_reopen(f, NULL));
    AGX_LOG(AGX_LOG_INFO, "test.after");
    ASSERT_TRUE(has(moved, "test.before"));
    ASSERT_TRUE(has(p.file, "test.after"));
    agx_logfile_close(f);
    agx_log_setup(&log);
    test_loop_close(l);
    remove_place(&p);
}

TEST(logfile_that_cannot_be_opened_is_an_error_with_its_path)
{
    const struct agx_logfile_config c = { "/tmp/agx-none/d.log", 1, 0, 1 };
    const struct agx_log_config log = AGX_LOG_CONFIG_INIT;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_loop *l = test_loop_open();
    struct agx_logfile *f = NULL;

    ASSERT_CODE(AGX_NOT_FOUND, agx_logfile_open(l, &c, &log, &f, &err));
    ASSERT_MESSAGE(err, "/tmp/agx-none/d.log");
    test_loop_close(l);
}

static void set_listen(const char *pid, const char *fds)
{
    ASSERT_INT(0, setenv("LISTEN_PID", pid, 1));
    ASSERT_INT(0, setenv("LISTEN_FDS", fds, 1));
}

TEST(systemd_descriptors_are_ours_only_with_our_pid)
{
    struct agx_systemd s;
    char pid[32];

    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    set_listen(pid, "2");
    ASSERT_OK(agx_systemd_init(&s, NULL));
    ASSERT_UINT(2, s.n_fds);
    ASSERT_NULL(getenv("LISTEN_FDS"));
    agx_systemd_done(&s);
    set_listen("1", "2");
    ASSERT_OK(agx_systemd_init(&s, NULL));
    ASSERT_UINT(0, s.n_fds);
    agx_systemd_done(&s);
    set_listen(pid, "many");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_systemd_init(&s, NULL));
    set_listen("me", "1");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_systemd_init(&s, NULL));
    ASSERT_INT(0, unsetenv("LISTEN_FDS"));
    ASSERT_OK(agx_systemd_init(&s, NULL));
    ASSERT_OK(agx_systemd_notify(&s, "READY=1", NULL));
    agx_systemd_done(&s);
    agx_systemd_done(NULL);
}

/* What a manager at that address hears. */
static void check_notify(const char *name, bool abstract)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    struct agx_systemd s;
    char heard[32];
    ssize_t n;

    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", name);
    if (abstract)
        sa.sun_path[0] = '\0';
    ASSERT_INT(0, bind(fd, (struct sockaddr *)&sa,
                       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))));
    ASSERT_INT(0, setenv("NOTIFY_SOCKET", name, 1));
    ASSERT_OK(agx_systemd_init(&s, NULL));
    ASSERT_OK(agx_systemd_notify(&s, "READY=1", NULL));
    n = recv(fd, heard, sizeof(heard), MSG_DONTWAIT);
    ASSERT_STR(AGX_STR("READY=1"), agx_str_bytes(heard, n > 0 ? (size_t)n : 0));
    agx_systemd_done(&s);
}

TEST(systemd_notify_reaches_paths_and_abstract_names)
{
    struct place p = make_place("notify");
    char name[64];

    check_notify(p.file, false);
    snprintf(name, sizeof(name), "@agx-test-%ld", (long)getpid());
    check_notify(name, true);
    remove_place(&p);
}

TEST(systemd_notify_to_nobody_is_an_error_for_the_log)
{
    const char *const names[] = { "/tmp/agx-none/socket", "relative" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(names); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_systemd s;

        ASSERT_INT(0, setenv("NOTIFY_SOCKET", names[i], 1));
        ASSERT_OK(agx_systemd_init(&s, NULL));
        ASSERT_TRUE(agx_systemd_notify(&s, "READY=1", &err) < 0);
        ASSERT_MESSAGE(err, names[i]);
        agx_systemd_done(&s);
    }
}
