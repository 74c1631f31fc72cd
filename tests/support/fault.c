/* fault.c: allocation functions that fail on demand. */
#include "tests/support/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

static unsigned countdown; /* 0: off; 1: the next allocation fails */
static bool hit;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
int __real_vasprintf(char **out, const char *fmt, va_list ap);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
int __wrap_vasprintf(char **out, const char *fmt, va_list ap);

void agx_fault_arm(unsigned n)
{
    countdown = n;
    hit = false;
}

bool agx_fault_disarm(void)
{
    countdown = 0;
    return hit;
}

bool agx_fault_hit(void)
{
    return hit;
}

static bool fails(void)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    hit = true;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
    return fails() ? NULL : __real_strdup(s);
}

int __wrap_vasprintf(char **out, const char *fmt, va_list ap)
{
    if (fails()) {
        *out = NULL;
        return -1;
    }
    return __real_vasprintf(out, fmt, ap);
}
