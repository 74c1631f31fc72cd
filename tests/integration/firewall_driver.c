/*
 * firewall_driver.c: a firewall that carries out the commands on its standard input, one per line,
 * and answers each with "ok" or the error.
 *
 *     put ID BRIDGE SUBNET[,SUBNET] [closed] [ENTRY]...     remove ID
 *     want ID BRIDGE SUBNET[,SUBNET] ...                    for the next sync
 *     sync
 *     crowd                                 opens all descriptors that select() can have
 *
 * It prints a line "restored" when another program changed the table and the firewall has restored
 * it. Option --block-lan. The end of the input ends the program; the table stays.
 */
#include "backend/net/firewall.h"
#include "tests/support/driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4096, WANTED = 32 };

struct wish {
    char line[LINE_MAX_BYTES];
    struct agx_subnet subnets[8];
    struct agx_egress egress[TEST_DRIVER_WORDS];
    struct agx_firewall_member member;
};

static struct {
    struct test_driver driver;
    struct agx_firewall *firewall;
    struct wish wanted[WANTED];
    size_t n_wanted;
} d;

static void on_done(void *user, struct agx_error *error)
{
    (void)user;
    test_driver_say("ok", error);
}

static void on_restored(void *user, struct agx_error *error)
{
    (void)user;
    test_driver_say("restored", error);
}

static void parse(struct wish *w, const char *line)
{
    struct agx_str rest, word, part;
    struct agx_firewall_member *m = &w->member;
    int n = 0;

    (void)snprintf(w->line, sizeof(w->line), "%s", line);
    *m = (struct agx_firewall_member){ .subnets = w->subnets, .egress = w->egress };
    rest = agx_str_from(w->line);
    while (agx_str_split(&rest, ' ', &word)) {
        ((char *)word.ptr)[word.len] = '\0';
        if (n == 1) {
            m->sandbox_id = word.ptr;
        } else if (n == 2) {
            m->bridge = word.ptr;
        } else if (n == 3) {
            while (agx_str_split(&word, ',', &part))
                test_driver_must(agx_subnet_parse(part, &w->subnets[m->n_subnets++], NULL) == 0,
                                 part.ptr);
        } else if (agx_str_eq(word, AGX_STR("closed"))) {
            m->closed = true;
        } else if (n > 3) {
            test_driver_must(agx_egress_parse(word, &w->egress[m->n_egress++], NULL) == 0,
                             word.ptr);
        }
        n++;
    }
}

static int sync_members(struct agx_error **err)
{
    struct agx_firewall_member members[WANTED];

    for (size_t i = 0; i < d.n_wanted; i++)
        members[i] = d.wanted[i].member;
    return agx_firewall_sync(d.firewall, members, d.n_wanted, on_done, NULL, NULL, err);
}

/* As in a daemon that has adopted many sandboxes. */
static void crowd(void)
{
    struct rlimit files;
    int fd;

    test_driver_must(getrlimit(RLIMIT_NOFILE, &files) == 0, "read the limit of descriptors");
    files.rlim_cur = AGX_MIN(files.rlim_max, (rlim_t)2 * FD_SETSIZE);
    test_driver_must(setrlimit(RLIMIT_NOFILE, &files) == 0, "raise the limit of descriptors");
    do
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fd < FD_SETSIZE);
    test_driver_must(fd >= FD_SETSIZE, "open descriptors");
}

static void on_line(char *line)
{
    static struct wish one;
    struct agx_error *err = NULL;
    int r = 0;

    if (strncmp(line, "want ", 5) == 0) {
        parse(&d.wanted[d.n_wanted++], line);
        test_driver_say("ok", NULL);
    } else if (strcmp(line, "crowd") == 0) {
        crowd();
        test_driver_say("ok", NULL);
    } else if (strcmp(line, "sync") == 0) {
        r = sync_members(&err);
    } else if (strncmp(line, "put ", 4) == 0) {
        parse(&one, line);
        r = agx_firewall_put(d.firewall, &one.member, on_done, NULL, NULL, &err);
    } else if (strncmp(line, "remove ", 7) == 0) {
        r = agx_firewall_remove(d.firewall, line + 7, on_done, NULL, NULL, &err);
    } else {
        test_driver_must(false, line);
    }
    if (r < 0)
        test_driver_say("", err);
}

static void on_end(void)
{
    agx_firewall_close(d.firewall, NULL, NULL);
}

int main(int argc, char **argv)
{
    const struct agx_firewall_config config = {
        .instance = "1234abcd-0000",
        .lan_blocked = argc > 1 && strcmp(argv[1], "--block-lan") == 0,
        .restored = on_restored,
    };
    struct agx_error *err = NULL;

    if (agx_firewall_allowed(&err) < 0 || agx_loop_open(&d.driver.loop, &err) < 0 ||
        agx_firewall_open(d.driver.loop, &config, &d.firewall, &err) < 0) {
        test_driver_say("", err);
        return 1;
    }
    d.driver.line = on_line;
    d.driver.end = on_end;
    return test_driver_run(&d.driver);
}
