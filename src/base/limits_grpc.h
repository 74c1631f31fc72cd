/* limits_grpc.h: limits of gRPC over HTTP/2; see limits.h. */
#ifndef AGX_BASE_LIMITS_GRPC_H
#define AGX_BASE_LIMITS_GRPC_H

/* Concurrent calls on one HTTP/2 connection; clients queue the others by themselves. */
#define AGX_GRPC_STREAMS_MAX 1024

/* Connections of one gRPC server: below the descriptor limit of a process (20,000 here), with room
 * for other descriptors. */
#define AGX_GRPC_CONNS_MAX 16384

/* Connections, at a time, of peers that may not use the server, and how long each may last. They
 * are served only so that such a client gets an error that says why; they take no place from
 * clients that may call. On a busy host a client needs seconds to send its call. */
#define AGX_GRPC_REFUSED_MAX 16
#define AGX_GRPC_REFUSED_MS 5000

/* Flow-control windows: bytes that a client may send before we have consumed them, per call and per
 * connection. A large message then takes few round trips. */
#define AGX_GRPC_STREAM_WINDOW ((size_t)256 << 10)
#define AGX_GRPC_CONN_WINDOW ((size_t)1 << 20)

/* Memory that the calls of one connection may hold: requests in flight and replies that the client
 * has not read. Several of the largest messages. */
#define AGX_GRPC_CONN_BYTES_MAX ((size_t)64 << 20)

/* With more bytes of one stream waiting to be sent, its producer has to pause. */
#define AGX_GRPC_STREAM_HIGH ((size_t)64 << 10)

/* A request's headers, as HTTP/2 counts them: what C-core's clients accept. */
#define AGX_GRPC_HEADERS_MAX ((size_t)16 << 10)

/* Trailers, as HTTP/2 counts them: C-core's clients sometimes refuse more than 8 KiB and always
 * more than 16 KiB. */
#define AGX_GRPC_TRAILERS_MAX ((size_t)8 << 10)

/* Calls that a client may cancel (or that we refuse as malformed) at once, and per second in the
 * long run. A client that follows a sandbox until READY cancels one call for each, and may create
 * hundreds of sandboxes per second; peers are local and known. A cancelled call takes some 30 us,
 * so a client that does nothing else gets 3% of a core. */
#define AGX_GRPC_RESETS_BURST 10000
#define AGX_GRPC_RESETS_PER_S 1000

/* PING, SETTINGS and empty DATA at once, and per second; each frame that we send allows one more,
 * since clients measure their bandwidth with a PING for each answer. */
#define AGX_GRPC_CONTROLS_BURST 1000
#define AGX_GRPC_CONTROLS_PER_S 100

/* From the connection to its first complete SETTINGS. */
#define AGX_GRPC_HANDSHAKE_MS 10000

/* Idle time before the keepalive PING, and the time for its answer. A dead process closed its
 * socket long before; one in a debugger may be silent for long. */
#define AGX_GRPC_KEEPALIVE_MS 600000
#define AGX_GRPC_KEEPALIVE_WAIT_MS 20000

/* How long a stopping server still accepts calls after GOAWAY, for calls already on the way. */
#define AGX_GRPC_GOAWAY_MS 200

/* How long a client may take to close a connection that we ended. */
#define AGX_GRPC_LINGER_MS 500

#endif
