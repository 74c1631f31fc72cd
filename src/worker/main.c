/*
 * main.c: agentix-worker: runs C functions for agentix-server, in bundles without Python. The only
 * file here that looks at the environment.
 */
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/frame.h"
#include "worker/cworker.h"
#include "worker/lanes.h"

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>

#include "base/banned.h"

static const char usage[] =
    "usage: agentix-worker [--help] [--version]\n"
    "\n"
    "Runs functions of shared objects (<agentix/function.h>) for agentix-server, which starts it\n"
    "and calls them by the reference c:<library>::<function>.\n"
    "\n"
    "environment:\n"
    "  AGENTIX_WORKER_FDS  two descriptors of stream sockets to the server, such as 3,4\n"
    "  AGENTIX_PATH        directories with shared objects, ':' between them; after them\n"
    "                      ../lib/agentix/functions beside this program is searched\n";

struct worker {
    struct agx_cworker *core;
    struct agx_lanes *lanes;
    uint64_t grace_ms;
};

/* Results by the loop lane, items by the other: a result never stands behind items. */
static void on_send(void *user, enum agx_remote_kind kind, struct agx_str frame, bool wait)
{
    struct worker *w = user;

    agx_lanes_send(w->lanes, kind == AGX_REMOTE_UNARY ? AGX_LANE_LOOP : AGX_LANE_THREAD, frame,
                   wait);
}

static int on_frame(void *user, enum agx_remote_lane lane, struct agx_str frame,
                    struct agx_error **err)
{
    struct worker *w = user;

    return agx_cworker_frame(w->core, lane, frame, &w->grace_ms, err);
}

static bool is_idle(void *user)
{
    struct worker *w = user;

    return agx_cworker_count(w->core) == 0;
}

/* "3,4". */
static int parse_fds(const char *text, int fds[AGX_LANE_COUNT])
{
    struct agx_str rest = agx_str_from(text), part;
    unsigned n = 0;
    uint64_t fd;

    while (agx_str_split(&rest, ',', &part)) {
        if (n == AGX_LANE_COUNT || !agx_parse_u64(part, INT32_MAX, &fd) || fd < 3)
            return -1;
        /* What functions start must not hold the lanes open. */
        if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
            return -1;
        fds[n++] = (int)fd;
    }
    return n == AGX_LANE_COUNT && fds[0] != fds[1] ? 0 : -1;
}

/* AGENTIX_PATH and the directory beside the program. Owned. */
static char *search_path(void)
{
    const char *path = getenv("AGENTIX_PATH");
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    char *slash, *all;

    program[n > 0 ? n : 0] = '\0';
    slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    if (asprintf(&all, "%s:%s/../lib/agentix/functions", path ? path : "", program) < 0)
        abort();
    return all;
}

static void send_ready(struct agx_lanes *lanes)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_FRAME_EXTRA);
    struct agx_mp_writer w;

    agx_frame_begin(&w, &out);
    agx_mp_write_map(&w, 3);
    agx_mp_write_str(&w, AGX_STR("type"));
    agx_mp_write_str(&w, AGX_STR("ready"));
    agx_mp_write_str(&w, AGX_STR("proto"));
    agx_mp_write_uint(&w, 1);
    agx_mp_write_str(&w, AGX_STR("name"));
    agx_mp_write_str(&w, AGX_STR("c"));
    if (agx_frame_end(&w, AGX_FRAME_EXTRA, NULL) < 0)
        abort();
    agx_lanes_send(lanes, AGX_LANE_LOOP, agx_buf_peek(&out), false);
}

/* Reads until the server stops us or goes; the exit status. */
static int main_serve(struct worker *w)
{
    struct agx_lanes_handler handler = { .user = w, .frame = on_frame };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    uint64_t grace_ms = AGX_WORKER_ORPHAN_MS;
    int r;

    send_ready(w->lanes);
    r = agx_lanes_run(w->lanes, &handler, &err);
    if (r < 0)
        AGX_LOG(AGX_LOG_ERROR, "worker.failed", AGX_F_ERR(err));
    if (r == 1)
        grace_ms = w->grace_ms;
    else
        agx_lanes_break(w->lanes);
    agx_cworker_stop(w->core);
    if (!agx_lanes_drain(w->lanes, is_idle, w, grace_ms)) {
        /* Functions that do not look at their cancellation still run: no thread to join. */
        (void)fflush(NULL);
        _exit(r < 0);
    }
    return r < 0;
}

static int main_run(const int fds[AGX_LANE_COUNT])
{
    _cleanup_free_ char *path = search_path();
    struct worker w = { 0 };
    struct agx_cworker_config config = {
        .path = agx_str_from(path), .max_threads = AGX_FN_THREADS_MAX, .user = &w, .send = on_send
    };
    int status;

    w.lanes = agx_lanes_open(fds);
    w.core = agx_cworker_new(&config);
    status = main_serve(&w);
    w.core = agx_cworker_free(w.core);
    w.lanes = agx_lanes_close(w.lanes);
    return status;
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "help", no_argument, NULL, 'h' },
                                             { "version", no_argument, NULL, 'V' },
                                             { 0 } };
    int fds[AGX_LANE_COUNT], c;
    const char *text;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'h' || c == 'V') {
            (void)fputs(c == 'h' ? usage : "agentix-worker " AGX_VERSION "\n", stdout);
            return 0;
        }
        (void)fputs("agentix-worker --help says more\n", stderr);
        return 2;
    }
    if (optind < argc) {
        (void)fprintf(stderr, "agentix-worker: '%s' is not expected; --help says more\n",
                      argv[optind]);
        return 2;
    }
    text = getenv("AGENTIX_WORKER_FDS");
    if (!text) {
        (void)fputs("agentix-worker: AGENTIX_WORKER_FDS is not set: agentix-server starts this "
                    "program, people do not\n",
                    stderr);
        return 2;
    }
    if (parse_fds(text, fds) < 0) {
        (void)fprintf(
            stderr,
            "agentix-worker: AGENTIX_WORKER_FDS is '%s', not two open descriptors above 2 "
            "such as 3,4\n",
            text);
        return 2;
    }
    (void)unsetenv("AGENTIX_WORKER_FDS"); /* the descriptors are not for what functions start */
    (void)signal(SIGPIPE, SIG_IGN);
    /* Output is captured by lines; to a pipe the C library would keep it back. */
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    return main_run(fds);
}
