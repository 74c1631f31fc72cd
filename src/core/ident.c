/* ident.c: counts bytes as characters, since only ASCII is allowed. */
#include "core/ident.h"

#include "base/banned.h"

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_well_formed(struct agx_str id)
{
    if (id.len < AGX_IDENT_MIN || id.len > AGX_IDENT_MAX)
        return false;
    if (!is_alnum(id.ptr[0]) || !is_alnum(id.ptr[id.len - 1]))
        return false;
    for (size_t i = 0; i < id.len; i++)
        if (!is_alnum(id.ptr[i]) && id.ptr[i] != '-' && id.ptr[i] != '_')
            return false;
    return true;
}

int agx_ident_check(const char *field, struct agx_str id, struct agx_error **err)
{
    if (id.len < AGX_IDENT_MIN)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "%s must be at least %d characters", field,
                             AGX_IDENT_MIN);
    if (!is_well_formed(id))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "%s must be %d to %d letters, digits, '-' or '_', "
                             "with a letter or digit at both ends",
                             field, AGX_IDENT_MIN, AGX_IDENT_MAX);
    return 0;
}

bool agx_ident_is_label(struct agx_str s)
{
    if (s.len == 0 || s.len > AGX_LABEL_MAX || !is_alnum(s.ptr[0]) || !is_alnum(s.ptr[s.len - 1]))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_alnum(s.ptr[i]) && s.ptr[i] != '-')
            return false;
    return true;
}
