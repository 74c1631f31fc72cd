/* imageref.c: parses image names. */
#include "core/imageref.h"

#include "base/banned.h"

#include <stdio.h>

enum {
    NAME_MAX_BYTES = 255, /* of a path, as in Docker; and of a registry */
    TAG_MAX_BYTES = 128,
    ID_HEX = 64,
    DIGEST_HEX_MIN = 32,
};

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_hex(struct agx_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!(s.ptr[i] >= '0' && s.ptr[i] <= '9') && !(s.ptr[i] >= 'a' && s.ptr[i] <= 'f'))
            return false;
    return s.len > 0;
}

static bool is_word(struct agx_str s, const char *also)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (!is_lower_or_digit(c) && !(c >= 'A' && c <= 'Z') && !(c && strchr(also, c)))
            return false;
    }
    return s.len > 0;
}

/* Lower case and digits, with one '.', one or two '_', or any number of '-' between them. */
static bool is_component(struct agx_str s)
{
    size_t i = 0;

    while (i < s.len) {
        size_t start = i;
        char sep;

        while (i < s.len && is_lower_or_digit(s.ptr[i]))
            i++;
        if (i == start)
            return false;
        if (i == s.len)
            return true;
        sep = s.ptr[i];
        start = i;
        while (i < s.len && s.ptr[i] == sep)
            i++;
        if (!(sep == '-' || (sep == '.' && i - start == 1) || (sep == '_' && i - start <= 2)))
            return false;
    }
    return false;
}

static bool is_path(struct agx_str s)
{
    struct agx_str part;

    while (agx_str_split(&s, '/', &part))
        if (!is_component(part))
            return false;
    return true;
}

/* A host with an optional port; an IPv6 address in brackets. */
static bool is_registry(struct agx_str s)
{
    size_t host = s.len > 0 && s.ptr[0] == '[' ? agx_str_find(s, ']') + 1 : agx_str_find(s, ':');
    struct agx_str port;
    uint64_t number;

    if (host > s.len)
        return false;
    port = agx_str_skip(s, host);
    s.len = host;
    if (port.len > 0 &&
        !(port.ptr[0] == ':' && agx_parse_u64(agx_str_skip(port, 1), 65535, &number)))
        return false;
    if (s.len > 2 && s.ptr[0] == '[')
        return is_word((struct agx_str){ s.ptr + 1, s.len - 2 }, ":.");
    return is_word(s, ".-") && s.ptr[0] != '.' && s.ptr[0] != '-';
}

static bool is_digest(struct agx_str s)
{
    size_t colon = agx_str_find(s, ':');

    return colon > 0 && colon < s.len && is_word((struct agx_str){ s.ptr, colon }, "+._-") &&
           s.len - colon - 1 >= DIGEST_HEX_MIN && is_hex(agx_str_skip(s, colon + 1));
}

/* "sha256:" and 64 digits, or only the digits: never a name, as in Docker. */
static bool is_id(struct agx_str s)
{
    if (agx_str_starts(s, AGX_STR("sha256:")))
        s = agx_str_skip(s, strlen("sha256:"));
    return s.len == ID_HEX && is_hex(s);
}

static int imageref_bad(struct agx_str text, const char *why, struct agx_error **err)
{
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "image '%.*s': %s",
                         agx_text_cut(text, NAME_MAX_BYTES), text.ptr, why);
}

static int imageref_set(char **slot, struct agx_str value, struct agx_error **err)
{
    *slot = agx_str_dup(value);
    return *slot ? 0 : agx_error_no_memory(err);
}

/* Registry and path of a name without tag and digest. */
static int take_name(struct agx_imageref *r, struct agx_str text, struct agx_str name,
                     struct agx_error **err)
{
    size_t slash = agx_str_find(name, '/');
    struct agx_str first = { name.ptr, slash };
    bool has_registry =
        slash < name.len && (agx_str_find(first, '.') < slash || agx_str_find(first, ':') < slash ||
                             agx_str_eq(first, AGX_STR("localhost")));
    struct agx_str path = has_registry ? agx_str_skip(name, slash + 1) : name;
    bool is_hub = !has_registry || agx_str_eq(first, AGX_STR("docker.io")) ||
                  agx_str_eq(first, AGX_STR("index.docker.io"));
    bool is_short = is_hub && agx_str_find(path, '/') == path.len;

    if (has_registry && (!is_registry(first) || first.len > NAME_MAX_BYTES))
        return imageref_bad(text, "its registry is not a host", err);
    if (!is_path(path))
        return imageref_bad(
            text, "names have lower case letters, digits, and '.', '_', '-' between them", err);
    if (asprintf(&r->path, "%s%.*s", is_short ? "library/" : "", AGX_STR_ARG(path)) < 0) {
        r->path = NULL;
        return agx_error_no_memory(err);
    }
    if (strlen(r->path) > NAME_MAX_BYTES)
        return imageref_bad(text, "the name is longer than 255 bytes", err);
    return imageref_set(&r->registry, is_hub ? AGX_STR("docker.io") : first, err);
}

/* The position of a tag's colon, or name.len: after the last '/', as a port has a colon too. */
static size_t find_tag(struct agx_str name)
{
    for (size_t i = name.len; i > 0 && name.ptr[i - 1] != '/'; i--)
        if (name.ptr[i - 1] == ':')
            return i - 1;
    return name.len;
}

static int imageref_parse(struct agx_imageref *r, struct agx_str text, struct agx_error **err)
{
    size_t at = agx_str_find(text, '@');
    struct agx_str name = { text.ptr, at }, tag = { 0 };
    size_t colon = find_tag(name);

    if (text.len == 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the image name is empty");
    if (is_id(text))
        return imageref_set(&r->id, text, err);
    if (at < text.len) {
        if (!is_digest(agx_str_skip(text, at + 1)))
            return imageref_bad(text, "the text after '@' is not a digest", err);
        if (imageref_set(&r->digest, agx_str_skip(text, at + 1), err) < 0)
            return -AGX_RESOURCE_EXHAUSTED;
    }
    if (colon < name.len) {
        tag = agx_str_skip(name, colon + 1);
        name.len = colon;
        if (!is_word(tag, "_.-") || tag.len > TAG_MAX_BYTES || strchr(".-", tag.ptr[0]))
            return imageref_bad(text, "the text after ':' is not a tag", err);
    } else if (!r->digest) {
        tag = AGX_STR("latest");
    }
    if (tag.len > 0 && imageref_set(&r->tag, tag, err) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    return take_name(r, text, name, err);
}

int agx_imageref_parse(struct agx_imageref *r, struct agx_str text, struct agx_error **err)
{
    int n;

    *r = (struct agx_imageref){ 0 };
    n = imageref_parse(r, text, err);
    if (n < 0)
        agx_imageref_done(r);
    return n;
}

char *agx_imageref_text(const struct agx_imageref *r)
{
    char *text = NULL;

    if (r->id)
        return strdup(r->id);
    if (asprintf(&text, "%s/%s%s%s%s%s", r->registry, r->path, r->tag ? ":" : "", agx_text(r->tag),
                 r->digest ? "@" : "", agx_text(r->digest)) < 0)
        return NULL;
    return text;
}

void agx_imageref_done(struct agx_imageref *r)
{
    if (!r)
        return;
    free(r->registry);
    free(r->path);
    free(r->tag);
    free(r->digest);
    free(r->id);
    *r = (struct agx_imageref){ 0 };
}
