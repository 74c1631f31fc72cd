/* limits_image.h: limits of images: their layers, the store, imports, registries; see limits.h. */
#ifndef AGX_BASE_LIMITS_IMAGE_H
#define AGX_BASE_LIMITS_IMAGE_H

#include <stddef.h>
#include <stdint.h>

/* A credentials helper: how long it may take, as it may query a cloud, and how much it may print,
 * which fits into a pipe. */
#define AGX_CREDENTIALS_HELPER_MS 30000
#define AGX_CREDENTIALS_MAX ((size_t)16 << 10)

/* Layers of an image: Docker's own maximum. */
#define AGX_IMAGE_LAYERS_MAX 127

/* A pull: layers fetched in parallel, as in Docker; how often its progress is reported, as fast as
 * people read; and the compressed size of one layer: the largest in use have 20 GiB. */
#define AGX_PULL_LAYERS 3
#define AGX_PULL_PROGRESS_MS 200
#define AGX_PULL_BLOB_MAX ((uint64_t)64 << 30)

/* A local engine that exports an image is silent while it packs a layer of gigabytes. */
#define AGX_PULL_ENGINE_QUIET_MS 600000

/* Requests to a registry. */
#define AGX_PULL_TRIES 5            /* attempts of a request that brings no data */
#define AGX_PULL_RETRY_MS 500       /* the first pause, doubling: outlasts a restart in total */
#define AGX_PULL_RETRY_MAX_MS 30000 /* the longest pause that a registry can request */
#define AGX_PULL_REDIRECTS 5        /* redirects of one request: real registries use one or two */

/* Timeouts: to connect; without a byte; for a token. */
#define AGX_PULL_CONNECT_MS 30000
#define AGX_PULL_QUIET_MS 60000
#define AGX_PULL_TOKEN_MS 30000

/* One unpacked layer: the largest images in use have layers of some 20 GiB and half a million
 * files. */
#define AGX_UNPACK_BYTES_MAX ((uint64_t)64 << 30)
#define AGX_UNPACK_ENTRIES_MAX ((uint64_t)2 << 20)

/* The largest compression ratio: real layers reach 10, files of zeros 1,000 with gzip. The check
 * starts at a gibibyte, below which a bomb is harmless. */
#define AGX_UNPACK_RATIO_MAX 200
#define AGX_UNPACK_RATIO_FROM ((uint64_t)1 << 30)

/* Components of a name: the deepest package trees have some fifty. */
#define AGX_UNPACK_DEPTH_MAX 256

/* Names, modes and times of a tar's directories, which are kept until its end: half a million of
 * usual length. */
#define AGX_UNPACK_DIRS_BYTES ((size_t)64 << 20)

/* Bytes read from a compressed tar at a time. */
#define AGX_UNPACK_READ_BYTES ((size_t)256 << 10)

/* refs.json: some ten thousand images with a few names each. */
#define AGX_IMAGES_REFS_MAX ((size_t)16 << 20)

/* Threads of the image store; one more writes refs.json. */
#define AGX_IMAGES_UNPACK_THREADS 3 /* threads that unpack */
#define AGX_IMAGES_SPOOL_THREADS 2  /* that write downloads, also during unpacking */
#define AGX_IMAGES_QUEUE 1024       /* jobs that wait for a thread */
#define AGX_IMAGES_STOP_MS 5000     /* how long the close waits for running jobs */

/* A spool: with this many bytes waiting for the disk the writer should pause; and the most that may
 * wait, since a writer need not check. */
#define AGX_SPOOL_HIGH ((size_t)4 << 20)
#define AGX_SPOOL_HELD_MAX ((size_t)64 << 20)

/* The stream of one import: an archive of the largest images. */
#define AGX_IMPORT_MAX_BYTES ((uint64_t)64 << 30)

/* Files and images of an archive of images: a whole large store in one archive has fewer. A tar
 * with more files is a root file system. */
#define AGX_IMPORT_MEMBERS_MAX 65536
#define AGX_IMPORT_IMAGES_MAX 1024

#endif
