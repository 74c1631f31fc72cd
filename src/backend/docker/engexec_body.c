/*
 * engexec_body.c: runs and kills a command by a shell of the image.
 *
 * The engine ends an exec with its first process, and cannot kill one. So a shell runs the command
 * as its child, with a unique variable in its environment, and stays until no process has that
 * variable; a second exec sends signals to those that do. $0 is the command's id and a ';', so that
 * no id is a prefix of another.
 */
#include "backend/docker/engexec_internal.h"

#include "base/banned.h"

/* $1 is the directory. Messages of the shell itself (that a child was killed) are dropped: only the
 * command gets the real standard error, as descriptor 3. */
static const char start_script[] =
    "cd -- \"$1\" 2>/dev/null || { mkdir -p -- \"$1\" && cd -- \"$1\"; } || exit 126\n"
    "shift; trap : TERM INT HUP QUIT\n"
    "exec 3>&2 2>/dev/null\n"
    "(exec 2>&3 3>&-; AGENTIX_EXEC=$0 exec \"$@\"); code=$?\n"
    "exec 3>&-\n"
    "while grep -qs \"AGENTIX_EXEC=$0\" /proc/[0-9]*/environ; do sleep 0.1 || sleep 1; done\n"
    "exit $code\n";

/* $1 is the grace period in tenths of a second. TERM once, KILL as often as needed. */
static const char kill_script[] =
    "sign=TERM left=$1\n"
    "while pids=$(grep -ls \"AGENTIX_EXEC=$0\" /proc/[0-9]*/environ); [ -n \"$pids\" ]; do\n"
    "[ $left -gt 0 ] || sign=KILL\n"
    "for p in $pids; do p=${p#/proc/}; p=${p%/environ}; kill -$sign $p; kill -CONT $p; done\n"
    "[ $sign = KILL ] || sign=0\n"
    "left=$((left - 1)); sleep 0.1 || sleep 1; done 2>/dev/null\n";

/* A string that is not UTF-8 is an error: JSON cannot carry it. */
static int engexec_body_push(json_t *list, const char *word)
{
    return json_array_append_new(list, json_string(word));
}

static int push_list(json_t *to, struct agx_init_list from)
{
    const char *word;
    int bad = 0;

    while ((word = agx_init_list_next(&from)))
        bad |= engexec_body_push(to, word);
    return bad;
}

static json_t *shell(const char *script, struct agx_str id, const char *first)
{
    char marker[AGX_INIT_ID_MAX + 2];

    (void)snprintf(marker, sizeof(marker), "%.*s;", AGX_STR_ARG(id));
    return json_pack("[sssss]", "sh", "-c", script, marker, first);
}

static json_t *body(const char *user, json_t *command, json_t *env)
{
    return json_pack("{s:s,s:s,s:o,s:o}", "User", user, "WorkingDir", "/", "Cmd", command, "Env",
                     env);
}

json_t *agx_engexec_body_start(const struct agx_init_msg *m, const char *user)
{
    json_t *command = shell(start_script, m->id, m->cwd.len > 0 ? m->cwd.ptr : "/");
    json_t *env = json_array(), *all = body(user, command, env); /* takes both */
    int bad = all ? 0 : -1;

    if (all) {
        bad |= push_list(command, m->argv);
        bad |= push_list(env, m->env);
        bad |= json_object_set_new(all, "AttachStdin", json_boolean(m->flags & AGX_INIT_STDIN));
        bad |= json_object_set_new(all, "AttachStdout", json_true());
        bad |= json_object_set_new(all, "AttachStderr", json_true());
    }
    if (bad) {
        json_decref(all);
        return NULL;
    }
    return all;
}

json_t *agx_engexec_body_kill(struct agx_str id, uint64_t grace_ms, const char *user)
{
    char tenths[24];

    (void)snprintf(tenths, sizeof(tenths), "%llu", (unsigned long long)(grace_ms + 99) / 100);
    return body(user, shell(kill_script, id, tenths), json_array());
}
