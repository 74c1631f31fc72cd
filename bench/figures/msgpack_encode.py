"""A unary call written as msgpack: arguments spliced (ours), encoded (msgpack)."""

from codec import codec_pair

UNIT = "messages/s"
BAR = "ratio >= 1"


def setup(bench):
    return codec_pair(bench, "msgpack_encode", peer="msgpack")
