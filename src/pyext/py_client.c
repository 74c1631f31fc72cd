/* py_client.c: the module agentix._client. */
#include "pyext/py_client_fn.h"

#include "codec/sio.h"

#include "base/banned.h"

static PyObject *import_from(const char *module, const char *name)
{
    _cleanup_py_ PyObject *m = PyImport_ImportModule(module);

    return m ? PyObject_GetAttrString(m, name) : NULL;
}

/* The text message in front of each event: "4" of Engine.IO, and the Socket.IO packet. */
static int make_headers(struct client_module *m)
{
    for (int ev = 0; ev < AGX_EV_COUNT; ev++) {
        struct agx_buf *b = &m->headers[ev];

        b->max = 256;
        if (agx_buf_push(b, '4') < 0 ||
            agx_sio_encode_binary_event(b, agx_remote_event_name((enum agx_remote_event)ev)) < 0) {
            PyErr_NoMemory();
            return -1;
        }
    }
    return 0;
}

static int add_type(PyObject *module, PyObject **field, PyObject *type, const char *name)
{
    *field = type;
    return type ? PyModule_AddObjectRef(module, name, type) : -1;
}

static int py_client_execute(PyObject *module)
{
    struct client_module *m = PyModule_GetState(module);

    if (agx_py_codec_init(&m->codec) < 0 || make_headers(m) < 0)
        return -1;
    m->name_run = PyUnicode_InternFromString("run");
    m->cancelled_error = import_from("asyncio", "CancelledError");
    m->invalid_state = import_from("asyncio", "InvalidStateError");
    if (!m->name_run || !m->cancelled_error || !m->invalid_state)
        return -1;
    if (add_type(module, &m->plan_type, pyclient_plan_type_new(module), "Plan") < 0 ||
        add_type(module, &m->call_type, pyclient_call_type_new(module), "Call") < 0 ||
        add_type(module, &m->step_type, pyclient_step_type_new(module), "Step") < 0)
        return -1;
    return add_type(module, &m->session_type, pyclient_session_type_new(module), "Session");
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct client_module *m = PyModule_GetState(module);

    Py_VISIT(m->plan_type);
    Py_VISIT(m->call_type);
    Py_VISIT(m->step_type);
    Py_VISIT(m->session_type);
    Py_VISIT(m->cancelled_error);
    Py_VISIT(m->invalid_state);
    return agx_py_codec_visit(&m->codec, visit, arg);
}

static int clear(PyObject *module)
{
    struct client_module *m = PyModule_GetState(module);

    Py_CLEAR(m->plan_type);
    Py_CLEAR(m->call_type);
    Py_CLEAR(m->step_type);
    Py_CLEAR(m->session_type);
    Py_CLEAR(m->cancelled_error);
    Py_CLEAR(m->invalid_state);
    Py_CLEAR(m->name_run);
    return 0;
}

static void module_free(void *module)
{
    struct client_module *m = PyModule_GetState(module);

    (void)clear(module);
    agx_py_codec_done(&m->codec);
    for (int ev = 0; ev < AGX_EV_COUNT; ev++)
        agx_buf_done(&m->headers[ev]);
}

static PyModuleDef_Slot slots[] = {
    { Py_mod_exec, (void *)py_client_execute },
    { 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "agentix._client",
    .m_doc = "The hot path of RuntimeClient.",
    .m_size = sizeof(struct client_module),
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__client(void);

PyMODINIT_FUNC PyInit__client(void)
{
    return PyModuleDef_Init(&definition);
}
