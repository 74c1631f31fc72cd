/* lmdb_record.c: values with their checksum. */
#include "store/lmdb_record.h"

#include "base/siphash.h"

#include <endian.h>

#include "base/banned.h"

/* Part of the file format: never changes. */
static const struct agx_siphash_key sum_key = { UINT64_C(0x6167656e74697820),
                                                UINT64_C(0x73746f7265207631) };

static uint64_t sum_of(struct agx_str key, struct agx_str value)
{
    const struct agx_siphash_key k = { agx_siphash(sum_key, key), sum_key.k1 };

    return agx_siphash(k, value);
}

void agx_lmdb_record_write(void *at, struct agx_str key, struct agx_str value)
{
    uint64_t sum = htole64(sum_of(key, value));

    memcpy(at, &sum, sizeof(sum));
    if (value.len > 0)
        memcpy((char *)at + sizeof(sum), value.ptr, value.len);
}

bool agx_lmdb_record_read(struct agx_str key, struct agx_str record, struct agx_str *ret_value)
{
    uint64_t sum;

    if (record.len < sizeof(sum))
        return false;
    memcpy(&sum, record.ptr, sizeof(sum));
    *ret_value = agx_str_skip(record, sizeof(sum));
    return le64toh(sum) == sum_of(key, *ret_value);
}
