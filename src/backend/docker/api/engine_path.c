/* engine_path.c: paths of the engine's API with foreign text in them. */
#include "backend/docker/api/engine.h"

#include "base/banned.h"

/* Escapes every byte except those that are literal everywhere in a URL. */
static int escape(struct agx_buf *out, const char *s)
{
    static const char digits[] = "0123456789ABCDEF";
    int r = 0;

    for (; *s && r == 0; s++) {
        uint8_t c = (uint8_t)*s;

        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
            strchr("-._~", c))
            r = agx_buf_push(out, c);
        else
            r = agx_buf_append(
                out, (struct agx_str){ (char[]){ '%', digits[c >> 4], digits[c & 15] }, 3 });
    }
    return r;
}

char *agx_docker_path(const char *fmt, ...)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_DOCKER_PATH_MAX);
    va_list ap;
    int r = 0;

    va_start(ap, fmt);
    for (; *fmt && r == 0; fmt++) {
        if (*fmt != '%')
            r = agx_buf_push(&out, (uint8_t)*fmt);
        else if (*++fmt == 's')
            r = escape(&out, va_arg(ap, const char *));
        else if (*fmt == 'u')
            r = agx_buf_printf(&out, "%u", va_arg(ap, unsigned));
        else
            r = *fmt == '%' ? agx_buf_push(&out, '%') : -AGX_INVALID_ARGUMENT;
    }
    va_end(ap);
    return r < 0 ? NULL : agx_buf_take_cstr(&out);
}
