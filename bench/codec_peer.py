"""The peers' side of codec_bench.c: the same work, done by the library that the peer uses.

usage: codec_peer.py NAME SECONDS    prints the rate of one kind of work
       codec_peer.py --bytes NAME    writes the bytes that the work reads or makes

Runs in the peer's own virtual environment. Imports are inside the functions: each environment has
only the packages of its peer.
"""

import sys
import time

BATCH = 64
CALL = {
    "callable_payload": b"\x80\x04\x95\x0f\0\0\0\0\0\0\0\x8c\x03tgt\x94\x8c\x03add\x94\x93\x94.",
    "display_name": "tgt::add",
    "shape": "unary",
    "call_id": "1cd4a3f05b6e4d7f8a9b0c1d2e3f4a5b",
    "args": [1],
    "kwargs": {"b": 2},
}
HEADER = '451-["unary",{"_placeholder":true,"num":0}]'


def msgpack_encode():
    import msgpack

    pack = msgpack.Packer(use_bin_type=True).pack
    return pack(CALL), lambda: pack(CALL)


def msgpack_decode():
    import msgpack

    packed, unpack = msgpack.packb(CALL), msgpack.unpackb
    return packed, lambda: unpack(packed)


def sio_event_encode():
    from engineio import packet as eio
    from socketio import packet as sio

    data = ["unary", b""]

    def encode():
        header, _ = sio.Packet(sio.EVENT, data=data, namespace="/").encode()
        return eio.Packet(eio.MESSAGE, data=header).encode()

    return encode().encode(), encode


def sio_event_decode():
    from engineio import packet as eio
    from socketio import packet as sio

    def decode():
        packet = sio.Packet(encoded_packet=eio.Packet(encoded_packet=HEADER).data)
        packet.add_attachment(b"")
        return packet

    return HEADER.encode(), decode


def ws_unmask():
    from websockets.speedups import apply_mask

    data, key = b"x" * (1 << 20), b"\x12\x34\x56\x78"
    return data, lambda: apply_mask(data, key)


WORKS = {
    work.__name__: work
    for work in (msgpack_decode, msgpack_encode, sio_event_decode, sio_event_encode, ws_unmask)
}


def rate(once, seconds):
    """Pieces of work per second, measured over at least this many seconds."""
    start, took, pieces = time.perf_counter(), 0.0, 0
    while took < seconds:
        for _ in range(BATCH):
            once()
        pieces += BATCH
        took = time.perf_counter() - start
    return pieces / took


def main():
    first, second = sys.argv[1:]
    if first == "--bytes":
        sys.stdout.buffer.write(WORKS[second]()[0])
    else:
        print(f"{rate(WORKS[first]()[1], float(second)):.6g}")


main()
