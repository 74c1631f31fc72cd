/*
 * initproto.h: the messages between the daemon and agentix-init. docs/design/init.md
 *
 * A packet is 4 bytes ('A', 'X', version, kind), then the fields of its kind in a fixed order,
 * little endian, and nothing after them. Strings carry their length and a NUL, so that a process
 * without an allocator can pass them to the kernel in place. Reading and writing allocate nothing.
 */
#ifndef AGX_CODEC_INITPROTO_H
#define AGX_CODEC_INITPROTO_H

#include "base/error.h"
#include "base/str.h"

#define AGX_INIT_VERSION 1

/* Init's descriptor for the end of its socket pair that a daemon may take by pidfd_getfd(2). */
#define AGX_INIT_CONTROL_FD 3

enum agx_init_kind {
    /* To init. */
    AGX_INIT_HELLO = 1, /* nonce: first on a connection; the newest HELLO wins */
    AGX_INIT_START,     /* a command; an id that was started is not started again */
    AGX_INIT_QUERY,     /* id, offset, err_offset: the output that the daemon has already */
    AGX_INIT_KILL,      /* id, grace_ms: TERM to its session, KILL after the grace */
    AGX_INIT_SIGNAL,    /* id, signo: to its process group */
    AGX_INIT_INPUT,     /* id, flags (EOF), data; TAKEN allows the next one */
    AGX_INIT_RESIZE,    /* id, rows, cols */
    AGX_INIT_FORGET,    /* id: the daemon has stored its end; no answer */
    AGX_INIT_STOP,      /* grace_ms: as SIGTERM to the sandbox, KILL after the grace */
    AGX_INIT_LARGE,     /* id, first descriptor: a sealed memfd that holds the START */
    AGX_INIT_GO,        /* flags (none): the main process may start; no answer */

    /* From init. */
    AGX_INIT_WELCOME = 64, /* nonce, pid, running, held: answers HELLO */
    AGX_INIT_STARTED,      /* id: it runs */
    AGX_INIT_REFUSED,      /* id, code, data (why): it could not be started; not remembered */
    AGX_INIT_UNKNOWN,      /* id: answers QUERY for an unknown id */
    AGX_INIT_EXITED,       /* id, exit_code, signo, usage: no process is left; until FORGET */
    AGX_INIT_GONE,         /* id: answers KILL */
    AGX_INIT_TAKEN,        /* id, code: the input is written, or has no reader */
    AGX_INIT_OUTPUT,       /* id, flags (ERR, EOF), offset, data: if init keeps the logs */
};

/* Of START. */
#define AGX_INIT_STDIN 1u   /* input will come; otherwise the command reads /dev/null */
#define AGX_INIT_TTY 2u     /* on a pseudo-terminal of rows and cols; implies STDIN, one log */
#define AGX_INIT_INHERIT 4u /* the sandbox's environment with `env` over it; else `env` alone */
#define AGX_INIT_UMASK 8u   /* `umask` is used; otherwise 022 */
/* Of INPUT and OUTPUT: nothing follows. */
#define AGX_INIT_EOF 16u
/* Of OUTPUT: standard error. */
#define AGX_INIT_ERR 32u

/* Of EXITED: init has killed the command because the sandbox itself ended. */
#define AGX_INIT_EXIT_LOST (-1)

/* A whole packet: more than the kernel accepts as arguments of a program (6 MiB). */
#define AGX_INIT_PACKET_MAX ((size_t)8 << 20)
/* The largest packet that is sent as it is; a larger one goes as AGX_INIT_LARGE. Well below the
 * default buffer of a socket. */
#define AGX_INIT_INLINE_MAX ((size_t)32 << 10)
/* Data of one INPUT or OUTPUT. */
#define AGX_INIT_DATA_MAX ((size_t)16 << 10)
#define AGX_INIT_ID_MAX 200
#define AGX_INIT_TEXT_MAX 240
#define AGX_INIT_WORDS_MAX 65536
#define AGX_INIT_RLIMITS_MAX 16
#define AGX_INIT_RLIMIT_SIZE 20

/* Descriptors that START may bring: data and index of stdout, then of stderr. */
#define AGX_INIT_FDS_MAX 4

/* Strings or limits as encoded in the packet; walk them with the functions below. */
struct agx_init_list {
    uint32_t count;
    struct agx_str bytes;
};

struct agx_init_usage {
    uint64_t user_us, system_us;
    uint64_t max_rss_kib;
};

/* Fields of other kinds are 0. Strings are borrowed from the packet, and a NUL follows each. */
struct agx_init_msg {
    enum agx_init_kind kind;
    struct agx_str id;
    uint32_t flags;
    uint64_t nonce;
    uint64_t grace_ms;
    uint32_t signo; /* EXITED: the signal that ended it, or 0 */
    uint32_t rows, cols;
    uint64_t offset, err_offset; /* QUERY: out and err */
    struct agx_str data;
    uint32_t pid, running, held;
    int32_t exit_code; /* 128 + signal, as in a shell; or AGX_INIT_EXIT_LOST */
    uint32_t code;     /* enum agx_code */
    struct agx_init_usage usage;

    /* START */
    struct agx_str user; /* "name", "uid", either with ":group" or ":gid"; empty: init's own */
    struct agx_str cwd;  /* absolute, or empty: "/" */
    uint32_t umask;
    uint64_t out_head, out_tail, err_head, err_tail; /* caps of the logs */
    struct agx_init_list argv;                       /* at least one string */
    struct agx_init_list env;                        /* NAME=value, each name once */
    struct agx_init_list rlimits;
};

/* The next string of a decoded list; NULL at its end. */
const char *agx_init_list_next(struct agx_init_list *l);

struct agx_init_rlimit {
    uint32_t resource; /* RLIMIT_ */
    uint64_t soft, hard;
};

bool agx_init_rlimit_next(struct agx_init_list *l, struct agx_init_rlimit *ret);
void agx_init_rlimit_put(uint8_t out[AGX_INIT_RLIMIT_SIZE], const struct agx_init_rlimit *x);

/* -AGX_INVALID_ARGUMENT, or -AGX_RESOURCE_EXHAUSTED past a limit. */
int agx_init_decode(struct agx_str packet, struct agx_init_msg *ret,
                    struct agx_error **err) AGX_MUST_CHECK;

/*
 * Returns the length of the packet, and writes it if that is at most `size`. The lists hold what
 * agx_init_word_put() wrote, or come from a packet. The caller must not pass a message that decode
 * would refuse.
 */
size_t agx_init_encode(const struct agx_init_msg *m, uint8_t *out, size_t size);

/* One string of a list. Returns the bytes it takes; writes them if they are at most `size`. */
size_t agx_init_word_put(uint8_t *out, size_t size, struct agx_str word);

#endif
