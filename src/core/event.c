/* event.c: events as records; properties that depend only on the type are in a table. */
#include "core/event.h"

#include "base/banned.h"

#include <inttypes.h>

static const struct {
    const char *name;
    enum agx_event_details details;
    enum agx_exec_state exec_state;
} types[AGX_EVENT_COUNT] = {
    [AGX_EVENT_NONE] = { "EVENT_TYPE_UNSPECIFIED" },
    [AGX_EVENT_SANDBOX_ACCEPTED] = { "SANDBOX_ACCEPTED" },
    [AGX_EVENT_SANDBOX_PREPARING] = { "SANDBOX_PREPARING", AGX_EVENT_DETAILS_PHASE },
    [AGX_EVENT_SANDBOX_READY] = { "SANDBOX_READY" },
    [AGX_EVENT_SANDBOX_FAILED] = { "SANDBOX_FAILED", AGX_EVENT_DETAILS_PHASE },
    [AGX_EVENT_SANDBOX_STOP_REQUESTED] = { "SANDBOX_STOP_REQUESTED", AGX_EVENT_DETAILS_PHASE },
    [AGX_EVENT_SANDBOX_STOPPED] = { "SANDBOX_STOPPED", AGX_EVENT_DETAILS_PHASE },
    [AGX_EVENT_SANDBOX_DELETE_REQUESTED] = { "SANDBOX_DELETE_REQUESTED", AGX_EVENT_DETAILS_PHASE },
    [AGX_EVENT_SANDBOX_DELETED] = { "SANDBOX_DELETED", AGX_EVENT_DETAILS_PHASE },
    [AGX_EVENT_EXEC_STARTED] = { "EXEC_STARTED", AGX_EVENT_DETAILS_EXEC, AGX_EXEC_RUNNING },
    [AGX_EVENT_EXEC_FINISHED] = { "EXEC_FINISHED", AGX_EVENT_DETAILS_EXEC, AGX_EXEC_FINISHED },
    [AGX_EVENT_EXEC_FAILED] = { "EXEC_FAILED", AGX_EVENT_DETAILS_EXEC, AGX_EXEC_FAILED },
    [AGX_EVENT_EXEC_CANCELLED] = { "EXEC_CANCELLED", AGX_EVENT_DETAILS_EXEC, AGX_EXEC_CANCELLED },
    [AGX_EVENT_COMPANION_READY] = { "COMPANION_CONTAINER_READY", AGX_EVENT_DETAILS_COMPANION },
    [AGX_EVENT_COMPANION_FAILED] = { "COMPANION_CONTAINER_FAILED", AGX_EVENT_DETAILS_COMPANION },
};

int agx_event_init(struct agx_event *e, const struct agx_event_text *text, struct agx_error **err)
{
    int r;

    if ((r = agx_text_set(&e->subject, text->subject, err)) < 0 ||
        (r = agx_text_set(&e->reason, text->reason, err)) < 0 ||
        (r = agx_text_set(&e->error_code, text->error_code, err)) < 0 ||
        (r = agx_text_set(&e->error_message, text->error_message, err)) < 0)
        agx_event_done(e);
    return r;
}

int agx_event_copy(struct agx_event *to, const struct agx_event *from, struct agx_error **err)
{
    struct agx_event_text text = { from->subject, from->reason, from->error_code,
                                   from->error_message };
    struct agx_event copy = *from;
    int r;

    copy.subject = copy.reason = copy.error_code = copy.error_message = NULL;
    r = agx_event_init(&copy, &text, err);
    if (r == 0)
        *to = copy;
    return r;
}

void agx_event_done(struct agx_event *e)
{
    if (!e)
        return;
    free(e->subject);
    free(e->reason);
    free(e->error_code);
    free(e->error_message);
    *e = (struct agx_event){ 0 };
}

const char *agx_event_name(enum agx_event_type type)
{
    return types[type].name;
}

enum agx_event_details agx_event_details(enum agx_event_type type)
{
    return types[type].details;
}

enum agx_exec_state agx_event_exec_state(enum agx_event_type type)
{
    return types[type].exec_state;
}

const char *agx_event_phase(enum agx_event_type type)
{
    return type == AGX_EVENT_SANDBOX_PREPARING ? "materialize" : NULL;
}

char *agx_event_id(const struct agx_event *e, const char *sandbox_id, char out[AGX_EVENT_ID_SIZE])
{
    if (e->synthetic)
        (void)snprintf(out, AGX_EVENT_ID_SIZE, "%s-snapshot-%s", sandbox_id, agx_text(e->subject));
    else
        (void)snprintf(out, AGX_EVENT_ID_SIZE, "%s-%" PRIu64, sandbox_id, e->sequence);
    return out;
}

int agx_event_check_from(const char *sandbox_id, uint64_t newest, uint64_t from,
                         struct agx_error **err)
{
    if (from <= newest)
        return 0;
    return agx_error_set(err, AGX_OUT_OF_RANGE,
                         "sandbox %s event sequence %" PRIu64 " is outside retained history",
                         sandbox_id, from);
}

int agx_event_snapshot_exec(struct agx_event *e, const char *exec_id, uint64_t newest,
                            enum agx_state state, int64_t now_ns, struct agx_error **err)
{
    struct agx_event made = { .sequence = newest,
                              .type = AGX_EVENT_EXEC_STARTED,
                              .state = state,
                              .occurred_at_ns = now_ns,
                              .synthetic = true };
    int r = agx_event_init(&made, &(struct agx_event_text){ .subject = exec_id }, err);

    if (r == 0)
        *e = made;
    return r;
}
