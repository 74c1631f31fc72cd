"""A unary call's fields: found and checked (ours), decoded (msgpack)."""

from codec import codec_pair

UNIT = "messages/s"
BAR = "ratio >= 1"


def setup(bench):
    return codec_pair(bench, "msgpack_decode", peer="msgpack")
