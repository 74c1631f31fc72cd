/* py_client_items.c: the received items of a stream that were not yet taken, and the credit. */
#include "pyext/py_client_fn.h"

#include "base/banned.h"

void pyclient_call_add_item(struct call *c, PyObject *value, size_t bytes)
{
    if (c->items_head + c->items_len == c->items_cap) {
        if (c->items_head > 0) {
            memmove(c->items, c->items + c->items_head, c->items_len * sizeof(*c->items));
            c->items_head = 0;
        } else {
            size_t cap = c->items_cap ? c->items_cap * 2 : 16;
            struct call_item *grown = realloc(c->items, cap * sizeof(*grown));

            if (!grown) {
                Py_DECREF(value);
                PyErr_NoMemory();
                pyclient_call_fail_set(c);
                return;
            }
            c->items = grown;
            c->items_cap = cap;
        }
    }
    c->items[c->items_head + c->items_len++] = (struct call_item){ value, bytes };
    pyclient_session_wake(c->session, c);
}

void pyclient_call_drop_items(struct call *c)
{
    while (c->items_len > 0) {
        c->items_len--;
        Py_DECREF(c->items[c->items_head++].value);
    }
    free(c->items);
    c->items = NULL;
    c->items_cap = c->items_head = 0;
}

/* Grants more as the user takes items. */
static int grant(struct call *c)
{
    if (c->state != CALL_SENT || c->session->proto == 0 || !agx_remote_flow_grant(&c->flow))
        return 0;
    return pyclient_request_credit(c);
}

PyObject *pyclient_call_take_item(struct call *c)
{
    struct call_item item = c->items[c->items_head++];
    PyObject *value;

    if (--c->items_len == 0)
        c->items_head = 0;
    agx_credit_count(&c->flow.taken, item.bytes);
    if (grant(c) < 0) {
        Py_DECREF(item.value);
        return NULL;
    }
    value = pyclient_plan_accept(c->plan, item.value);
    if (!value) {
        PyObject *type, *exc, *traceback;

        PyErr_Fetch(&type, &exc, &traceback);
        pyclient_call_drop_items(c);
        pyclient_call_abandon(
            c, NULL); /* an item that is refused ends the iteration, as in a generator */
        PyErr_Restore(type, exc, traceback);
    }
    return value;
}
