/* limits_image.h: limits of images: their layers, the store, imports, registries; see limits.h. */
#ifndef AGX_BASE_LIMITS_IMAGE_H
#define AGX_BASE_LIMITS_IMAGE_H

#include <stddef.h>
#include <stdint.h>

/* A program that knows a registry's credentials: how long it may take, which may be a question to a
 * cloud, and what it may print, which a pipe holds. */
#define AGX_CREDENTIALS_HELPER_MS 30000
#define AGX_CREDENTIALS_MAX ((size_t)16 << 10)

/* Layers of an image: Docker's own maximum. */
#define AGX_IMAGE_LAYERS_MAX 127

/* A pull: layers that come at the same time, as Docker has it; how often its progress is told: as
 * fast as people read; and one layer as it comes: the largest that people use have 20 GiB. */
#define AGX_PULL_LAYERS 3
#define AGX_PULL_PROGRESS_MS 200
#define AGX_PULL_BLOB_MAX ((uint64_t)64 << 30)

/* A local engine that gives an image: it may say nothing while it packs a layer of gigabytes. */
#define AGX_PULL_ENGINE_QUIET_MS 600000

/* A registry: how often a request that brings nothing is tried, and the first pause between two,
 * which doubles: one that restarts is back by then; the longest pause that a registry can ask for;
 * addresses that one request may be sent on to: real ones need one or two. */
#define AGX_PULL_TRIES 5
#define AGX_PULL_RETRY_MS 500
#define AGX_PULL_RETRY_MAX_MS 30000
#define AGX_PULL_REDIRECTS 5

/* Until a connection stands; without a byte; for a token. */
#define AGX_PULL_CONNECT_MS 30000
#define AGX_PULL_QUIET_MS 60000
#define AGX_PULL_TOKEN_MS 30000

/* One layer, unpacked: the largest images that people use have layers of some 20 GiB and half a
 * million files. */
#define AGX_UNPACK_BYTES_MAX ((uint64_t)64 << 30)
#define AGX_UNPACK_ENTRIES_MAX ((uint64_t)2 << 20)

/* How far compression may go: real layers reach 10 times, files of zeros 1,000 times with gzip. A
 * bomb goes farther or is large: up to a gibibyte nobody minds. */
#define AGX_UNPACK_RATIO_MAX 200
#define AGX_UNPACK_RATIO_FROM ((uint64_t)1 << 30)

/* Components of a name: the deepest trees of packages have some fifty. */
#define AGX_UNPACK_DEPTH_MAX 256

/* Names, modes and times of a tar's directories, which wait for its end: half a million of usual
 * length. */
#define AGX_UNPACK_DIRS_BYTES ((size_t)64 << 20)

/* Read from a compressed tar at a time. */
#define AGX_UNPACK_READ_BYTES ((size_t)256 << 10)

/* refs.json: some ten thousand images with a few names each. */
#define AGX_IMAGES_REFS_MAX ((size_t)16 << 20)

/* Threads of the store: those that unpack, two that write what comes in, so that pulls go on while
 * layers are unpacked, and one that writes refs.json; jobs that wait for one; and what they have at
 * the end before they are left alone. */
#define AGX_IMAGES_UNPACK_THREADS 3
#define AGX_IMAGES_SPOOL_THREADS 2
#define AGX_IMAGES_QUEUE 1024
#define AGX_IMAGES_STOP_MS 5000

/* A spool: bytes that wait for the disk from which on the writer is to pause; and the most that may
 * wait, for it need not look. */
#define AGX_SPOOL_HIGH ((size_t)4 << 20)
#define AGX_SPOOL_HELD_MAX ((size_t)64 << 20)

/* The stream of one import: an archive of the largest images. */
#define AGX_IMPORT_MAX_BYTES ((uint64_t)64 << 30)

/* Files of an archive of images, and images: all of a large store in one have fewer. A tar with
 * more files is a root file system's. */
#define AGX_IMPORT_MEMBERS_MAX 65536
#define AGX_IMPORT_IMAGES_MAX 1024

#endif
