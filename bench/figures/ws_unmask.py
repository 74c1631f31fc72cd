"""A WebSocket message of 1 MiB unmasked: in place (ours), into a new one (websockets)."""

from codec import codec_pair

UNIT = "MiB/s"
BAR = "ratio >= 1"


def setup(bench):
    return codec_pair(bench, "ws_unmask", peer="websockets")
