/* firewall_legacy.c: sets the rules with iptables-legacy, or an iptables that is the same. */
#include "backend/net/firewall_legacy.h"

#include "backend/net/firewall_docker_user.h"
#include "base/buf.h"
#include "base/fd.h"
#include "loop/child.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "base/banned.h"

enum { NAMES_MAX = 4096 };

/* The engine must have used one of them to make its chain. An iptables that is a front end of
 * nftables does not find the chain, which is not in nftables: our caller has looked there. */
static const char *const programs[] = { "/usr/sbin/iptables-legacy", "/sbin/iptables-legacy",
                                        "/usr/sbin/iptables", "/sbin/iptables" };

/* Lists the tables of that filter that are in use in this network namespace. */
static bool is_in_use(void)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(NAMES_MAX);
    struct agx_str rest, line;

    if (agx_fd_read_file(AT_FDCWD, "/proc/net/ip_tables_names", &text, NULL) < 0)
        return false;
    rest = agx_buf_peek(&text);
    while (agx_str_split(&rest, '\n', &line)) {
        if (agx_str_eq(line, AGX_STR(AGX_FIREWALL_PASS_TABLE)))
            return true;
    }
    return false;
}

/* Returns its exit code; -1: it could not be run, or was killed. `-w` waits for other programs that
 * change rules. */
static int firewall_legacy_run(const char *program, const char *const *words, size_t n)
{
    const char *argv[24] = { program, "-w" };
    const struct agx_child_params params = { .file = program,
                                             .argv = argv,
                                             .group = AGX_CHILD_NEW_GROUP };
    int status, r;
    pid_t pid;

    for (size_t i = 0; i < n; i++)
        argv[i + 2] = words[i];
    if (agx_child_spawn(&params, &pid, NULL) < 0)
        return -1;
    do
        r = waitpid(pid, &status, 0);
    while (r < 0 && errno == EINTR);
    return r > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* NULL: no program finds such a chain. */
static const char *find_program(void)
{
    static const char *const list[] = { "-S", AGX_FIREWALL_PASS_CHAIN };

    for (size_t i = 0; i < AGX_ARRAY_LEN(programs); i++) {
        if (access(programs[i], X_OK) == 0 &&
            firewall_legacy_run(programs[i], list, AGX_ARRAY_LEN(list)) == 0)
            return programs[i];
    }
    return NULL;
}

/* -C, -I or -D: looks for the rule, inserts it at the head, deletes it. */
static int rule(const char *program, const char *what, const char *direction, const char *mark)
{
    const char *const words[] = { what,        AGX_FIREWALL_PASS_CHAIN,
                                  direction,   "agx+",
                                  "-m",        "comment",
                                  "--comment", mark,
                                  "-j",        "ACCEPT" };

    return firewall_legacy_run(program, words, AGX_ARRAY_LEN(words));
}

int agx_firewall_legacy_set(const char *mark, bool wanted, struct agx_error **err)
{
    static const char *const directions[] = { "-o", "-i" };
    const char *program = is_in_use() ? find_program() : NULL;

    for (size_t i = 0; program && i < AGX_ARRAY_LEN(directions); i++) {
        const bool there = rule(program, "-C", directions[i], mark) == 0;
        const char *what = wanted ? "-I" : "-D";

        if (there != wanted && rule(program, what, directions[i], mark) != 0)
            return agx_error_set(err, AGX_INTERNAL,
                                 "let packets of sandboxes through the older packet filter: "
                                 "'%s %s " AGX_FIREWALL_PASS_CHAIN " %s agx+ -j ACCEPT' failed",
                                 program, what, directions[i]);
    }
    return 0;
}
