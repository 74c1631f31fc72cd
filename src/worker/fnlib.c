/* fnlib.c: finds, loads and remembers shared objects and their functions. */
#include "worker/fnlib.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/banned.h"

struct library {
    void *handle; /* of dlopen; never closed once it is in the cache */
    size_t count;
    struct agx_fn fns[];
};

struct agx_fnlib {
    char *path;
    pthread_mutex_t lock;     /* guards the map; not held while a library loads */
    struct agx_map libraries; /* by name */
};

struct agx_fnlib *agx_fnlib_new(struct agx_str path)
{
    struct agx_fnlib *l = agx_new(struct agx_fnlib);

    l->path = agx_str_dup(path);
    if (!l->path || pthread_mutex_init(&l->lock, NULL) != 0)
        abort();
    /* Names that lead to no library are not kept, so callers cannot choose the keys. */
    agx_map_init(&l->libraries, (struct agx_siphash_key){ 0 });
    return l;
}

struct agx_fnlib *agx_fnlib_free(struct agx_fnlib *l)
{
    void *library;

    if (!l)
        return NULL;
    for (size_t at = 0; agx_map_next(&l->libraries, &at, NULL, &library);)
        free(library);
    agx_map_done(&l->libraries);
    (void)pthread_mutex_destroy(&l->lock);
    free(l->path);
    free(l);
    return NULL;
}

/* Letters, digits, '_', '.', '-', and no '.' in front: no path can be made of that. */
static bool is_plain_name(struct agx_str s)
{
    if (s.len == 0 || s.len > AGX_FN_NAME_MAX || s.ptr[0] == '.')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '.' || c == '-'))
            return false;
    }
    return true;
}

/* "c:library::function". */
static int split_target(struct agx_str target, struct agx_str *ret_library,
                        struct agx_str *ret_function, struct agx_error **err)
{
    struct agx_str rest = agx_str_skip(target, 2);
    const char *colons = memmem(rest.ptr, rest.len, "::", 2);

    if (colons) {
        *ret_library = (struct agx_str){ rest.ptr, (size_t)(colons - rest.ptr) };
        *ret_function = agx_str_skip(rest, ret_library->len + 2);
        if (is_plain_name(*ret_library) && is_plain_name(*ret_function))
            return 0;
    }
    return agx_error_set(err, AGX_INVALID_ARGUMENT,
                         "the target '%.*s' is not of the form c:<library>::<function> with names "
                         "of letters, digits, '_', '.' and '-'",
                         (int)AGX_MIN(target.len, (size_t)AGX_FN_NAME_MAX), target.ptr);
}

int agx_fn_prepare(struct agx_fn *fn, const struct agx_function *def, struct agx_error **err)
{
    struct agx_str rest = agx_str_from(def->params), name;

    *fn = (struct agx_fn){ .def = def, .any_args = !def->params };
    if (!def->name || !is_plain_name(agx_str_from(def->name)))
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "a function without a plain name");
    if (!def->run || (unsigned)def->kind > AGX_FN_BIDI || (def->flags & ~AGX_FUNCTION_SERIAL) != 0)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "function '%s' has no code, or a kind or flag that does not exist",
                             def->name);
    while (def->params && agx_str_split(&rest, ' ', &name)) {
        if (name.len == 0)
            continue;
        if (fn->n_params == AGX_FN_PARAMS_MAX)
            return agx_error_set(err, AGX_FAILED_PRECONDITION,
                                 "function '%s' has more than %d parameters", def->name,
                                 AGX_FN_PARAMS_MAX);
        if (name.ptr[name.len - 1] == '?') {
            fn->optional[fn->n_params] = true;
            name.len--;
        }
        fn->params[fn->n_params++] = name;
    }
    return 0;
}

/* The definition at place `i`: an object built for an older table has smaller ones. */
static const struct agx_function *definition(const struct agx_function_table *t, size_t i)
{
    return (const void *)((const char *)t->functions + i * t->function_size);
}

static int read_table(const struct agx_function_table *t, struct library **ret,
                      struct agx_error **err)
{
    _cleanup_free_ struct library *lib = NULL;

    if (t->abi == 0 || t->abi > AGX_FUNCTION_ABI)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "it was built for function table %u, this worker has %u", t->abi,
                             AGX_FUNCTION_ABI);
    if (t->function_size < sizeof(struct agx_function) || t->count > AGX_FN_TABLE_MAX)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "its function table makes no sense");
    lib = agx_alloc(sizeof(*lib) + t->count * sizeof(lib->fns[0]));
    lib->count = t->count;
    for (size_t i = 0; i < t->count; i++) {
        int r = agx_fn_prepare(&lib->fns[i], definition(t, i), err);

        if (r < 0)
            return r;
    }
    *ret = AGX_TAKE_PTR(lib);
    return 0;
}

/* Loads one file. */
static int load(const char *file, struct library **ret, struct agx_error **err)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const struct agx_function_table *table;
    int r;

    if (!handle)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "load '%s': %s", file, dlerror());
    table = dlsym(handle, "agentix_functions");
    if (!table)
        r = agx_error_set(
            err, AGX_FAILED_PRECONDITION,
            "it exports no agentix_functions (AGX_FUNCTIONS in <agentix/function.h>)");
    else
        r = read_table(table, ret, err);
    if (r < 0) {
        (void)dlclose(handle);
        return agx_error_wrap(err, r, "load '%s'", file);
    }
    (*ret)->handle = handle;
    return 0;
}

/* NAME.so or libNAME.so in a directory of the path; NULL when there is none. */
static char *find_file(const struct agx_fnlib *l, struct agx_str name)
{
    static const char *const prefixes[] = { "", "lib" };
    struct agx_str rest = agx_str_from(l->path), dir;

    while (agx_str_split(&rest, ':', &dir)) {
        for (size_t i = 0; dir.len > 0 && i < AGX_ARRAY_LEN(prefixes); i++) {
            struct stat st;
            char *file;

            if (asprintf(&file, "%.*s/%s%.*s.so", AGX_STR_ARG(dir), prefixes[i],
                         AGX_STR_ARG(name)) < 0)
                abort();
            if (stat(file, &st) == 0 && S_ISREG(st.st_mode))
                return file;
            free(file);
        }
    }
    return NULL;
}

static struct library *cached(struct agx_fnlib *l, struct agx_str name)
{
    struct library *lib;

    (void)pthread_mutex_lock(&l->lock);
    lib = agx_map_get(&l->libraries, name);
    (void)pthread_mutex_unlock(&l->lock);
    return lib;
}

/* Two threads may have loaded the same library: the first copy stays. */
static struct library *remember(struct agx_fnlib *l, struct agx_str name, struct library *lib)
{
    struct library *first;

    (void)pthread_mutex_lock(&l->lock);
    first = agx_map_get(&l->libraries, name);
    if (!first && agx_map_put(&l->libraries, name, lib, NULL) < 0)
        abort();
    (void)pthread_mutex_unlock(&l->lock);
    if (!first)
        return lib;
    (void)dlclose(lib->handle);
    free(lib);
    return first;
}

static int find_library(struct agx_fnlib *l, struct agx_str name, struct library **ret,
                        struct agx_error **err)
{
    _cleanup_free_ char *file = NULL;
    int r;

    *ret = cached(l, name);
    if (*ret)
        return 0;
    file = find_file(l, name);
    if (!file)
        return agx_error_set(err, AGX_NOT_FOUND,
                             "no library '%.*s': there is no %.*s.so or lib%.*s.so in '%s'",
                             AGX_STR_ARG(name), AGX_STR_ARG(name), AGX_STR_ARG(name), l->path);
    r = load(file, ret, err);
    if (r == 0)
        *ret = remember(l, name, *ret);
    return r;
}

int agx_fnlib_find(struct agx_fnlib *l, struct agx_str target, struct agx_fn **ret_fn,
                   struct agx_error **err)
{
    struct agx_str library = AGX_STR(""), function = AGX_STR("");
    struct library *lib = NULL;
    int r = split_target(target, &library, &function, err);

    if (r == 0)
        r = find_library(l, library, &lib, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < lib->count; i++) {
        if (agx_str_eq(agx_str_from(lib->fns[i].def->name), function)) {
            *ret_fn = &lib->fns[i];
            return 0;
        }
    }
    return agx_error_set(err, AGX_NOT_FOUND, "library '%.*s' has no function '%.*s'",
                         AGX_STR_ARG(library), AGX_STR_ARG(function));
}
