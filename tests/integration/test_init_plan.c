/* agentix-init --plan: native sandboxes, examined from inside. */
#include "tests/support/plan.h"

#include "base/fd.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

/* What a shell inside says to that: output, then errors. */
static const char *say(struct test_plan *x, const char *script)
{
    static char both[2 * sizeof(x->init.out)];
    static unsigned n;
    char id[16];

    (void)snprintf(id, sizeof(id), "say-%u", n++);
    test_init_run(&x->init, id, "sh", "-c", script);
    (void)snprintf(both, sizeof(both), "%s%s", x->init.out, x->init.err);
    return both;
}

static void open_and_boot(struct test_plan *x)
{
    test_plan_open(x);
    test_plan_boot(x);
}

TEST(plan_makes_a_root_in_which_commands_run)
{
    struct test_plan x;

    open_and_boot(&x);
    ASSERT_CSTR("0\nbox\n/\n", say(&x, "id -u; cat /proc/sys/kernel/hostname; pwd"));
    ASSERT_CSTR("agentix-init\n", say(&x, "cat /proc/1/comm"));
    ASSERT_CSTR("         0 1879048192      65536\n", say(&x, "cat /proc/self/uid_map"));
    ASSERT_CSTR("", say(&x, "echo x > /file && rm /bin/yes && mkdir /a && rm -r /a"));
    ASSERT_INT(0, x.init.exit_code);
    test_plan_close(&x);
}

TEST(mounts_of_a_sandbox_show_nothing_of_the_host)
{
    struct test_plan x;
    const char *seen;

    open_and_boot(&x);
    seen = say(&x, "cat /proc/self/mountinfo");
    ASSERT_NULL(strstr(seen, "/tmp"));
    ASSERT_NULL(strstr(seen, x.dir));
    ASSERT_NOT_NULL(strstr(seen, "upperdir=rw/upper"));
    ASSERT_NOT_NULL(strstr(seen, "volatile"));
    test_plan_close(&x);
}

TEST(nothing_of_who_started_it_leaks_in)
{
    struct test_plan x;
    mode_t before = umask(0);

    (void)setenv("SECRET", "of the host", 1);
    (void)signal(SIGUSR1, SIG_IGN);
    open_and_boot(&x);
    ASSERT_CSTR("COLOUR=blue HOME=/root PATH=/bin\n",
                say(&x, "echo $(busybox env | busybox grep -v -e PWD -e SHLVL | busybox sort)"));
    ASSERT_CSTR("0022\n", say(&x, "umask"));
    ASSERT_CSTR("512\n1024\n", say(&x, "ulimit -n; ulimit -H -n"));
    ASSERT_CSTR("0 1 2 3\n", say(&x, "echo $(ls /proc/self/fd)")); /* 3: what ls reads */
    test_init_run(&x.init, "signals", "busybox", "grep", "SigIgn", "/proc/self/status");
    ASSERT_CSTR("SigIgn:\t0000000000000000\n", x.init.out);
    ASSERT_CSTR("1 1\n", say(&x, "read p c s pp g i r </proc/1/stat; echo $g $i"));
    ASSERT_CSTR("0\n", say(&x, "cat /proc/self/oom_score_adj"));
    (void)umask(before);
    (void)unsetenv("SECRET");
    (void)signal(SIGUSR1, SIG_DFL);
    test_plan_close(&x);
}

TEST(main_process_has_no_descriptor_of_the_host)
{
    struct test_plan x;

    test_plan_open(&x);
    test_plan_make_dir(&x, "out");
    x.mounts[0] = (struct test_plan_mount){ test_plan_path(&x, "out"), "/out", AGX_PLAN_IDMAP };
    x.plan.argv =
        TEST_WORDS(&x.argv, "sh", "-c",
                   "for i in 0 1 2; do busybox stat -L -c %d /proc/$$/fd/$i /dev/null; "
                   "done | busybox uniq -c >/out/list; busybox mv /out/list /out/devices; "
                   "exec sleep 1000");
    test_plan_boot(&x);
    ASSERT_CSTR("6\n", say(&x, "until test -e /out/devices; do busybox usleep 1000; done; "
                               "busybox awk '{ print $1 }' /out/devices"));
    test_plan_close(&x);
}

TEST(session_keyring_is_a_new_one)
{
    struct test_plan x;
    char ours[32];

    open_and_boot(&x);
    (void)snprintf(ours, sizeof(ours), "%ld\n", syscall(SYS_keyctl, 0, -3, 0));
    ASSERT_TRUE(strcmp(ours, say(&x, "/prog keyring")) != 0);
    test_plan_close(&x);
}

TEST(root_of_the_sandbox_gets_at_nothing_of_pid_1)
{
    struct test_plan x;

    open_and_boot(&x);
    ASSERT_CSTR("0 ways\n", say(&x, "/prog attack"));
    (void)say(&x, "/prog kill1");
    ASSERT_CSTR("alive\n", say(&x, "echo alive"));
    test_plan_close(&x);
}

TEST(root_of_the_sandbox_has_the_capabilities_of_the_plan_and_no_others)
{
    struct test_plan x;

    test_plan_open(&x);
    x.plan.caps = 0xe3; /* chown, dac_override; kill, setgid, setuid */
    test_plan_boot(&x);
    ASSERT_CSTR("CapInh:\t0000000000000000\nCapPrm:\t00000000000000e3\n"
                "CapEff:\t00000000000000e3\nCapBnd:\t00000000000000e3\n"
                "CapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t0\n",
                say(&x, "busybox grep -e ^Cap -e ^NoNew -e ^Seccomp: /proc/self/status"));
    ASSERT_NOT_NULL(strstr(say(&x, "busybox mount -t tmpfs none /tmp"), "ermi"));
    ASSERT_NOT_NULL(strstr(say(&x, "busybox umount /proc/sys"), "ermi"));
    ASSERT_NOT_NULL(strstr(say(&x, "busybox hostname other"), "ermi"));
    ASSERT_NOT_NULL(strstr(say(&x, "busybox mknod /zero c 1 5"), "ermi"));
    test_plan_close(&x);
}

TEST(system_call_filter_holds_for_commands)
{
    const struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdir, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct test_plan x;

    test_plan_open(&x);
    x.plan.seccomp = agx_str_bytes(filter, sizeof(filter));
    x.plan.flags &= ~AGX_PLAN_NO_NEW_PRIVS; /* it needs none */
    test_plan_boot(&x);
    ASSERT_CSTR("mkdir: can't create directory '/a': Numerical argument out of domain\n",
                say(&x, "mkdir /a"));
    ASSERT_CSTR("NoNewPrivs:\t0\nSeccomp:\t2\n",
                say(&x, "busybox grep -e ^NoNew -e ^Seccomp: /proc/self/status"));
    test_plan_close(&x);
}

TEST(kernel_s_files_are_hidden_or_read_only)
{
    struct test_plan x;

    open_and_boot(&x);
    ASSERT_CSTR("", say(&x, "ls -A /sys/firmware"));
    ASSERT_INT(0, x.init.exit_code);
    ASSERT_CSTR("", say(&x, "cat /proc/version"));
    ASSERT_INT(0, x.init.exit_code);
    ASSERT_NOT_NULL(strstr(say(&x, "echo 1 > /proc/sys/net/ipv4/ip_forward"), "Read-only"));
    ASSERT_NOT_NULL(strstr(say(&x, "echo x > /sys/firmware/x"), "Read-only"));
    ASSERT_NOT_NULL(strstr(say(&x, "mkdir /sys/x"), "Read-only"));
    test_plan_close(&x);
}

TEST(devices_are_the_usual_ones_and_no_more)
{
    struct test_plan x;

    open_and_boot(&x);
    ASSERT_CSTR("fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero\n",
                say(&x, "echo $(ls /dev)"));
    ASSERT_CSTR("8\n",
                say(&x, "echo x > /dev/null; busybox head -c 8 /dev/urandom | busybox wc -c"));
    ASSERT_CSTR("", say(&x, "echo x > /dev/shm/x"));
    ASSERT_NOT_NULL(strstr(say(&x, "echo x > /dev/x"), "Read-only"));
    ASSERT_CSTR("1024\n", say(&x, "busybox df -k /dev/shm | busybox awk '/shm/ { print $2 }'"));
    ASSERT_NOT_NULL(strstr(say(&x, "busybox mount | busybox grep /dev/mqueue"), "type mqueue"));
    test_plan_close(&x);
}

TEST(terminal_works)
{
    const struct test_cmd cmd = { .flags = AGX_INIT_TTY | AGX_INIT_INHERIT,
                                  .rows = 24,
                                  .cols = 80 };
    struct test_plan x;

    open_and_boot(&x);
    test_init_exec(&x.init, "tty", &cmd, TEST_ARGV("sh", "-c", "busybox tty; echo x > /dev/tty"));
    ASSERT_CSTR("/dev/pts/0\r\nx\r\n", x.init.out);
    test_plan_close(&x);
}

TEST(terminals_are_as_many_as_the_plan_says)
{
    struct test_plan x;

    open_and_boot(&x);
    ASSERT_CSTR("0 1 2 ptmx\n",
                say(&x, "exec 3<>/dev/ptmx 4<>/dev/ptmx 5<>/dev/ptmx; echo $(ls /dev/pts)"));
    ASSERT_NOT_NULL(strstr(say(&x, "exec 3<>/dev/ptmx 4<>/dev/ptmx 5<>/dev/ptmx 6<>/dev/ptmx"),
                           "No space left"));
    ASSERT_CSTR("0 ptmx\n", say(&x, "exec 3<>/dev/ptmx; echo $(ls /dev/pts)"));
    test_plan_close(&x);
}

TEST(namespaces_are_its_own)
{
    struct test_plan x;

    open_and_boot(&x);
    ASSERT_CSTR("lo\n", say(&x, "ls /sys/class/net"));
    ASSERT_CSTR("0\n", say(&x, "busybox wc -l < /proc/sysvipc/shm | busybox sed s/1/0/"));
    for (size_t i = 0; i < 7; i++) {
        static const char *const names[] = { "cgroup", "ipc", "mnt", "net", "pid", "user", "uts" };
        char path[64], script[128], ours[64] = { 0 };

        (void)snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
        (void)snprintf(script, sizeof(script), "busybox readlink %s", path);
        ASSERT_TRUE(readlink(path, ours, sizeof(ours) - 2) > 0);
        ours[strlen(ours)] = '\n';
        ASSERT_TRUE(strcmp(ours, say(&x, script)) != 0);
    }
    test_plan_close(&x);
}

/* ---- the root ---- */

TEST(upper_layers_hide_lower_ones)
{
    struct test_plan x;

    test_plan_open(&x);
    test_sandbox_write(&x.image, "/gone", "lower");
    test_sandbox_write(&x.image, "/both", "lower");
    test_plan_make_dir(&x, "layer");
    test_plan_write(&x, "layer/both", "upper");
    ASSERT_INT(0, mknod(test_plan_path(&x, "layer/gone"), S_IFCHR, 0));
    x.layers[0] = test_plan_path(&x, "layer");
    x.layers[1] = x.image.root;
    test_plan_boot(&x);
    ASSERT_CSTR("upper", say(&x, "cat /both"));
    ASSERT_NOT_NULL(strstr(say(&x, "cat /gone"), "No such file"));
    test_plan_close(&x);
}

TEST(ids_of_an_image_are_those_inside)
{
    char path[128];
    struct test_plan x;

    test_plan_open(&x);
    test_sandbox_write(&x.image, "/mine", "x");
    (void)snprintf(path, sizeof(path), "%s/mine", x.image.root);
    ASSERT_INT(0, chown(path, 1000, 1001));
    test_plan_boot(&x);
    ASSERT_CSTR("1000 1001\n", say(&x, "busybox stat -c '%u %g' /mine"));
    ASSERT_CSTR("0 0\n", say(&x, "busybox stat -c '%u %g' /bin/busybox"));
    ASSERT_CSTR("77\n", say(&x, "busybox chown 77 /mine; busybox stat -c %u /mine"));
    test_plan_close(&x);
}

TEST(image_without_layers_is_an_empty_root)
{
    struct test_plan x;
    char prog[128];

    test_plan_open(&x);
    (void)snprintf(prog, sizeof(prog), "%s/bin/busybox", x.image.root);
    x.layers[0] = NULL;
    x.mounts[0] = (struct test_plan_mount){ prog, "/bin/sh", AGX_PLAN_READ_ONLY | AGX_PLAN_IDMAP };
    test_plan_boot(&x);
    ASSERT_CSTR("/bin /dev /proc /sys\n", say(&x, "echo /*"));
    test_plan_close(&x);
}

TEST(files_stay_when_the_sandbox_starts_again)
{
    struct test_plan x;

    open_and_boot(&x);
    (void)say(&x, "echo kept > /kept; rm /bin/yes");
    test_plan_kill(&x);
    test_plan_boot(&x);
    ASSERT_CSTR("kept\n", say(&x, "cat /kept"));
    ASSERT_NOT_NULL(strstr(say(&x, "ls /bin/yes"), "No such file"));
    test_plan_close(&x);
}

/* ---- mounts ---- */

TEST(host_directory_is_shared_with_the_ids_that_it_has)
{
    struct test_plan x;
    struct stat st;

    test_plan_open(&x);
    test_plan_make_dir(&x, "data");
    test_plan_write(&x, "data/file", "of the host\n");
    ASSERT_INT(0, chown(test_plan_path(&x, "data"), 1000, 1000));
    ASSERT_INT(0, chown(test_plan_path(&x, "data/file"), 1000, 1000));
    x.mounts[0] =
        (struct test_plan_mount){ test_plan_path(&x, "data"), "/a/b/data", AGX_PLAN_IDMAP };
    x.mounts[1] = (struct test_plan_mount){ test_plan_path(&x, "data"), "/locked",
                                            AGX_PLAN_IDMAP | AGX_PLAN_READ_ONLY };
    test_plan_boot(&x);
    ASSERT_CSTR("1000\nof the host\n", say(&x, "cd /a/b/data; busybox stat -c %u file; cat file"));
    (void)say(&x, "echo new > /a/b/data/new; busybox chown 1000:1000 /a/b/data/new");
    ASSERT_INT(0, stat(test_plan_path(&x, "data/new"), &st));
    ASSERT_INT(1000, st.st_uid);
    ASSERT_NOT_NULL(strstr(say(&x, "echo x > /locked/x"), "Read-only"));
    ASSERT_CSTR("of the host\n", say(&x, "cat /locked/file"));
    test_plan_close(&x);
}

TEST(source_that_is_open_is_mounted_whatever_its_path_leads_to_by_then)
{
    char kept[128];
    struct test_plan x;
    int fd;

    test_plan_open(&x);
    test_plan_make_dir(&x, "data");
    test_plan_make_dir(&x, "other");
    test_plan_write(&x, "data/file", "was checked\n");
    test_plan_write(&x, "other/file", "was not\n");
    (void)snprintf(kept, sizeof(kept), "%s", test_plan_path(&x, "data"));
    fd = open(kept, O_PATH | O_CLOEXEC);
    ASSERT_TRUE(fd >= 0);
    ASSERT_INT(0,
               renameat2(AT_FDCWD, kept, AT_FDCWD, test_plan_path(&x, "other"), RENAME_EXCHANGE));
    x.mounts[0] = (struct test_plan_mount){ kept, "/data", AGX_PLAN_IDMAP, fd };
    test_plan_boot(&x);
    ASSERT_CSTR("was checked\n", say(&x, "cat /data/file"));
    (void)close(fd);
    test_plan_close(&x);
}

#define LAYERED (AGX_PLAN_IDMAP | AGX_PLAN_READ_ONLY | AGX_PLAN_LAYERED)

static void put_cache(struct test_plan *x, const char *name, const char *text)
{
    char file[64];

    test_plan_make_dir(x, name);
    (void)snprintf(file, sizeof(file), "%s/file", name);
    test_plan_write(x, file, text);
    ASSERT_INT(0, chown(test_plan_path(x, file), 1000, 1000));
    ASSERT_INT(0, chown(test_plan_path(x, name), 1000, 1001));
    ASSERT_INT(0, chmod(test_plan_path(x, name), 0750));
}

TEST(host_directory_below_a_layer_is_read_and_never_written)
{
    struct test_plan x;
    struct stat st;

    test_plan_open(&x);
    put_cache(&x, "one", "of the host\n");
    put_cache(&x, "two", "of the host too\n");
    x.mounts[0] = (struct test_plan_mount){ test_plan_path(&x, "one"), "/a/one", LAYERED };
    x.mounts[1] = (struct test_plan_mount){ test_plan_path(&x, "two"), "/a/two", LAYERED };
    test_plan_boot(&x);
    ASSERT_CSTR("1000 1001 750\n1000\nof the host\n",
                say(&x, "busybox stat -c '%u %g %a' /a/one; busybox stat -c %u /a/one/file; "
                        "cat /a/one/file"));
    ASSERT_CSTR("", say(&x, "cd /a/one && echo mine > file && echo new > new && mkdir dir && "
                            "busybox chmod 4777 new && busybox chown 7 . && rm /a/two/file"));
    ASSERT_CSTR("mine\nnew\n", say(&x, "cat /a/one/file /a/one/new; ls /a/two"));
    ASSERT_NULL(strstr(say(&x, "cat /proc/self/mountinfo"), x.dir));
    test_plan_kill(&x);
    test_plan_boot(&x);
    ASSERT_CSTR("mine\n7\n", say(&x, "cat /a/one/file; busybox stat -c %u /a/one; ls /a/two"));
    ASSERT_INT(0, stat(test_plan_path(&x, "one"), &st));
    ASSERT_UINT(1000, st.st_uid);
    ASSERT_UINT(2, st.st_nlink); /* no directory is in it */
    ASSERT_INT(-1, access(test_plan_path(&x, "one/new"), F_OK));
    ASSERT_INT(0, stat(test_plan_path(&x, "one/file"), &st));
    ASSERT_INT(12, st.st_size);
    ASSERT_INT(0, access(test_plan_path(&x, "two/file"), F_OK));
    test_plan_close(&x);
}

TEST(file_and_socket_of_the_host_are_shared)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    struct test_plan x;
    int fd;

    test_plan_open(&x);
    test_plan_write(&x, "hosts", "127.0.0.1 box\n");
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", test_plan_path(&x, "sock"));
    ASSERT_INT(0, bind(fd, (const struct sockaddr *)&a, sizeof(a)));
    ASSERT_INT(0, listen(fd, 1));
    x.mounts[0] = (struct test_plan_mount){ test_plan_path(&x, "hosts"), "/etc/hosts", 0 };
    x.mounts[1] =
        (struct test_plan_mount){ test_plan_path(&x, "sock"), "/run/agent.sock", AGX_PLAN_IDMAP };
    test_plan_boot(&x);
    ASSERT_CSTR("127.0.0.1 box\n", say(&x, "cat /etc/hosts"));
    ASSERT_CSTR("socket\n", say(&x, "busybox stat -c %F /run/agent.sock"));
    (void)close(fd);
    test_plan_close(&x);
}

TEST(links_of_an_image_do_not_lead_a_mount_out_of_it)
{
    struct test_plan x;
    char path[128];

    test_plan_open(&x);
    test_plan_make_dir(&x, "data");
    test_plan_write(&x, "data/file", "here\n");
    (void)snprintf(path, sizeof(path), "%s/link", x.image.root);
    ASSERT_INT(0, symlink("/../../../srv/inside", path));
    test_plan_make_dir(&x, "layer");
    x.mounts[0] = (struct test_plan_mount){ test_plan_path(&x, "data"), "/link/data", 0 };
    (void)snprintf(path, sizeof(path), "%s/srv", x.image.root);
    ASSERT_INT(0, mkdir(path, 0755));
    (void)snprintf(path, sizeof(path), "%s/srv/inside", x.image.root);
    ASSERT_INT(0, mkdir(path, 0755));
    test_plan_boot(&x);
    ASSERT_CSTR("here\n", say(&x, "cat /srv/inside/data/file"));
    test_plan_close(&x);
}

static void put_link(struct test_plan *x, const char *place, const char *leads_to)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s%s", x->image.root, place);
    (void)unlink(path);
    ASSERT_INT(0, symlink(leads_to, path));
}

TEST(links_to_nothing_give_way_to_files_and_nothing_is_made_where_they_lead)
{
    static const char *const places[] = { "/etc/hosts", "/etc/resolv.conf", "/etc/hostname",
                                          "/etc/motd", "/etc/issue" };
    struct test_plan x;
    char far[128], up[160], seen[PATH_MAX], path[128];

    test_plan_open(&x);
    test_plan_write(&x, "file", "ours\n");
    (void)snprintf(far, sizeof(far), "%s", test_plan_path(&x, "outside"));
    (void)snprintf(up, sizeof(up), "../../../../../..%s", far);
    put_link(&x, places[0], up);                           /* up and out */
    put_link(&x, places[1], "../run/systemd/resolv.conf"); /* in a directory that is missing */
    put_link(&x, places[2], "hostname");                   /* to itself */
    put_link(&x, places[3], "/etc/group/x");               /* below a file */
    put_link(&x, places[4], "/etc/passwd");                /* to something: followed */
    for (size_t i = 0; i < AGX_ARRAY_LEN(places); i++)
        x.mounts[i] = (struct test_plan_mount){ test_plan_path(&x, "file"), places[i],
                                                AGX_PLAN_IDMAP | AGX_PLAN_OVER_LINK };
    test_plan_boot(&x);
    ASSERT_CSTR("ours\nours\nours\nours\nours\n",
                say(&x, "cd /etc; cat hosts resolv.conf hostname motd passwd"));
    ASSERT_CSTR("/etc/issue\n", say(&x, "busybox find /etc -type l"));
    ASSERT_CSTR("no\n", say(&x, "test -e /run/systemd -o -e /tmp/agx* && echo yes || echo no"));
    ASSERT_INT(-1, access(far, F_OK));
    (void)snprintf(path, sizeof(path), "%s%s", x.image.root, places[0]);
    ASSERT_INT((ssize_t)strlen(up),
               readlink(path, seen, sizeof(seen))); /* the image stays as it was */
    test_plan_close(&x);
}

TEST(link_to_nothing_stays_where_the_plan_does_not_let_it_go)
{
    struct test_plan x;

    test_plan_open(&x);
    test_plan_write(&x, "file", "ours\n");
    put_link(&x, "/etc/motd", "../run/motd");
    x.mounts[0] =
        (struct test_plan_mount){ test_plan_path(&x, "file"), "/etc/motd", AGX_PLAN_IDMAP };
    test_plan_start(&x);
    test_plan_expect_failure(&x, "/etc/motd");
    test_plan_close(&x);
}

TEST(set_user_id_programs_and_devices_of_a_mount_have_no_effect)
{
    struct test_plan x;

    test_plan_open(&x);
    test_plan_make_dir(&x, "data");
    ASSERT_INT(0, mknod(test_plan_path(&x, "data/zero"), S_IFCHR | 0666, makedev(1, 5)));
    x.mounts[0] = (struct test_plan_mount){ test_plan_path(&x, "data"), "/data", AGX_PLAN_IDMAP };
    test_plan_boot(&x);
    ASSERT_NOT_NULL(strstr(say(&x, "busybox head -c 1 /data/zero"), "ermission denied"));
    ASSERT_NOT_NULL(strstr(say(&x, "busybox grep ' /data ' /proc/self/mountinfo"), "nosuid,nodev"));
    test_plan_close(&x);
}

/* ---- the main process ---- */

TEST(main_process_has_user_directory_and_environment_of_the_plan)
{
    struct test_plan x;

    test_plan_open(&x);
    x.plan.user = AGX_STR("agbox");
    x.plan.groups = AGX_STR("44");
    x.plan.cwd = AGX_STR("/work/here");
    x.plan.argv = TEST_WORDS(&x.argv, "sh", "-c",
                             "/prog id > /tmp/said; echo $COLOUR >> /tmp/said; exec sleep 1000");
    test_plan_make_dir(&x, "said");
    ASSERT_INT(0, chmod(test_plan_path(&x, "said"), 0777));
    x.mounts[0] = (struct test_plan_mount){ test_plan_path(&x, "said"), "/tmp", AGX_PLAN_IDMAP };
    test_plan_boot(&x);
    ASSERT_CSTR("uid=1000 gid=1001 groups=44,77,1001 cwd=/work/here home=/home/agbox session=0\n"
                "blue\n",
                say(&x, "until busybox grep -qs blue /tmp/said; do busybox usleep 1000; done; "
                        "cat /tmp/said"));
    test_plan_close(&x);
}

TEST(main_process_waits_for_go)
{
    struct test_plan x;
    struct stat st;

    test_plan_open(&x);
    test_plan_make_dir(&x, "out");
    x.plan.flags &= ~AGX_PLAN_AT_ONCE;
    x.plan.argv = TEST_WORDS(&x.argv, "sh", "-c", "echo x > /out/started; exec sleep 1000");
    x.mounts[0] = (struct test_plan_mount){ test_plan_path(&x, "out"), "/out", AGX_PLAN_IDMAP };
    test_plan_start(&x);
    test_plan_expect(&x, AGX_PLAN_CLONED);
    test_plan_expect(&x, AGX_PLAN_READY);
    ASSERT_INT(-1, stat(test_plan_path(&x, "out/started"), &st));
    test_report_go(x.report_fd);
    test_plan_expect(&x, AGX_PLAN_RUNNING);
    while (stat(test_plan_path(&x, "out/started"), &st) < 0)
        ASSERT_INT(ENOENT, errno);
    test_plan_close(&x);
}

TEST(pid_1_ends_with_the_code_of_the_main_process)
{
    struct test_plan x;

    test_plan_open(&x);
    x.plan.argv = TEST_WORDS(&x.argv, "/prog", "exit", "7");
    test_plan_start(&x);
    test_plan_expect(&x, AGX_PLAN_CLONED);
    test_plan_expect(&x, AGX_PLAN_RUNNING);
    ASSERT_INT(7, test_plan_reap(&x));
    test_plan_close(&x);
}
