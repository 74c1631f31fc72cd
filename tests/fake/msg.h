/*
 * msg.h: the messages between the fake backend and its world.
 *
 * A message is its length (u32, little endian), kind, number of descriptors, tag and fields:
 * numbers of 8 bytes and strings after their length. Each side trusts the other, but checks all the
 * same: a message that does not end where its fields end closes the connection.
 */
#ifndef AGX_TESTS_FAKE_MSG_H
#define AGX_TESTS_FAKE_MSG_H

#include "base/buf.h"

/* Both sides come from one build, but a test may leave an old world running. */
#define AGX_FAKE_VERSION 3

/* The largest message: several times the largest request of a client. */
#define AGX_FAKE_MESSAGE_MAX ((size_t)32 << 20)

/* Descriptors with one message: data and index of two logs. */
#define AGX_FAKE_FDS_MAX 4

/* The comment after each kind lists its fields. "Ids" are those of sandbox and exec. */
enum agx_fake_kind {
    /* To the world. Its answers carry the same tag. */
    AGX_FAKE_HELLO = 1, /* version */
    AGX_FAKE_PING,
    AGX_FAKE_START,  /* verb, sandbox, grace_ms, companions, labels: count, pairs */
    AGX_FAKE_CANCEL, /* (the tag of a START) */
    AGX_FAKE_LOOK,   /* sandbox, or "" for all */
    AGX_FAKE_EXEC,   /* ids, cwd, stdin_open, 4 caps, words: count, environment: count, pairs; 4 fds
                      */
    AGX_FAKE_ADOPT,  /* ids */
    AGX_FAKE_KILL,   /* ids, grace_ms */
    AGX_FAKE_WRITE,  /* ids, eof, bytes */
    AGX_FAKE_FORGET, /* ids */
    AGX_FAKE_USAGE,  /* sandbox */
    AGX_FAKE_SCRIPT, /* text */
    AGX_FAKE_END,    /* the world ends */
    /* From the world. */
    AGX_FAKE_WELCOME, /* version */
    AGX_FAKE_PONG,
    AGX_FAKE_BEGUN,
    AGX_FAKE_COMPANION, /* place, code, message */
    AGX_FAKE_PULL,      /* image; layers, bytes: done and total of each */
    AGX_FAKE_SEEN,      /* sandbox, primary, companions: a byte each */
    AGX_FAKE_USED,      /* part, known, figures: one for each */
    AGX_FAKE_DONE,      /* code, message */
    AGX_FAKE_REFUSED,   /* code, message */
    AGX_FAKE_UNKNOWN,
    AGX_FAKE_EXITED, /* exit code */
    AGX_FAKE_LOST,   /* code, message */
    AGX_FAKE_NEWS,   /* sandbox */
};

/* The size of length, kind, count of descriptors and tag. */
#define AGX_FAKE_HEADER_SIZE 14

/* A message being written at the end of a buffer. */
struct agx_fake_out {
    struct agx_buf *buf;
    size_t start;
    bool failed;
};

void agx_fake_out_begin(struct agx_fake_out *o, struct agx_buf *buf, enum agx_fake_kind kind,
                        uint64_t tag);
void agx_fake_out_u64(struct agx_fake_out *o, uint64_t n);
void agx_fake_out_str(struct agx_fake_out *o, struct agx_str s);
void agx_fake_out_cstr(struct agx_fake_out *o, const char *s);
/* -AGX_RESOURCE_EXHAUSTED: too large, or no memory, and nothing was added. */
int agx_fake_out_end(struct agx_fake_out *o, unsigned n_fds) AGX_MUST_CHECK;

/* A message being read; strings are borrowed from it. */
struct agx_fake_in {
    enum agx_fake_kind kind;
    unsigned n_fds;
    uint64_t tag;
    struct agx_str rest;
    bool bad; /* a field was missing; what was read is 0 or "" */
};

/* 1: *in is the message at the front of `bytes`, which has *ret_used bytes; 0: the message is not
 * complete yet; negative: it is malformed. */
int agx_fake_in_open(struct agx_fake_in *in, struct agx_str bytes, size_t *ret_used) AGX_MUST_CHECK;
uint64_t agx_fake_in_u64(struct agx_fake_in *in);
struct agx_str agx_fake_in_str(struct agx_fake_in *in);
/* A count of elements that take at least 8 bytes each. */
size_t agx_fake_in_count(struct agx_fake_in *in);
/* True if no field was missing and no byte is left. */
bool agx_fake_in_ends(const struct agx_fake_in *in);

#endif
