"""Encodes the header of a binary event, Socket.IO and Engine.IO."""

from codec import codec_pair

UNIT = "packets/s"
BAR = "ratio >= 1"


def setup(bench):
    return codec_pair(bench, "sio_event_encode", peer="socketio")
