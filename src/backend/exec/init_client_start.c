/* init_client_start.c: a command in init's format: words and environment, encoded once. */
#include "backend/exec/init_client_internal.h"

#include "base/mem.h"

#include "base/banned.h"

static int put_word(struct agx_buf *b, struct agx_str word)
{
    size_t n = agx_init_word_put(NULL, 0, word);
    int r = agx_buf_reserve(b, n);

    if (r == 0)
        b->len += agx_init_word_put(b->data + b->len, n, word);
    return r;
}

static int put_pair(struct agx_buf *b, struct agx_buf *text, const struct agx_pair *p)
{
    int r;

    agx_buf_clear(text);
    r = agx_buf_printf(text, "%s=%s", p->key, p->value);
    return r < 0 ? r : put_word(b, agx_buf_peek(text));
}

static int put_env(struct agx_init_client_start *s, const struct agx_pairs *env)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_INIT_PACKET_MAX);
    int r = 0;

    for (size_t i = 0; env && i < env->len && r == 0; i++) {
        r = put_pair(&s->env, &text, &env->items[i]);
        s->n_env++;
    }
    return r;
}

struct agx_init_client_start *agx_init_client_start_new(const struct agx_words *command,
                                                        const struct agx_pairs *env,
                                                        const char *cwd, uint32_t flags,
                                                        struct agx_error **err)
{
    struct agx_init_client_start *s = agx_new(struct agx_init_client_start);
    int r = 0;

    s->argv = s->env = (struct agx_buf)AGX_BUF_INIT(AGX_INIT_PACKET_MAX);
    s->flags = flags | AGX_INIT_INHERIT;
    for (size_t i = 0; i < command->len && r == 0; i++)
        r = put_word(&s->argv, agx_str_from(command->items[i]));
    s->n_argv = (uint32_t)command->len;
    if (r == 0)
        r = put_env(s, env);
    if (r == 0)
        r = agx_text_set(&s->cwd, cwd, NULL);
    if (r == 0)
        return s;
    agx_init_client_start_free(s);
    (void)agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                        "a command and its environment take more than %zu bytes, or there is no "
                        "memory for them",
                        AGX_INIT_PACKET_MAX);
    return NULL;
}

void agx_init_client_start_free(struct agx_init_client_start *s)
{
    if (!s)
        return;
    agx_buf_done(&s->argv);
    agx_buf_done(&s->env);
    free(s->cwd);
    free(s);
}
