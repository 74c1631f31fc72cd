"""A WebSocket message of 1 MiB unmasked: in place (ours), into a new one (websockets)."""

from codec import codec_pair

UNIT = "MiB/s"
BAR = "ours >= 5000"  # well above what a Unix socket moves


def setup(bench):
    return codec_pair(bench, "ws_unmask", peer="websockets")
