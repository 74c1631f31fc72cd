/* agentix-unpack: into a directory, and into a sandbox whose commands then examine the files. */
#include "tests/support/paths.h"
#include "tests/support/plan.h"

#include "tests/support/tar.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* What it said. */
static char said[1024];

/* Runs it with these arguments (the last is NULL) and the tar on standard input. Its status. */
static int unpack(const struct test_tar *tar, const char *const *args)
{
    const char *argv[16] = { test_path_unpack };
    int in[2], out[2], status = 0;
    size_t len;
    pid_t pid;
    ssize_t n;

    for (size_t i = 0; args[i]; i++)
        argv[i + 1] = args[i];
    ASSERT_INT(0, pipe(in));
    ASSERT_INT(0, pipe(out));
    pid = fork();
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 2);
        close(in[1]);
        execv(test_path_unpack, (char *const *)argv);
        _exit(99);
    }
    close(in[0]);
    close(out[1]);
    signal(SIGPIPE, SIG_IGN);
    if (write(in[1], tar->bytes.data, tar->bytes.len) < 0)
        ASSERT_INT(EPIPE, errno);
    close(in[1]);
    for (len = 0; (n = read(out[0], said + len, sizeof(said) - 1 - len)) > 0;)
        len += (size_t)n;
    said[len] = '\0';
    close(out[0]);
    ASSERT_INT(pid, waitpid(pid, &status, 0));
    ASSERT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static struct test_tar small_tar(void)
{
    struct test_tar tar = test_tar_new();

    test_tar_add(&tar, (struct test_tar_entry){
                           .name = "dir/", .type = '5', .mode = 0750, .uid = 1000, .gid = 100 });
    test_tar_add(
        &tar,
        (struct test_tar_entry){
            .name = "dir/file", .mode = 0640, .uid = 1000, .gid = 100, .data = AGX_STR("text\n") });
    test_tar_end(&tar);
    return tar;
}

TEST(unpack_program_without_a_place_says_how_it_is_used)
{
    static const char *const none[] = { NULL };
    static const char *const both[] = { "--root", "/tmp", "--mnt-ns", "3", "--user-ns", "3", NULL };
    static const char *const half[] = { "--mnt-ns", "3", NULL };
    static const char *const relative[] = { "--root", "/tmp", "--into", "here", NULL };
    const char *const *const all[] = { none, both, half, relative };
    struct test_tar tar = small_tar();

    for (size_t i = 0; i < AGX_ARRAY_LEN(all); i++) {
        ASSERT_INT(AGX_INVALID_ARGUMENT, unpack(&tar, all[i]));
        ASSERT_NOT_NULL(strstr(said, "usage: agentix-unpack"));
    }
    test_tar_done(&tar);
}

TEST(unpack_program_writes_into_a_directory)
{
    char dir[] = "/tmp/agx-unpack-XXXXXX", path[64];
    const char *const args[] = { "--root", dir, "--into", "/a/b", NULL };
    struct test_tar tar = small_tar();
    struct stat st;

    ASSERT_NOT_NULL(mkdtemp(dir));
    ASSERT_INT(0, unpack(&tar, args));
    ASSERT_CSTR("", said);
    snprintf(path, sizeof(path), "%s/a/b/dir/file", dir);
    ASSERT_INT(0, stat(path, &st));
    ASSERT_INT(5, st.st_size);
    tar.bytes.len = 700;
    ASSERT_INT(AGX_INVALID_ARGUMENT, unpack(&tar, args));
    ASSERT_NOT_NULL(strstr(said, "tar"));
    test_tar_done(&tar);
    snprintf(path, sizeof(path), "rm -r %s", dir);
    ASSERT_INT(0, system(path));
}

/* ---- a sandbox ---- */

struct place {
    struct test_plan x;
    int user_ns, mnt_ns;
    char user_text[16], mnt_text[16];
    const char *args[8];
};

static int open_ns(pid_t pid, const char *name, char text[16])
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
    fd = open(path, O_RDONLY); /* the program inherits it */
    ASSERT_TRUE(fd >= 0);
    snprintf(text, 16, "%d", fd);
    return fd;
}

static void place_open(struct place *p, const char *into)
{
    test_plan_open(&p->x);
    test_plan_boot(&p->x);
    p->user_ns = open_ns(p->x.init.pid, "user", p->user_text);
    p->mnt_ns = open_ns(p->x.init.pid, "mnt", p->mnt_text);
    memcpy(p->args,
           ((const char *[]){ "--user-ns", p->user_text, "--mnt-ns", p->mnt_text, "--into", into,
                              NULL }),
           7 * sizeof(char *));
}

static void place_close(struct place *p)
{
    close(p->user_ns);
    close(p->mnt_ns);
    test_plan_close(&p->x);
}

static const char *say(struct place *p, const char *script)
{
    static unsigned n;
    char id[16];

    snprintf(id, sizeof(id), "say-%u", n++);
    test_init_run(&p->x.init, id, "sh", "-c", script);
    return p->x.init.out;
}

TEST(unpack_program_makes_files_of_the_sandbox_s_users)
{
    struct place p;
    struct test_tar tar = small_tar();

    place_open(&p, "/home/new");
    ASSERT_INT(0, unpack(&tar, p.args));
    ASSERT_CSTR("text\n", say(&p, "cat /home/new/dir/file"));
    ASSERT_CSTR("1000 100 640\n", say(&p, "stat -c '%u %g %a' /home/new/dir/file"));
    ASSERT_CSTR("0 0 755\n", say(&p, "stat -c '%u %g %a' /home/new"));
    test_tar_done(&tar);
    place_close(&p);
}

TEST(unpack_program_follows_the_sandbox_s_symlinks_and_leaves_the_host_alone)
{
    struct place p;
    struct test_tar tar = small_tar();
    char link[160], outside[64] = "/tmp/agx-outside-XXXXXX";

    ASSERT_NOT_NULL(mkdtemp(outside));
    place_open(&p, "/way");
    /* The same path is a directory of the host and, inside, one that the link makes. */
    snprintf(link, sizeof(link), "mkdir -p %s && ln -s %s /way && ls -d /way/", outside, outside);
    ASSERT_CSTR("/way/\n", say(&p, link));
    ASSERT_INT(0, unpack(&tar, p.args));
    snprintf(link, sizeof(link), "cat %s/dir/file", outside);
    ASSERT_CSTR("text\n", say(&p, link));
    ASSERT_INT(0, rmdir(outside)); /* still empty */
    test_tar_done(&tar);
    place_close(&p);
}

TEST(unpack_program_says_what_it_could_not_do_in_a_sandbox)
{
    struct place p;
    struct test_tar tar = test_tar_new();

    test_tar_add(&tar, (struct test_tar_entry){ .name = "maps", .data = AGX_STR("x") });
    test_tar_end(&tar);
    place_open(&p, "/proc/self");
    ASSERT_TRUE(unpack(&tar, p.args) != 0);
    ASSERT_TRUE(said[0] != '\0');
    test_tar_done(&tar);
    place_close(&p);
}
