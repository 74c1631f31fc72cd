/*
 * fuzz_imageref.c: an accepted image name has one form, which parses to itself, and no part of it
 * can be mistaken for another part of a URL.
 */
#include "core/imageref.h"
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_imageref r, again;
    _cleanup_free_ char *text = NULL, *same = NULL;

    if (agx_imageref_parse(&r, agx_str_bytes(data, size), NULL) < 0)
        return 0;
    text = agx_imageref_text(&r);
    FUZZ_CHECK(text && !strpbrk(text, "?# \t\r\n\\\"'%<>|"));
    FUZZ_CHECK(r.id || (r.registry && r.path && (r.tag || r.digest)));
    FUZZ_CHECK(agx_imageref_parse(&again, agx_str_from(text), NULL) == 0);
    same = agx_imageref_text(&again);
    FUZZ_CHECK(same && strcmp(text, same) == 0);
    agx_imageref_done(&r);
    agx_imageref_done(&again);
    return 0;
}
