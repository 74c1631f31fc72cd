/* limits_rpc.h: limits of gRPC over HTTP/2; see limits.h. */
#ifndef AGX_BASE_LIMITS_RPC_H
#define AGX_BASE_LIMITS_RPC_H

/* Calls at a time on one HTTP/2 connection; clients queue the others by themselves. */
#define AGX_RPC_STREAMS_MAX 1024

/* Connections of one gRPC server: below the descriptors of a process (20,000 here), with room for
 * other uses of them. */
#define AGX_RPC_CONNS_MAX 16384

/* Bytes that a client may send before we have used them: for one call, and for a connection. A
 * large message then takes few round trips. */
#define AGX_RPC_STREAM_WINDOW ((size_t)256 << 10)
#define AGX_RPC_CONN_WINDOW ((size_t)1 << 20)

/* What the calls of one connection may make us keep: requests under way and replies that its client
 * does not read. Several of the largest messages. */
#define AGX_RPC_CONN_BYTES_MAX ((size_t)64 << 20)

/* Bytes of one stream that wait to be sent past which its producer has to pause. */
#define AGX_RPC_STREAM_HIGH ((size_t)64 << 10)

/* A request's headers, as HTTP/2 counts them: what C-core's clients are ready to receive. */
#define AGX_RPC_HEADERS_MAX ((size_t)16 << 10)

/* Trailers, as HTTP/2 counts them: C-core's clients refuse more than 8 KiB at times and more than
 * 16 KiB always. */
#define AGX_RPC_TRAILERS_MAX ((size_t)8 << 10)

/* Calls that a client may cancel (or that we refuse as malformed) at once, and each second in the
 * long run. Whoever follows a sandbox until it is READY cancels one call for each, and a client may
 * have hundreds of lives a second; peers are local and known. A call that is begun and cancelled
 * takes some 30 us, so that one that does nothing else gets 3% of a core. */
#define AGX_RPC_RESETS_BURST 10000
#define AGX_RPC_RESETS_PER_S 1000

/* PING, SETTINGS and empty DATA at once, and each second; each frame that we send allows one more,
 * since clients measure their bandwidth with a PING for each answer. */
#define AGX_RPC_CONTROLS_BURST 1000
#define AGX_RPC_CONTROLS_PER_S 100

/* From the connection to the end of its first SETTINGS. */
#define AGX_RPC_HANDSHAKE_MS 10000

/* Silence after which a client is asked for a sign of life, and the time that it has for one. A
 * process that died closed its socket long before; one in a debugger may be silent for long. */
#define AGX_RPC_KEEPALIVE_MS 600000
#define AGX_RPC_KEEPALIVE_WAIT_MS 20000

/* How long a stopping server waits for a client's answer before it takes no more of its calls. */
#define AGX_RPC_GOAWAY_MS 200

/* How long a client may take to close a connection that we ended. */
#define AGX_RPC_LINGER_MS 500

#endif
