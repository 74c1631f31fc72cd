/* fuzz_spec_yaml.c: any text as a sandbox's YAML file, from the text to a spec that is accepted or
 * refused. */
#include "base/limits.h"
#include "core/spec_yaml.h"
#include "core/yaml.h"
#include "tests/support/fuzz.h"
#include "tests/support/pairs.h"

static int look(void *user, const char *path, enum agx_path_kind *ret, struct agx_error **err)
{
    (void)user;
    (void)err;
    FUZZ_CHECK(path[0] == '/' && !strstr(path, "//") && !strstr(path, "/./"));
    *ret = AGX_PATH_DIRECTORY;
    return 0;
}

static const struct agx_spec_host host = { "/home/me", "/home/agbox", look, NULL };

/* Every node is reached at most once without aliases, and every text is text. */
static void check_tree(struct agx_str bytes)
{
    struct agx_yaml y = { 0 };
    size_t seen = 0;

    if (agx_yaml_parse(&y, bytes, 1000, NULL) < 0)
        return;
    for (size_t i = 1; i < y.len; i++) {
        const struct agx_yaml_node *n = &y.nodes[i];
        struct agx_str text = agx_yaml_text(&y, n);

        FUZZ_CHECK(n->next == 0 || n->next > i);
        FUZZ_CHECK(n->first == 0 || n->first == i + 1);
        FUZZ_CHECK(n->kind != AGX_YAML_ALIAS || (n->target > 0 && n->target < i));
        FUZZ_CHECK(n->kind != AGX_YAML_SCALAR || !memchr(text.ptr, '\0', text.len));
        seen += (n->next != 0) + (n->first != 0);
    }
    FUZZ_CHECK(seen == y.len - 2);
    agx_yaml_done(&y);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_str bytes = agx_str_bytes(data, size);
    struct agx_spec s, copy;

    check_tree(bytes);
    if (agx_spec_from_yaml(&s, bytes, &err) < 0) {
        FUZZ_CHECK(err &&
                   agx_str_starts(agx_str_from(err->message), AGX_STR("invalid config_yaml")));
        return 0;
    }
    FUZZ_CHECK(agx_spec_copy(&copy, &s, NULL) == 0);
    FUZZ_CHECK(copy.companions_len == s.companions_len && test_pairs_eq(&copy.envs, &s.envs));
    if (agx_spec_accept(&s, &host, &err) == 0) {
        FUZZ_CHECK(s.image && s.image[0]);
        /* What was accepted once is accepted as it is. */
        FUZZ_CHECK(agx_spec_accept(&s, &host, NULL) == 0);
    }
    (void)!agx_spec_merge(&s, &copy, NULL); /* may be too long for a list */
    agx_spec_done(&s);
    agx_spec_done(&copy);
    return 0;
}
