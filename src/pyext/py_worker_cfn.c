/*
 * py_worker_cfn.c: C functions ("c:" targets) in the Python worker. They run on threads of their
 * own (worker/cworker.h) that know nothing of Python; the GIL is taken only to queue a frame.
 *
 * Order of locks: cworker's locks may be taken with the GIL held, never the reverse, because
 * cworker holds no lock while it sends.
 */
#include "pyext/py_worker.h"

#include "base/limits.h"

#include "base/banned.h"

/*
 * Sends a frame to the server. From the thread of a function it goes by the thread lane, and that
 * thread waits if the server does not read. From a thread that read a frame (`wait` false) it goes
 * by the main thread, which never waits.
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
    /* Output of C code is captured by lines, but the C library buffers whole blocks for a pipe. */
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
    /* A cancel for an unknown call may be for either kind, so both remember it. */
    if (ours || (f->type == AGX_WF_CANCEL && !agx_call_table_get(&w->calls, f->id)))
        (void)!agx_cworker_parsed(w->cfn, lane, f, NULL);
    return ours;
}

size_t pyworker_active(const struct worker *w)
{
    return w->calls.len + agx_cworker_count(w->cfn);
}
