/* cgroup_usage.c: which processes are in a group, and their resource usage. */
#include "backend/native/limits/cgroup_internal.h"
#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "base/banned.h"

/* Of a file with one line per process or statistic. */
enum { TEXT_MAX = 1 << 20 };

/* -- numbers in text */

static struct agx_str first_line(const struct agx_buf *text)
{
    struct agx_str all = agx_buf_peek(text);

    return (struct agx_str){ all.ptr, agx_str_find(all, '\n') };
}

/* The file's only number. */
static int read_number(int dirfd, const char *file, uint64_t *ret, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(4096);
    int r = agx_fd_read_file(dirfd, file, &text, err);

    if (r < 0)
        return r;
    if (!agx_parse_u64(first_line(&text), UINT64_MAX, ret))
        return agx_error_set(err, AGX_INTERNAL, "'%s' is not a number", file);
    return 0;
}

/* The number behind a word in a file with lines "word number"; 0 if missing. */
static int read_field(int dirfd, const char *file, struct agx_str word, uint64_t *ret,
                      struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(TEXT_MAX);
    int r = agx_fd_read_file(dirfd, file, &text, err);
    struct agx_str rest, line, key;

    *ret = 0;
    if (r < 0)
        return r;
    rest = agx_buf_peek(&text);
    while (agx_str_split(&rest, '\n', &line)) {
        if (agx_str_split(&line, ' ', &key) && agx_str_eq(key, word) &&
            agx_parse_u64(line, UINT64_MAX, ret))
            return 0;
    }
    return 0;
}

/* -- use */

/* Lines "8:0 rbytes=1 wbytes=2 ...", one for each device. */
static void add_io(struct agx_str text, struct agx_cgroup_stats *s)
{
    struct agx_str line, word;
    uint64_t n;

    while (agx_str_split(&text, '\n', &line)) {
        while (agx_str_split(&line, ' ', &word)) {
            if (agx_str_starts(word, AGX_STR("rbytes=")) &&
                agx_parse_u64(agx_str_skip(word, 7), UINT64_MAX, &n))
                s->io_read_bytes += n;
            if (agx_str_starts(word, AGX_STR("wbytes=")) &&
                agx_parse_u64(agx_str_skip(word, 7), UINT64_MAX, &n))
                s->io_write_bytes += n;
        }
    }
}

static int stats_v2(struct agx_cgroups *g, const char *name, struct agx_cgroup_stats *s,
                    struct agx_error **err)
{
    _cleanup_close_ int dir = agx_cgroup_dir(g, 0, name, err);
    _cleanup_buf_ struct agx_buf io = AGX_BUF_INIT(TEXT_MAX);
    int r = dir;

    if (r >= 0)
        r = read_field(dir, "cpu.stat", AGX_STR("usage_usec"), &s->cpu_usec, err);
    if (r >= 0)
        r = read_number(dir, "memory.current", &s->memory_bytes, err);
    if (r >= 0)
        r = read_number(dir, "pids.current", &s->pids, err);
    if (r >= 0)
        s->has_peak = read_number(dir, "memory.peak", &s->memory_peak, NULL) == 0;
    if (r >= 0)
        r = read_field(dir, "memory.events", AGX_STR("oom_kill"), &s->oom_kills, err);
    /* A kernel may lack the io controller. */
    if (r >= 0 && agx_fd_read_file(dir, "io.stat", &io, NULL) >= 0) {
        s->has_io = true;
        add_io(agx_buf_peek(&io), s);
    }
    return r;
}

static int stats_v1(struct agx_cgroups *g, const char *name, struct agx_cgroup_stats *s,
                    struct agx_error **err)
{
    _cleanup_close_ int memory = agx_cgroup_dir(g, AGX_CGROUP_MEMORY, name, err);
    _cleanup_close_ int pids = -1, cpu = -1;
    int r = memory;

    if (r >= 0)
        r = pids = agx_cgroup_dir(g, AGX_CGROUP_PIDS, name, err);
    if (r >= 0)
        r = cpu = agx_cgroup_dir(g, AGX_CGROUP_CPUACCT, name, err);
    if (r >= 0)
        r = read_number(memory, "memory.usage_in_bytes", &s->memory_bytes, err);
    if (r >= 0)
        s->has_peak = read_number(memory, "memory.max_usage_in_bytes", &s->memory_peak, NULL) == 0;
    if (r >= 0)
        r = read_field(memory, "memory.oom_control", AGX_STR("oom_kill"), &s->oom_kills, err);
    if (r >= 0)
        r = read_number(pids, "pids.current", &s->pids, err);
    if (r >= 0)
        r = read_number(cpu, "cpuacct.usage", &s->cpu_usec, err);
    s->cpu_usec /= 1000; /* nanoseconds there */
    return r;
}

int agx_cgroups_stats(struct agx_cgroups *g, const char *name, struct agx_cgroup_stats *ret_stats,
                      struct agx_error **err)
{
    struct agx_cgroup_stats s = { .cpu_usec = 0 };
    int r = g->version == 2 ? stats_v2(g, name, &s, err) : stats_v1(g, name, &s, err);

    if (r < 0)
        return r;
    *ret_stats = s;
    return 0;
}

/* -- who */

bool agx_cgroups_holds(struct agx_cgroups *g, const char *name, pid_t pid)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(TEXT_MAX);
    char path[32], want[sizeof(g->top) + AGX_CGROUP_NAME_MAX + 16];
    struct agx_str rest, line;
    int len;

    (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    len = snprintf(want, sizeof(want), "/%s/" AGX_CGROUP_PREFIX "%s", g->top, name);
    if (agx_fd_read_file(AT_FDCWD, path, &text, NULL) < 0 || len < 0 || (size_t)len >= sizeof(want))
        return false;
    rest = agx_buf_peek(&text);
    while (agx_str_split(&rest, '\n', &line)) {
        if (line.len >= (size_t)len && memcmp(line.ptr + line.len - len, want, (size_t)len) == 0)
            return true;
    }
    return false;
}

/* The pid may have been reused since we read it, so a pidfd is opened before the check. */
static void kill_one(struct agx_cgroups *g, const char *name, pid_t pid)
{
    _cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (fd >= 0 && agx_cgroups_holds(g, name, pid))
        (void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}

static int kill_each(struct agx_cgroups *g, int dir, const char *name, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(TEXT_MAX);
    int r = agx_fd_read_file(dir, "cgroup.procs", &text, err);
    struct agx_str rest, line;
    uint64_t pid;

    if (r < 0)
        return agx_error_wrap(err, r, "processes of the control group '%s'", name);
    rest = agx_buf_peek(&text);
    while (agx_str_split(&rest, '\n', &line)) {
        if (agx_parse_u64(line, INT32_MAX, &pid) && pid > 0)
            kill_one(g, name, (pid_t)pid);
    }
    return 0;
}

int agx_cgroups_kill(struct agx_cgroups *g, const char *name, struct agx_error **err)
{
    struct agx_error *fault = NULL;
    _cleanup_close_ int dir = agx_cgroup_dir(g, AGX_CGROUP_PIDS, name, &fault);

    if (dir == -AGX_NOT_FOUND) {
        agx_error_free(fault);
        return 0;
    }
    if (dir < 0) {
        agx_error_propagate(err, &fault);
        return dir;
    }
    if (agx_cgroup_write(dir, "cgroup.kill", "1") == 0)
        return 0;
    /* Version 1 has no such file; version 2 has it since Linux 5.14. */
    return kill_each(g, dir, name, err);
}
