/*
 * limits.h: every limit that has a default, defined once, with the reason for its value. The limits
 * of a subsystem are in the header named after it.
 */
#ifndef AGX_BASE_LIMITS_H
#define AGX_BASE_LIMITS_H

#include "base/limits_backend.h"
#include "base/limits_cli.h"
#include "base/limits_daemon.h"
#include "base/limits_docker.h"
#include "base/limits_grpc.h"
#include "base/limits_image.h"
#include "base/limits_native.h"
#include "base/limits_runtime.h"

/* One Engine.IO message, WebSocket message or worker frame: as in later versions of the peer. */
#define AGX_MESSAGE_MAX ((size_t)256 << 20)

/* The largest message that the unchanged 0.1.5 client can receive (its HTTP library's default). */
#define AGX_LEGACY_MESSAGE_MAX ((size_t)4 << 20)

/* Nesting of msgpack and JSON values. Deep enough for people, far below what a thread's stack
 * allows. */
#define AGX_DEPTH_MAX 128

/* The deepest msgpack that a caller may request: the peer's own packer stops at 511. The reader
 * keeps one counter per level on its stack (4 KiB). */
#define AGX_MP_DEPTH_CEILING 512

/* Elements of one msgpack array, pairs of one map: 128 MiB of pointers in a Python list. Larger
 * arrays travel as an array extension. */
#define AGX_MP_COUNT_MAX ((size_t)1 << 24)

/* Dimensions of an array extension: numpy's own maximum. */
#define AGX_MP_NDIM_MAX 64

/* Memory that a frame decoder keeps between frames: enough for ordinary calls. */
#define AGX_FRAME_HELD_KEEP ((size_t)64 << 10)

/* Packets in one polling payload: with more the unchanged client drops the connection. */
#define AGX_EIO_PAYLOAD_PACKETS_MAX 16

/* A session id: ours and those of common servers have 20 characters; every polling URL has it. */
#define AGX_EIO_SID_MAX 128

/* The text of a Socket.IO packet before its attachments; ours are under 100 bytes. */
#define AGX_SIO_HEADER_MAX ((size_t)1 << 20)
#define AGX_SIO_ATTACHMENTS_MAX 64

/* A JSON document: an image's manifest or configuration is the largest that we read, and registries
 * refuse those above 4 MiB. */
#define AGX_JSON_MAX ((size_t)4 << 20)

/* One gRPC message: the default of every gRPC implementation. */
#define AGX_GRPC_MESSAGE_MAX ((size_t)4 << 20)

/* An HTTP/1.1 request line with its headers. */
#define AGX_HTTP_HEAD_MAX ((size_t)64 << 10)

/* A line of the log, with its newline: what a pipe writes atomically (PIPE_BUF). */
#define AGX_LOG_LINE_MAX 4096

/* Bytes read from one connection in one turn: a usual socket buffer, and small enough to be fair.
 */
#define AGX_CONN_READ_BYTES ((size_t)64 << 10)

/* A connection with this many bytes waiting to be sent counts as slow. */
#define AGX_CONN_OUT_HIGH ((size_t)64 << 10)

/* How long a closed connection waits for a peer that reads nothing of its remaining bytes. */
#define AGX_CONN_LINGER_MS 2000

/* How long a child that a killed process was just starting may hold its lock, on an overloaded
 * machine; and the pause between two checks. */
#define AGX_LOCKFILE_WAIT_MS 10000
#define AGX_LOCKFILE_PAUSE_MS 5

/* Connections accepted in one turn of the loop, so that a flood leaves time for other work. */
#define AGX_ACCEPT_BATCH 64

/* Pause after accept() found no free descriptor: short for people, but no busy loop. */
#define AGX_ACCEPT_RETRY_MS 100

#endif
