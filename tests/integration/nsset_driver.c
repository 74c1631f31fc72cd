/*
 * nsset_driver.c: makes nssets by commands on standard input, one per line. It answers each with
 * one line: "ok" and the result, or the error.
 *
 *     adopt NAME NETWORK INTERFACE SUBNET BASE[,BASE]... [ENTRY]...     reserve BASE    begin
 *     take NAME NETWORK N BASES [ENTRY]...      NETWORK: nat, closed or none; BASES: - for any
 *     restrict NAME [ENTRY]...                  remove NAME    free NAME    release BASE
 *
 * The answer to take is: ok INTERFACE SUBNET GATEWAY {BASE ADDRESS USER_FD NET_FD}... with - for an
 * empty value. Lines that begin with "notice" are not answers. usage: nsset_driver INIT READY. The
 * end of the input ends the driver.
 */
#include "backend/native/net/nsset.h"
#include "base/limits_backend.h"
#include "tests/support/driver.h"

#include <stdio.h>
#include <sys/prctl.h>
#include <signal.h>

enum { NSSETS = 512, NAME = 32 };

struct slot {
    char name[NAME];
    struct agx_nsset *nsset;
};

static struct {
    struct test_driver driver;
    struct agx_nsset_pool *nssets;
    struct slot slots[NSSETS];
} d;

static void on_notice(void *user, const char *text)
{
    (void)user;
    (void)printf("notice %s\n", text);
    (void)fflush(stdout);
}

static void on_done(void *user, struct agx_error *error)
{
    (void)user;
    test_driver_say("ok", error);
}

static struct slot *find(const char *name)
{
    for (size_t i = 0; i < NSSETS; i++) {
        if (strcmp(d.slots[i].name, name) == 0)
            return &d.slots[i];
    }
    test_driver_must(false, name);
    return NULL;
}

static struct slot *claim(const char *name)
{
    struct slot *s = find("");

    (void)snprintf(s->name, sizeof(s->name), "%s", name);
    return s;
}

static const char *printable(const char *text)
{
    return text[0] ? text : "-";
}

static void tell(const struct agx_nsset *n)
{
    char subnet[AGX_SUBNET_TEXT] = "-";

    if (n->subnet.prefix)
        agx_subnet_format(&n->subnet, subnet);
    (void)printf("ok %s %s %s", printable(n->interface), subnet, printable(n->gateway));
    for (size_t i = 0; i < n->n; i++) {
        const struct agx_nsset_member *m = &n->members[i];

        (void)printf(" %u %s %d %d", m->id_base, printable(m->address), m->user_fd, m->net_fd);
    }
    (void)printf("\n");
    (void)fflush(stdout);
}

static void on_nsset(void *user, struct agx_nsset *nsset, struct agx_error *error)
{
    struct slot *s = user;

    s->nsset = nsset;
    if (nsset) {
        tell(nsset);
        return;
    }
    s->name[0] = '\0';
    test_driver_say("", error);
}

static size_t read_bases(const char *text, uint32_t *out)
{
    struct agx_str rest = agx_str_from(text), word;
    size_t n = 0;
    uint64_t value;

    while (agx_str_split(&rest, ',', &word)) {
        test_driver_must(agx_parse_u64(word, UINT32_MAX, &value), text);
        out[n++] = (uint32_t)value;
    }
    return n;
}

static enum agx_nsset_network read_network(const char *word)
{
    return word[0] == 'c'              ? AGX_NSSET_CLOSED
           : strcmp(word, "none") == 0 ? AGX_NSSET_NONE
                                       : AGX_NSSET_NAT;
}

struct list {
    struct agx_egress items[TEST_DRIVER_WORDS];
    size_t n;
};

static void read_list(struct list *l, char **words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        test_driver_must(agx_egress_parse(agx_str_from(words[i]), &l->items[l->n++], NULL) == 0,
                         words[i]);
}

static int do_adopt(char **w, size_t n, struct agx_error **err)
{
    static struct list list;
    uint32_t bases[16] = { 0 };
    struct agx_nsset_record r = { .network = read_network(w[2]),
                                  .interface = strcmp(w[3], "-") == 0 ? "" : w[3],
                                  .id_bases = bases,
                                  .egress = list.items };
    struct slot *s = claim(w[1]);
    int code;

    list.n = 0;
    if (w[4][0] != '-')
        test_driver_must(agx_subnet_parse(agx_str_from(w[4]), &r.subnet, NULL) == 0, w[4]);
    r.n = read_bases(w[5], bases);
    read_list(&list, w + 6, n - 6);
    r.n_egress = list.n;
    code = agx_nsset_pool_adopt(d.nssets, &r, &s->nsset, err);
    if (code == 0)
        tell(s->nsset);
    return code;
}

static int do_take(char **w, size_t n, struct agx_error **err)
{
    static struct list list;
    uint32_t bases[16] = { 0 };
    uint64_t members = 0;
    struct agx_nsset_want want = { .network = read_network(w[2]), .egress = list.items };

    list.n = 0;
    test_driver_must(agx_parse_u64(agx_str_from(w[3]), 100, &members), w[3]);
    want.n = (size_t)members;
    if (w[4][0] != '-') {
        (void)read_bases(w[4], bases);
        want.id_bases = bases;
    }
    read_list(&list, w + 5, n - 5);
    want.n_egress = list.n;
    return agx_nsset_pool_take(d.nssets, &want, on_nsset, claim(w[1]), NULL, err);
}

static int do_restrict(char **w, size_t n, struct agx_error **err)
{
    static struct list list;

    list.n = 0;
    read_list(&list, w + 2, n - 2);
    return agx_nsset_restrict(find(w[1])->nsset, list.items, list.n, on_done, NULL, err);
}

static int do_line(char **w, size_t n, struct agx_error **err)
{
    uint32_t base[16] = { 0 };
    struct slot *s;
    int r = 0;

    if (strcmp(w[0], "begin") == 0)
        return agx_nsset_pool_begin(d.nssets, on_done, NULL, err);
    if (strcmp(w[0], "adopt") == 0)
        return do_adopt(w, n, err);
    if (strcmp(w[0], "take") == 0)
        return do_take(w, n, err);
    if (strcmp(w[0], "restrict") == 0)
        return do_restrict(w, n, err);
    if (strcmp(w[0], "reserve") == 0) {
        (void)read_bases(w[1], base);
        r = agx_nsset_pool_reserve(d.nssets, base[0], err);
    } else if (strcmp(w[0], "release") == 0) {
        (void)read_bases(w[1], base);
        agx_nsset_pool_release(d.nssets, base[0]);
    } else {
        s = find(w[1]);
        s->nsset = w[0][0] == 'r' ? agx_nsset_remove(s->nsset) : agx_nsset_free(s->nsset);
        s->name[0] = '\0';
    }
    if (r == 0)
        test_driver_say("ok", NULL);
    return r;
}

static void on_line(char *line)
{
    struct agx_error *err = NULL;
    char *words[TEST_DRIVER_WORDS];
    size_t n = test_driver_split(line, words);

    test_driver_must(n > 0, "an empty line");
    if (do_line(words, n, &err) < 0)
        test_driver_say("", err);
}

static void on_end(void)
{
    for (size_t i = 0; i < NSSETS; i++)
        d.slots[i].nsset = agx_nsset_free(d.slots[i].nsset);
    agx_nsset_pool_close(d.nssets, NULL, NULL);
}

int main(int argc, char **argv)
{
    struct agx_nsset_pool_config config = { .instance = "1234abcd-0000",
                                            .id_base = AGX_NSSET_ID_BASE,
                                            .id_ranges = 64,
                                            .notice = on_notice };
    struct agx_error *err = NULL;
    uint64_t ready = 0;

    test_driver_must(argc > 2 && agx_parse_u64(agx_str_from(argv[2]), 256, &ready), "usage");
    config.init_path = argv[1];
    config.ready = (unsigned)ready;
    test_driver_must(agx_subnet_parse(AGX_STR(AGX_SUBNETS_POOL), &config.pool, NULL) == 0,
                     AGX_SUBNETS_POOL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (agx_loop_open(&d.driver.loop, &err) < 0 ||
        agx_nsset_pool_open(d.driver.loop, &config, &d.nssets, &err) < 0) {
        test_driver_say("", err);
        return 1;
    }
    d.driver.line = on_line;
    d.driver.end = on_end;
    return test_driver_run(&d.driver);
}
