/*
 * lmdb_record.h: the format of a value in the file: eight bytes of checksum, then the value.
 *
 * The checksum covers key and value, so a read detects a byte that changed on disk and a value
 * under the wrong key. It does not protect against forgery: its key is public.
 */
#ifndef AGX_STORE_LMDB_RECORD_H
#define AGX_STORE_LMDB_RECORD_H

#include "base/str.h"

#define AGX_LMDB_RECORD_SUM 8

/* Writes AGX_LMDB_RECORD_SUM + value.len bytes. */
void agx_lmdb_record_write(void *at, struct agx_str key, struct agx_str value);

/* The value inside `record`, borrowed from it; false when the checksum differs. */
bool agx_lmdb_record_read(struct agx_str key, struct agx_str record, struct agx_str *ret_value);

#endif
