/*
 * Runs the suite of all backends on the native backend, in a box of namespaces (docker_box.py
 * --no-engine).
 */
#include "backend/native/native.h"
#include "base/path.h"
#include "image/import.h"
#include "image/pull.h"
#include "tests/conformance/backend_native.h"
#include "tests/support/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#define IMAGE "agx-busybox:1"
enum { RECORD_SIZE = 4096 };

static struct {
    char dir[128];  /* the backend's data; images are shared by all tests */
    char init[160]; /* a link to init, or to a program that is in its place for once */
    char store[128];
    struct agx_images *images; /* of the backend that is open */
    struct agx_puller *puller;
    char release[160]; /* a file that ends what hangs */
    FILE *holder;      /* what holds a main process */
    bool left;         /* something of a sandbox may be left */
} world;

/* ---- images ---- */

static void open_images(struct agx_loop *l)
{
    struct agx_images_config c = AGX_IMAGES_CONFIG_INIT;
    struct agx_puller_config p = AGX_PULLER_CONFIG_INIT;

    c.dir = world.store;
    ASSERT_OK(agx_images_open(l, &c, &world.images, NULL));
    ASSERT_OK(agx_puller_open(l, world.images, &p, &world.puller, NULL));
}

static void on_stopped(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    (*(unsigned *)user)++;
}

static void close_images(struct agx_loop *l)
{
    unsigned n = 0;

    world.puller = agx_puller_close(world.puller);
    agx_images_stop(AGX_TAKE_PTR(world.images), on_stopped, &n);
    test_wait(l, &n, 1);
}

static void on_imported(void *user, struct agx_image *const *images, size_t n,
                        struct agx_error *error)
{
    (void)images;
    ASSERT_NULL(error);
    ASSERT_UINT(1, n);
    (*(unsigned *)user)++;
}

static void import_image(struct agx_loop *l, const char *path)
{
    const struct agx_import_params p = { .done = on_imported };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    static char buf[65536];
    struct agx_import *im;
    unsigned done = 0;
    ssize_t n;
    int r = 0;

    ASSERT_OK(fd);
    ASSERT_OK(agx_import_start(world.images, &p, &done, &im, NULL));
    while ((n = read(fd, buf, sizeof(buf))) > 0) {
        ASSERT_OK(r = agx_import_write(im, (struct agx_str){ buf, (size_t)n }, NULL));
        if (r == 1)
            test_pause(l, 1);
    }
    (void)close(fd);
    agx_import_end(im);
    test_wait(l, &done, 1);
}

static void make_store(const char *box)
{
    struct agx_loop *l;
    char path[160];

    (void)snprintf(world.store, sizeof(world.store), "%s/store", box);
    (void)snprintf(path, sizeof(path), "%s/busybox.tar", getenv("AGX_IMAGES"));
    l = test_loop_open();
    open_images(l);
    import_image(l, path);
    close_images(l);
    test_loop_close(l);
}

/* ---- the world ---- */

static void set_init(const char *to)
{
    char fresh[sizeof(world.init) + 8];

    (void)snprintf(fresh, sizeof(fresh), "%s.new", world.init);
    ASSERT_INT(0, symlink(to, fresh));
    ASSERT_INT(0, rename(fresh, world.init));
}

void conformance_backend_begin(void)
{
    const char *box = getenv("AGX_BOX");

    if (!box || !getenv("AGX_IMAGES"))
        SKIP("no world of its own: run it by tests/support/docker_box.py --no-engine");
    if (!world.store[0])
        make_store(box);
    (void)snprintf(world.dir, sizeof(world.dir), "%s/data-XXXXXX", box);
    ASSERT_NOT_NULL(mkdtemp(world.dir));
    (void)snprintf(world.init, sizeof(world.init), "%s/init", world.dir);
    (void)snprintf(world.release, sizeof(world.release), "%s/release", world.dir);
    world.left = false;
    set_init(test_path_init);
}

static unsigned count_entries(const char *path)
{
    DIR *d = opendir(path);
    unsigned n = 0;

    ASSERT_NOT_NULL(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

/* Groups of this world's sandboxes, in whatever hierarchy. */
static bool has_groups(void)
{
    char line[512];

    (void)snprintf(line, sizeof(line),
                   "i=agentix-$(head -c 8 %s/instance); ls -d /sys/fs/cgroup/$i/box-* "
                   "/sys/fs/cgroup/*/$i/box-* 2>/dev/null | grep -q .",
                   world.dir);
    return system(line) == 0;
}

void native_world_is_empty(void)
{
    char path[192];

    (void)snprintf(path, sizeof(path), "%s/native/boxes", world.dir);
    ASSERT_UINT(0, count_entries(path));
    ASSERT_FALSE(has_groups());
}

/* What the next daemon would remove: nobody waited for the end of what was stuck. */
static void remove_groups(void)
{
    char line[512];

    (void)snprintf(line, sizeof(line),
                   "i=agentix-$(head -c 8 %s/instance); "
                   "for g in /sys/fs/cgroup/$i /sys/fs/cgroup/*/$i; do n=6000; "
                   "while [ -d $g ]; do rmdir $g/box-* $g || sleep 0.01; "
                   "[ $((n -= 1)) -gt 0 ] || exit 1; done; done 2>/dev/null",
                   world.dir);
    ASSERT_INT(0, system(line));
}

void conformance_backend_remove(void)
{
    if (world.left)
        remove_groups();
    else
        native_world_is_empty();
}

struct agx_images *native_world_images(void)
{
    return world.images;
}

const char *native_world_dir(void)
{
    return world.dir;
}

struct agx_backend *conformance_backend_open(struct agx_loop *l)
{
    struct agx_native_config c = AGX_NATIVE_CONFIG_INIT;
    struct agx_error *err = NULL;
    struct agx_backend *b = NULL;
    char text[512];

    open_images(l);
    c.data_dir = world.dir;
    c.run_dir = world.dir;
    c.init_path = world.init;
    c.unpack_path = test_path_unpack;
    c.forward_path = test_path_forward;
    c.images = world.images;
    c.puller = world.puller;
    c.ready = 2;
    c.common.tools = (struct agx_tools_host){ .home = "/root", .sandbox_home = "/root" };
    if (agx_backend_native_open(l, &c, &b, &err) < 0)
        FAIL("%s", agx_error_format(err, text, sizeof(text)));
    return b;
}

void conformance_backend_closed(struct agx_loop *l)
{
    close_images(l);
}

const char *conformance_backend_image(void)
{
    return IMAGE;
}

unsigned conformance_backend_many(void)
{
    return 24;
}

void conformance_backend_command(enum conformance_command c, struct agx_words *ret)
{
    static const char *const texts[] = {
        [COMMAND_TRUE] = "true",
        [COMMAND_EXIT_3] = "sh|-c|exit 3",
        [COMMAND_NO_FILE] = "no-such-command",
        [COMMAND_NOT_EXECUTABLE] = "/etc/passwd",
        [COMMAND_HELLO] = "echo|hello",
        [COMMAND_COMPLAIN] = "no-such-command",
        [COMMAND_CAT] = "cat",
        [COMMAND_SLEEP] = "sleep|1000",
        [COMMAND_STUBBORN] = "sh|-c|trap '' TERM; echo stubborn; while :; do sleep 1000; done",
        [COMMAND_FORKER] = "sh|-c|sleep 1000 & exit 0",
        [COMMAND_PRINT] = "head|-c|100000|/dev/zero",
        [COMMAND_LATER] = "sh|-c|sleep 2; exit 7",
        [COMMAND_PWD] = "pwd",
        [COMMAND_VARIABLE] = "sh|-c|echo \"$AGX_TEST\"",
    };
    struct agx_str rest = agx_str_from(texts[c]), word;

    while (agx_str_split(&rest, '|', &word))
        ASSERT_OK(agx_words_add(ret, word, NULL));
}

/* ---- what happens from outside ---- */

static void read_record(const char *sandbox_id, char text[RECORD_SIZE])
{
    char path[256];
    size_t n;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/native/boxes/%s/state.json", world.dir, sandbox_id);
    f = fopen(path, "re");
    ASSERT_NOT_NULL(f);
    n = fread(text, 1, RECORD_SIZE - 1, f);
    (void)fclose(f);
    text[n] = '\0';
}

/* The one so many behind the first that comes after that word. */
static pid_t pid_after(const char *sandbox_id, const char *word, size_t behind)
{
    char text[RECORD_SIZE];
    const char *at;
    int pid = 0;

    read_record(sandbox_id, text);
    at = strstr(text, word);
    for (size_t i = 0; at && i <= behind; i++)
        at = strstr(at + 1, "\"pid\":");
    ASSERT_NOT_NULL(at);
    ASSERT_INT(1, sscanf(at, "\"pid\":%d", &pid));
    return pid;
}

pid_t native_world_pid(const char *sandbox_id, size_t part)
{
    return pid_after(sandbox_id, "\"parts\"", part);
}

pid_t native_world_forwarder(const char *sandbox_id)
{
    return pid_after(sandbox_id, "\"ports\"", 0);
}

bool conformance_backend_kills_main(const char *sandbox_id)
{
    ASSERT_INT(0, kill(native_world_pid(sandbox_id, 0), SIGKILL));
    return true;
}

/* Its record is as if another kernel had run it. */
void native_world_boot(struct stage *s)
{
    struct agx_loop *l = s->b->loop;
    const pid_t pid = native_world_pid(s->sb.id, 0);
    char line[512];

    test_backend_close(s->b);
    conformance_backend_closed(l);
    ASSERT_INT(0, kill(pid, SIGKILL));
    (void)snprintf(line, sizeof(line),
                   "sed -i 's/\\(\"boot\":\"\\)./\\1x/' "
                   "%s/native/boxes/%s/state.json",
                   world.dir, s->sb.id);
    ASSERT_INT(0, system(line));
    s->b = conformance_backend_open(l);
}

bool conformance_backend_removes(const char *sandbox_id)
{
    char dir[192];
    int boxes;

    ASSERT_INT(0, kill(native_world_pid(sandbox_id, 0), SIGKILL));
    (void)snprintf(dir, sizeof(dir), "%s/native/boxes", world.dir);
    boxes = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_OK(boxes);
    ASSERT_OK(agx_path_remove_tree(boxes, sandbox_id, NULL));
    (void)close(boxes);
    return true;
}

static FILE *open_script(void)
{
    char script[192];
    FILE *f;

    (void)snprintf(script, sizeof(script), "%s/script", world.dir);
    f = fopen(script, "we");
    ASSERT_NOT_NULL(f);
    ASSERT_INT(0, fchmod(fileno(f), 0755));
    (void)fprintf(f, "#!/bin/sh\n[ \"$1\" = --plan ] || exec %s \"$@\"\n", test_path_init);
    return f;
}

static void close_script(FILE *f)
{
    char script[192];

    (void)fclose(f);
    (void)snprintf(script, sizeof(script), "%s/script", world.dir);
    set_init(script);
}

/* A program in the place of init that does this once where a sandbox would be started; the next is
 * init again. */
static void replace_init(const char *does)
{
    FILE *f = open_script();

    (void)fprintf(f, "ln -s %s %s.next && mv -T %s.next %s\n%s\n", test_path_init, world.init,
                  world.init, world.init, does);
    close_script(f);
}

/* Of that sandbox PID 1 cannot be killed; others start when it is so. */
static void replace_init_by_stuck(const char *sandbox_id)
{
    FILE *f = open_script();

    (void)fprintf(f,
                  "grep -q %s \"/proc/self/fd/$2\" && exec %s init 3 %s\n"
                  "until [ -e %s.set ]; do sleep 0.01; done\nexec %s \"$@\"\n",
                  sandbox_id, test_path_stuck, world.release, world.release, test_path_init);
    close_script(f);
    world.left = true;
}

/* Its PID 1 does not end, whoever kills it. */
static void hold_main(const char *sandbox_id)
{
    char command[256], answer[16];
    FILE *f;

    (void)snprintf(command, sizeof(command), "exec %s hold %d %s", test_path_stuck,
                   (int)native_world_pid(sandbox_id, 0), world.release);
    f = popen(command, "re");
    ASSERT_NOT_NULL(f);
    ASSERT_NOT_NULL(fgets(answer, sizeof(answer), f));
    ASSERT_CSTR("held\n", answer);
    world.holder = f;
}

bool conformance_backend_hangs(const char *sandbox_id, enum agx_do verb, bool stubborn)
{
    if (verb != AGX_DO_CREATE)
        hold_main(sandbox_id);
    else if (stubborn)
        replace_init_by_stuck(sandbox_id);
    else
        replace_init("exec sleep 1000");
    return true;
}

void conformance_backend_release(void)
{
    int fd = open(world.release, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    ASSERT_OK(fd);
    (void)close(fd);
    if (world.holder)
        (void)pclose(AGX_TAKE_PTR(world.holder));
}

bool conformance_backend_fails(const char *sandbox_id, enum agx_do verb)
{
    (void)sandbox_id;
    if (verb != AGX_DO_CREATE)
        return false;
    replace_init("exit 1");
    return true;
}

/* ---- what is somebody else's ---- */

/* Sandboxes of another daemon on the same machine: its control group, and its directory. */
static void foreign_paths(const char *sandbox_id, char group[128], char dir[192])
{
    const bool v1 = access("/sys/fs/cgroup/memory/cgroup.procs", F_OK) == 0;

    (void)snprintf(group, 128, "/sys/fs/cgroup%s/agentix-ffffffff", v1 ? "/memory" : "");
    (void)snprintf(dir, 192, "%s.other/native/boxes/%s", world.dir, sandbox_id);
}

bool conformance_backend_makes_foreign(const char *sandbox_id)
{
    char group[128], dir[192], path[256];

    foreign_paths(sandbox_id, group, dir);
    ASSERT_INT(0, mkdir(group, 0755));
    (void)snprintf(path, sizeof(path), "mkdir -p %s", dir);
    ASSERT_INT(0, system(path));
    return true;
}

void conformance_backend_checks_foreign(const char *sandbox_id)
{
    char group[128], dir[192];

    foreign_paths(sandbox_id, group, dir);
    ASSERT_INT(0, access(dir, F_OK));
    ASSERT_INT(0, rmdir(group));
}
