/*
 * py_worker_cfn.c: C functions ("c:" targets) in the Python worker. They run on threads of their
 * own (worker/cworker.h) that know nothing of Python; the GIL is taken only to queue a frame.
 *
 * Their locks: the GIL may be held when one of cworker's is taken, never the other way round, for
 * cworker sends without holding any.
 */
#include "pyext/py_worker.h"

#include "base/limits.h"

#include "base/banned.h"

/*
 * A frame for the server. From the thread of a function it goes by the thread lane, and that thread
 * waits where the server does not read; from one that read a frame (`wait` false) by the main
 * thread, which never waits.
 */
static void send_frame(void *user, enum agx_remote_kind kind, struct agx_str frame, bool wait)
{
    struct worker *w = user;
    PyGILState_STATE state = PyGILState_Ensure();
    uint64_t one = 1;

    (void)kind;
    if (wait) {
        pyworker_pool_send(w, frame);
        pyworker_pool_flush(w);
    } else if (!w->out_broken) {
        if (agx_buf_append(&w->out.urgent, frame) < 0)
            abort();
        (void)!write(w->wake_fd, &one, sizeof(one));
    }
    PyGILState_Release(state);
}

void pyworker_cfn_init(struct worker *w, const char *path)
{
    struct agx_cworker_config config = {
        .path = agx_str_from(path), .max_threads = AGX_FN_THREADS_MAX, .user = w, .send = send_frame
    };

    w->cfn = agx_cworker_new(&config);
    /* What C code prints is captured by lines; to a pipe the C library would keep it back. */
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
}

bool pyworker_cfn_frame(struct worker *w, enum agx_remote_lane lane,
                        const struct agx_worker_frame *f)
{
    bool ours;

    if (f->type == AGX_WF_CALL)
        ours = f->by_target && agx_fnlib_is_target(f->callable);
    else
        ours = f->type != AGX_WF_SHUTDOWN && agx_cworker_has(w->cfn, f->id);
    /* A cancel for no call yet may be for one of either kind: both remember it. */
    if (ours || (f->type == AGX_WF_CANCEL && !agx_call_table_get(&w->calls, f->id)))
        (void)!agx_cworker_parsed(w->cfn, lane, f, NULL);
    return ours;
}

size_t pyworker_active(const struct worker *w)
{
    return w->calls.len + agx_cworker_count(w->cfn);
}
