"""Decodes the header of a binary event, Engine.IO and Socket.IO."""

from codec import codec_pair

UNIT = "packets/s"
BAR = "ratio >= 1"


def setup(bench):
    return codec_pair(bench, "sio_event_decode", peer="socketio")
