/* The state of a sandbox on the native backend's disk: its record, its files, its processes. */
#include "backend/native/boxdirs.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/spec.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

/* ---- the record ---- */

static void fill(struct agx_native_state *s)
{
    ASSERT_OK(agx_native_state_init(s, "web-1", 2, NULL));
    s->made = true;
    s->network = AGX_NETWORK_EGRESS;
    ASSERT_OK(agx_text_set(&s->interface, "agx01234567", NULL));
    ASSERT_OK(agx_subnet_parse(AGX_STR("10.213.0.16/28"), &s->subnet, NULL));
    ASSERT_OK(agx_words_add(&s->egress, AGX_STR("pypi.org:443"), NULL));
    ASSERT_OK(agx_words_add(&s->hosts, AGX_STR("pypi.org:151.101.0.223"), NULL));
    s->ports = (struct agx_native_proc){ 77, 1234, "boot" };
    ASSERT_OK(agx_native_state_set_ports(
        s, (struct agx_port[]){ { 80, 8080, AGX_PROTOCOL_TCP }, { 53, 5353, AGX_PROTOCOL_UDP } }, 2,
        NULL));
    ASSERT_OK(agx_text_set(&s->parts[1].dns, "127.0.0.53", NULL));
    s->parts[0].id_base = 1879048192;
    s->parts[0].init = (struct agx_native_proc){ 4711, 987654321, "boot" };
    s->parts[1].oom = true;
    ASSERT_OK(agx_text_set(&s->parts[0].image, "sha256:abc", NULL));
    ASSERT_OK(agx_text_set(&s->parts[0].user, "app", NULL));
    ASSERT_OK(agx_text_set(&s->parts[0].cwd, "/srv", NULL));
}

static void check(const struct agx_native_state *s)
{
    char text[AGX_SUBNET_TEXT];

    ASSERT_CSTR("web-1", s->sandbox_id);
    ASSERT_TRUE(s->made);
    ASSERT_INT(AGX_NETWORK_EGRESS, s->network);
    ASSERT_CSTR("agx01234567", s->interface);
    ASSERT_CSTR("10.213.0.16/28", agx_subnet_format(&s->subnet, text));
    ASSERT_CSTR("pypi.org:443", s->egress.items[0]);
    ASSERT_CSTR("pypi.org:151.101.0.223", s->hosts.items[0]);
    ASSERT_INT(77, s->ports.pid);
    ASSERT_UINT(2, s->n_forwards);
    ASSERT_UINT(80, s->forwards[0].container_port);
    ASSERT_UINT(8080, s->forwards[0].host_port);
    ASSERT_INT(AGX_PROTOCOL_TCP, s->forwards[0].protocol);
    ASSERT_UINT(5353, s->forwards[1].host_port);
    ASSERT_INT(AGX_PROTOCOL_UDP, s->forwards[1].protocol);
    ASSERT_NULL(s->parts[0].dns);
    ASSERT_CSTR("127.0.0.53", s->parts[1].dns);
    ASSERT_UINT(2, s->n_parts);
    ASSERT_UINT(1879048192, s->parts[0].id_base);
    ASSERT_INT(4711, s->parts[0].init.pid);
    ASSERT_UINT(987654321, s->parts[0].init.start);
    ASSERT_CSTR("boot", s->parts[0].init.boot);
    ASSERT_CSTR("sha256:abc", s->parts[0].image);
    ASSERT_CSTR("app", s->parts[0].user);
    ASSERT_CSTR("/srv", s->parts[0].cwd);
    ASSERT_FALSE(s->parts[0].oom);
    ASSERT_INT(0, s->parts[1].init.pid);
    ASSERT_NULL(s->parts[1].image);
    ASSERT_TRUE(s->parts[1].oom);
}

TEST(native_state_reads_back_what_it_wrote_and_copies_are_whole)
{
    _cleanup_(agx_native_state_done) struct agx_native_state s = { 0 }, again = { 0 }, copy = { 0 };
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(10000);

    fill(&s);
    ASSERT_OK(agx_native_state_print(&s, &text, NULL));
    ASSERT_OK(agx_native_state_parse(&again, "web-1", agx_buf_peek(&text), NULL));
    check(&again);
    ASSERT_OK(agx_native_state_copy(&copy, &s, NULL));
    check(&copy);
}

static void check_refused(const char *text, const char *words)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_native_state s;

    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_native_state_parse(&s, "web-1", agx_str_from(text), &err));
    ASSERT_MESSAGE(err, words);
}

TEST(native_state_refuses_what_is_no_record_of_that_sandbox)
{
    check_refused("", "");
    check_refused("[]", "version");
    check_refused("{\"version\":2,\"sandbox\":\"web-1\",\"parts\":[{}]}", "version");
    check_refused("{\"version\":1,\"sandbox\":\"web-2\",\"parts\":[{}]}", "web-1");
    check_refused("{\"version\":1,\"sandbox\":\"web-1\",\"parts\":[]}", "web-1");
    check_refused("{\"version\":1,\"sandbox\":\"web-1\",\"parts\":[{}]}", "made");
    check_refused("{\"version\":1,\"sandbox\":\"web-1\",\"made\":true,\"network\":9,"
                  "\"parts\":[{}]}",
                  "network");
    check_refused("{\"version\":1,\"sandbox\":\"web-1\",\"made\":true,\"network\":0,"
                  "\"parts\":[{\"id_base\":0,\"oom\":false,\"init\":{\"pid\":1}}]}",
                  "pid");
    check_refused("{\"version\":1,\"sandbox\":\"web-1\",\"made\":true,\"network\":0,"
                  "\"hosts\":[1],\"parts\":[{\"id_base\":0,\"oom\":false}]}",
                  "hosts");
    check_refused("{\"version\":1,\"sandbox\":\"web-1\",\"made\":true,\"network\":0,"
                  "\"forwards\":[{\"inside\":80,\"host\":65536,\"protocol\":0}],"
                  "\"parts\":[{\"id_base\":0,\"oom\":false}]}",
                  "host");
}

/* ---- processes ---- */

TEST(native_proc_is_found_again_and_no_other_is_taken_for_it)
{
    struct agx_native_proc p = { 0 }, other;
    pid_t pid = fork();
    int fd;

    ASSERT_TRUE(pid >= 0);
    if (pid == 0) {
        for (;;)
            (void)pause();
    }
    ASSERT_OK(agx_native_proc_note(&p, pid, NULL));
    ASSERT_INT(pid, p.pid);
    fd = agx_native_proc_open(&p, NULL);
    ASSERT_OK(fd);
    (void)close(fd);
    other = p;
    other.start++;
    ASSERT_CODE(AGX_NOT_FOUND, agx_native_proc_open(&other, NULL));
    other = p;
    other.boot[0] ^= 1; /* the host was booted since */
    ASSERT_CODE(AGX_NOT_FOUND, agx_native_proc_open(&other, NULL));
    (void)kill(pid, SIGKILL);
    ASSERT_INT(pid, waitpid(pid, NULL, 0));
    ASSERT_CODE(AGX_NOT_FOUND, agx_native_proc_open(&p, NULL));
    ASSERT_CODE(AGX_NOT_FOUND, agx_native_proc_note(&other, pid, NULL));
}

/* ---- files ---- */

struct world {
    char dir[64], native[80];
    struct agx_boxdirs dirs;
};

static void open_world(struct world *w)
{
    (void)snprintf(w->dir, sizeof(w->dir), "/tmp/agx-boxes-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(w->dir));
    (void)snprintf(w->native, sizeof(w->native), "%s/native", w->dir);
    ASSERT_OK(agx_boxdirs_open(&w->dirs, w->native, NULL));
}

static void close_world(struct world *w)
{
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    agx_boxdirs_close(&w->dirs);
    ASSERT_OK(agx_path_remove_tree(tmp, w->dir + strlen("/tmp/"), NULL));
    (void)close(tmp);
}

static struct stat look(const struct world *w, const char *path)
{
    char whole[256];
    struct stat st = { 0 };

    (void)snprintf(whole, sizeof(whole), "%s/%s", w->native, path);
    (void)lstat(whole, &st);
    return st;
}

TEST(boxdirs_keep_the_record_and_a_damaged_one_is_an_error)
{
    _cleanup_(agx_native_state_done) struct agx_native_state s = { 0 }, again = { 0 };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct world w;
    int fd;

    open_world(&w);
    fill(&s);
    ASSERT_FALSE(agx_boxdirs_has(&w.dirs, "web-1"));
    ASSERT_CODE(AGX_NOT_FOUND, agx_boxdirs_read(&w.dirs, "web-1", &again, NULL));
    ASSERT_OK(agx_boxdirs_make(&w.dirs, "web-1", NULL));
    ASSERT_CODE(AGX_ALREADY_EXISTS, agx_boxdirs_make(&w.dirs, "web-1", NULL));
    ASSERT_TRUE(agx_boxdirs_has(&w.dirs, "web-1"));
    ASSERT_CODE(AGX_NOT_FOUND, agx_boxdirs_read(&w.dirs, "web-1", &again, NULL));
    for (int durable = 0; durable < 2; durable++) {
        ASSERT_OK(agx_boxdirs_write(&w.dirs, &s, durable, NULL));
        ASSERT_OK(agx_boxdirs_read(&w.dirs, "web-1", &again, NULL));
        check(&again);
        agx_native_state_done(&again);
    }
    ASSERT_UINT(0600, look(&w, "boxes/web-1/state.json").st_mode & 0777);
    fd = openat(w.dirs.boxes_fd, "web-1/state.json", O_WRONLY | O_TRUNC | O_CLOEXEC);
    (void)close(fd);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_boxdirs_read(&w.dirs, "web-1", &again, &err));
    ASSERT_MESSAGE(err, "web-1");
    close_world(&w);
}

TEST(boxdirs_part_belongs_to_its_ids_keeps_upper_and_makes_work_anew)
{
    const uint32_t base = geteuid() == 0 ? 1879048192 : geteuid();
    struct world w;
    int fd;

    open_world(&w);
    ASSERT_OK(agx_boxdirs_make(&w.dirs, "web-1", NULL));
    fd = agx_boxdirs_part(&w.dirs, "web-1", 1, NULL);
    ASSERT_OK(fd);
    ASSERT_OK(agx_boxdirs_fs(&w.dirs, fd, base, NULL));
    ASSERT_UINT(base, look(&w, "boxes/web-1/1/fs").st_uid);
    ASSERT_UINT(base, look(&w, "boxes/web-1/1/fs/upper").st_uid);
    ASSERT_UINT(0755, look(&w, "boxes/web-1/1/fs/upper").st_mode & 0777);
    ASSERT_UINT(base, look(&w, "boxes/web-1/1/fs/work").st_gid);
    ASSERT_OK(agx_boxdirs_put(fd, "fs/etc/hosts", AGX_STR("127.0.0.1 localhost\n"), base, NULL));
    ASSERT_UINT(20, look(&w, "boxes/web-1/1/fs/etc/hosts").st_size);
    ASSERT_UINT(base, look(&w, "boxes/web-1/1/fs/etc/hosts").st_uid);
    ASSERT_OK(mkdirat(fd, "fs/upper/kept", 0700));
    ASSERT_OK(fchmodat(fd, "fs/upper", 0711, 0)); /* as its root may */
    ASSERT_OK(mkdirat(fd, "fs/work/incompat", 0000));
    (void)close(fd);
    fd = agx_boxdirs_part(&w.dirs, "web-1", 1, NULL);
    ASSERT_OK(fd);
    ASSERT_OK(agx_boxdirs_fs(&w.dirs, fd, base, NULL));
    ASSERT_TRUE(S_ISDIR(look(&w, "boxes/web-1/1/fs/upper/kept").st_mode));
    ASSERT_UINT(0711, look(&w, "boxes/web-1/1/fs/upper").st_mode & 0777);
    ASSERT_UINT(0, look(&w, "boxes/web-1/1/fs/work/incompat").st_mode);
    (void)close(fd);
    close_world(&w);
}

TEST(boxdirs_ground_has_what_is_mounted_on_and_stays_as_it_is)
{
    static const char *const files[] = { "ground/etc/hosts", "ground/etc/hostname",
                                         "ground/etc/resolv.conf" };
    struct world w;

    open_world(&w);
    for (int i = 0; i < 2; i++)
        ASSERT_OK(agx_boxdirs_ground(w.native, NULL));
    for (size_t i = 0; i < AGX_ARRAY_LEN(files); i++) {
        ASSERT_INT(S_IFREG | 0644, look(&w, files[i]).st_mode);
        ASSERT_INT(0, look(&w, files[i]).st_size);
    }
    ASSERT_INT(S_IFDIR | 0755, look(&w, "ground/proc").st_mode);
    close_world(&w);
}

TEST(boxdirs_ground_that_cannot_be_made_is_an_error)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    ASSERT_CODE(AGX_NOT_FOUND, agx_boxdirs_ground("/nonexistent", &err));
    ASSERT_NOT_NULL(strstr(err->message, "/nonexistent/ground"));
}

TEST(boxdirs_are_spread_where_the_file_system_is_an_ext4)
{
    struct statfs fs;
    struct world w;
    int flags = 0;

    open_world(&w);
    ASSERT_INT(0, fstatfs(w.dirs.boxes_fd, &fs));
    if (fs.f_type == EXT4_SUPER_MAGIC) {
        ASSERT_INT(0, ioctl(w.dirs.boxes_fd, FS_IOC_GETFLAGS, &flags));
        ASSERT_TRUE(flags & FS_TOPDIR_FL);
    }
    ASSERT_OK(agx_boxdirs_make(&w.dirs, "web-1", NULL));
    ASSERT_TRUE(agx_boxdirs_has(&w.dirs, "web-1"));
    close_world(&w);
}

TEST(boxdirs_trash_takes_all_of_it_away_and_is_emptied)
{
    _cleanup_(agx_words_done) struct agx_words ids = { 0 }, left = { 0 };
    struct world w;
    int fd;

    open_world(&w);
    ASSERT_OK(agx_boxdirs_make(&w.dirs, "web-1", NULL));
    ASSERT_OK(agx_boxdirs_make(&w.dirs, "web-2", NULL));
    fd = agx_boxdirs_part(&w.dirs, "web-1", 0, NULL);
    ASSERT_OK(fd);
    ASSERT_OK(agx_boxdirs_fs(&w.dirs, fd, geteuid(), NULL));
    (void)close(fd);
    ASSERT_OK(agx_boxdirs_list(&w.dirs, &ids, NULL));
    ASSERT_UINT(2, ids.len);
    ASSERT_OK(agx_boxdirs_trash(&w.dirs, "web-1", NULL));
    ASSERT_OK(agx_boxdirs_trash(&w.dirs, "web-1", NULL)); /* it is already */
    ASSERT_OK(agx_boxdirs_list(&w.dirs, &left, NULL));
    ASSERT_UINT(1, left.len);
    ASSERT_CSTR("web-2", left.items[0]);
    ASSERT_OK(agx_boxdirs_empty_trash(&w.dirs, NULL));
    ASSERT_UINT(2, look(&w, "trash").st_nlink);
    close_world(&w);
}
