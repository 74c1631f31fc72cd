/*
 * eio_open.h: the data of Engine.IO's open packet, with which a server begins a session:
 *
 *     {"sid":"...","upgrades":["websocket"],"pingTimeout":20000,"pingInterval":25000,
 *      "maxPayload":1000000}                                                  (without the break)
 */
#ifndef AGX_CODEC_EIO_OPEN_H
#define AGX_CODEC_EIO_OPEN_H

#include "base/buf.h"

struct agx_eio_open {
    struct agx_str sid;     /* letters, digits, '-', '_', '.', '~': URLs need no escape for it */
    bool upgrade_websocket; /* the session may be upgraded to a WebSocket */
    uint32_t ping_timeout_ms, ping_interval_ms;
    uint64_t max_payload; /* bytes of one polling body; 0: the server did not say */
};

int agx_eio_open_encode(struct agx_buf *out, const struct agx_eio_open *o) AGX_MUST_CHECK;

/*
 * Members that are not named above and upgrades to other transports are ignored. A member that is
 * missing (only maxPayload may be), repeated or of the wrong type is -AGX_INVALID_ARGUMENT. *ret
 * borrows from `json`.
 */
int agx_eio_open_decode(struct agx_str json, struct agx_eio_open *ret,
                        struct agx_error **err) AGX_MUST_CHECK;

#endif
