/*
 * lmdb_verify.c: the check of a store's file after an unclean stop.
 *
 * The child says one line on a pipe: "ok", or what is wrong. Only "ok" is good news: a child that a
 * signal ended has said nothing. LMDB trusts its file, so whatever the file makes it do (SIGBUS
 * past the end, SIGSEGV, a failed assertion, a walk in circles) must not happen in our process.
 */
#include "store/lmdb_verify.h"

#include "base/fd.h"
#include "store/lmdb_dir.h"
#include "store/lmdb_record.h"
#include "store/store.h"

#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/banned.h"

#define REPORT_MAX 512

/* LMDB's database of free pages. */
#define FREE_DBI 0

struct check {
    int report_fd;
    MDB_txn *txn;
    uint64_t last_page;
};

/* The end of the child. */
AGX_PRINTF(2, 3)
static _Noreturn void tell(const struct check *c, const char *fmt, ...)
{
    char text[REPORT_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)!agx_fd_write_all(c->report_fd, agx_str_from(text), NULL);
    _exit(0);
}

static struct agx_str str_of(const MDB_val *v)
{
    return agx_str_bytes(v->mv_data, v->mv_size);
}

static void check_record(const struct check *c, MDB_dbi dbi, const char *table, MDB_val *key,
                         const MDB_val *value)
{
    struct agx_str unused;
    MDB_val found;

    if (!agx_lmdb_record_read(str_of(key), str_of(value), &unused))
        tell(c, "the checksum of '%.*s' in '%s' differs", AGX_STR_ARG(str_of(key)), table);
    if (mdb_get(c->txn, dbi, key, &found) != 0 || found.mv_data != value->mv_data)
        tell(c, "'%.*s' in '%s' is not where it belongs", AGX_STR_ARG(str_of(key)), table);
}

static void check_table(const struct check *c, MDB_dbi dbi, const char *table)
{
    MDB_val key, value;
    struct agx_str before = { NULL, 0 };
    MDB_cursor *cursor;
    MDB_stat stat;
    size_t n = 0;
    int rc;

    if (mdb_stat(c->txn, dbi, &stat) != 0 || mdb_cursor_open(c->txn, dbi, &cursor) != 0)
        tell(c, "table '%s' cannot be opened", table);
    while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        if (++n > stat.ms_entries)
            break; /* so that a walk in circles ends */
        if (n > 1 && agx_store_key_cmp(before, str_of(&key)) >= 0)
            tell(c, "the keys of '%s' are not sorted", table);
        before = str_of(&key);
        check_record(c, dbi, table, &key, &value);
    }
    if (rc != 0 && rc != MDB_NOTFOUND)
        tell(c, "table '%s': %s", table, mdb_strerror(rc));
    if (n != stat.ms_entries)
        tell(c, "table '%s' should have %zu records", table, stat.ms_entries);
    mdb_cursor_close(cursor);
}

/* Each record of the free list is a number n and n page numbers in descending order. A page that is
 * listed by mistake would be overwritten while it is in use. */
static void check_free_pages(const struct check *c)
{
    MDB_val key, value;
    MDB_cursor *cursor;
    int rc;

    if (mdb_cursor_open(c->txn, FREE_DBI, &cursor) != 0)
        tell(c, "the list of free pages cannot be opened");
    while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        const char *at = value.mv_data;
        uint64_t n = 0, page, above = c->last_page + 1;

        if (value.mv_size >= sizeof(n))
            memcpy(&n, at, sizeof(n));
        if (value.mv_size < sizeof(n) || n > value.mv_size / sizeof(page) - 1)
            tell(c, "the list of free pages is cut");
        for (uint64_t i = 1; i <= n; i++, above = page) {
            memcpy(&page, at + i * sizeof(page), sizeof(page));
            if (page < 2 || page >= above)
                tell(c, "the list of free pages is not sound");
        }
    }
    if (rc != MDB_NOTFOUND)
        tell(c, "the list of free pages: %s", mdb_strerror(rc));
    mdb_cursor_close(cursor);
}

static void check_tables(const struct check *c, MDB_env *env)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    MDB_dbi names, dbi;
    int rc;

    if (mdb_dbi_open(c->txn, NULL, 0, &names) != 0 || mdb_cursor_open(c->txn, names, &cursor) != 0)
        tell(c, "the list of tables cannot be opened");
    while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        char name[64];

        (void)snprintf(name, sizeof(name), "%.*s", AGX_STR_ARG(str_of(&key)));
        rc = mdb_dbi_open(c->txn, name, 0, &dbi);
        if (rc != 0)
            tell(c, "table '%s': %s", name, mdb_strerror(rc));
        check_table(c, dbi, name);
        mdb_dbi_close(env, dbi);
    }
    if (rc != MDB_NOTFOUND)
        tell(c, "the list of tables: %s", mdb_strerror(rc));
    mdb_cursor_close(cursor);
}

/* Restores default signal actions, disables core dumps and sets a time limit. */
static void tame_child(unsigned timeout_s)
{
    static const int signals[] = { SIGBUS, SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGALRM };
    int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    for (size_t i = 0; i < AGX_ARRAY_LEN(signals); i++)
        (void)signal(signals[i], SIG_DFL);
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(null_fd, STDERR_FILENO); /* LMDB prints what it asserts */
    (void)alarm(timeout_s);
}

static _Noreturn void run_child(const char *dir, unsigned timeout_s, int report_fd)
{
    struct check c = { .report_fd = report_fd };
    MDB_envinfo info;
    MDB_env *env;
    int rc;

    tame_child(timeout_s);
    rc = mdb_env_create(&env);
    if (rc == 0)
        rc = mdb_env_set_maxdbs(env, 1);
    if (rc == 0)
        rc = mdb_env_open(env, dir, MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS, 0600);
    if (rc == 0)
        rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &c.txn);
    if (rc == 0)
        rc = mdb_env_info(env, &info);
    if (rc != 0)
        tell(&c, "%s", mdb_strerror(rc));
    c.last_page = info.me_last_pgno;
    check_tables(&c, env);
    check_free_pages(&c);
    tell(&c, "ok");
}

static int lmdb_verify_judge(const char *data_path, struct agx_str said, int status,
                             struct agx_error **err)
{
    if (agx_str_eq(said, AGX_STR("ok")))
        return 0;
    if (said.len > 0)
        return agx_lmdb_dir_damaged(data_path, err, "%.*s", AGX_STR_ARG(said));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return agx_error_set(err, AGX_DEADLINE_EXCEEDED, "the check of '%s' takes too long",
                             data_path);
    if (WIFSIGNALED(status))
        return agx_lmdb_dir_damaged(data_path, err, "its check ended with signal %d (%s)",
                                    WTERMSIG(status), strsignal(WTERMSIG(status)));
    return agx_lmdb_dir_damaged(data_path, err, "its check ended without a result");
}

int agx_lmdb_verify(const char *dir, unsigned timeout_s, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf said = AGX_BUF_INIT(REPORT_MAX);
    _cleanup_close_ int ours = -1;
    char data_path[4096];
    int fds[2], status = 0, r;
    pid_t pid;

    (void)snprintf(data_path, sizeof(data_path), "%s/data.mdb", dir);
    if (pipe2(fds, O_CLOEXEC) < 0)
        return agx_error_errno(err, errno, "check '%s'", data_path);
    ours = fds[0];
    pid = fork();
    if (pid == 0)
        run_child(dir, timeout_s, fds[1]);
    close(fds[1]);
    if (pid < 0)
        return agx_error_errno(err, errno, "check '%s'", data_path);
    r = agx_fd_read_all(ours, &said, err);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return r < 0 ? r : lmdb_verify_judge(data_path, agx_buf_peek(&said), status, err);
}
