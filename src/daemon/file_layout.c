#include "daemon/file_layout.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

/* Any id except root's: agx_xdg_path() then uses no system directories. */
#define SOME_USER ((uid_t)-1)

static int beside(char **ret, const char *path, const char *suffix, struct agx_error **err)
{
    if (asprintf(ret, "%s%s", path, suffix) >= 0)
        return 0;
    *ret = NULL;
    return agx_error_no_memory(err);
}

/* The parent directory of `path`; the root directory keeps its slash. */
static int directory_of(char **ret, const char *path, struct agx_error **err)
{
    const char *slash = strrchr(path, '/');
    int r = beside(ret, path, "", err);

    if (r == 0)
        (*ret)[AGX_MAX(slash - path, 1)] = '\0';
    return r;
}

static int find_socket(struct agx_file_layout *p, const struct agx_xdg *x, struct agx_error **err)
{
    int r = agx_xdg_socket(x, &p->socket, err);

    if (r < 0)
        return r;
    p->run_dir_ours = !x->socket || !*x->socket;
    if (strrchr(p->socket, '/')[1] == '\0')
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "AGENTIX_SOCKET is '%s', which names a directory", p->socket);
    r = directory_of(&p->run_dir, p->socket, err);
    if (r < 0)
        return r;
    return p->run_dir_ours ? beside(&p->lock, p->run_dir, "/agentixd.lock", err)
                           : beside(&p->lock, p->socket, ".lock", err);
}

int agx_file_layout_init(struct agx_file_layout *p, const struct agx_xdg *x, struct agx_error **err)
{
    int r;

    *p = (struct agx_file_layout){ 0 };
    r = find_socket(p, x, err);
    if (r == 0)
        r = agx_xdg_path(x, AGX_XDG_DATA, "agentix", &p->data_dir, err);
    if (r == 0)
        r = beside(&p->store_dir, p->data_dir, "/store", err);
    if (r == 0)
        r = beside(&p->images_dir, p->data_dir, "/images", err);
    if (r == 0)
        r = beside(&p->shifted_images_dir, p->data_dir, "/images-shifted", err);
    if (r == 0)
        r = beside(&p->exec_log_dir, p->data_dir, "/exec-logs", err);
    if (r == 0)
        r = beside(&p->log_file, p->data_dir, "/agentixd.log", err);
    if (r == 0)
        r = agx_xdg_path(x, AGX_XDG_CONFIG, "agentix/config.yaml", &p->config_file, err);
    if (r < 0)
        agx_file_layout_done(p);
    return r;
}

void agx_file_layout_done(struct agx_file_layout *p)
{
    if (!p)
        return;
    free(p->socket);
    free(p->lock);
    free(p->run_dir);
    free(p->data_dir);
    free(p->store_dir);
    free(p->images_dir);
    free(p->shifted_images_dir);
    free(p->exec_log_dir);
    free(p->log_file);
    free(p->config_file);
    *p = (struct agx_file_layout){ 0 };
}

int agx_file_layout_agbox_init(struct agx_file_layout_agbox *p, const struct agx_xdg *x,
                               struct agx_error **err)
{
    struct agx_xdg user = *x;
    int r;

    *p = (struct agx_file_layout_agbox){ 0 };
    user.uid = SOME_USER;
    r = agx_xdg_path(&user, AGX_XDG_RUNTIME, "agbox", &p->run_dir, err);
    if (r == 0)
        r = beside(&p->socket, p->run_dir, "/agboxd.sock", err);
    if (r == 0)
        r = beside(&p->lock, p->run_dir, "/agboxd.lock", err);
    if (r == 0)
        r = agx_xdg_path(&user, AGX_XDG_DATA, "agents-sandbox/exec-logs", &p->exec_log_dir, err);
    if (r == 0)
        r = agx_xdg_path(&user, AGX_XDG_CONFIG, "agents-sandbox/config.toml", &p->config_file, err);
    if (r < 0)
        agx_file_layout_agbox_done(p);
    return r;
}

void agx_file_layout_agbox_done(struct agx_file_layout_agbox *p)
{
    if (!p)
        return;
    free(p->run_dir);
    free(p->socket);
    free(p->lock);
    free(p->exec_log_dir);
    free(p->config_file);
    *p = (struct agx_file_layout_agbox){ 0 };
}
