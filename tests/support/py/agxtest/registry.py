"""A registry of images on the loopback, with the part of the protocol that an engine needs for a
pull.

An engine uses 127.0.0.1 without TLS. The test makes the images, and decides how slowly the blobs
are sent.
"""

import base64
import gzip
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
PIECE = 64 << 10


def digest(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class Registry:
    """Serves from a thread until close()."""

    def __init__(self):
        self.blobs = {}
        self.manifests = {}
        self.user = None  # (name, password): all others are refused
        self.piece_seconds = 0  # between two pieces of a layer
        self.pieces = 0  # pieces of layers sent so far
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def host(self):
        return f"127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def add(self, name, tag, *layers):
        """Adds an image with these layers (tars); returns its name for a client."""
        packed = [gzip.compress(layer, 1, mtime=0) for layer in layers]
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {},
                "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]},
            }
        ).encode()
        for blob in (config, *packed):
            self.blobs[digest(blob)] = blob
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.describe(CONFIG, config),
            "layers": [self.describe(LAYER, blob) for blob in packed],
        }
        data = json.dumps(manifest).encode()
        self.manifests[name, tag] = self.manifests[name, digest(data)] = data
        return f"{self.host}/{name}:{tag}"

    @staticmethod
    def describe(kind, blob):
        return {"mediaType": kind, "size": len(blob), "digest": digest(blob)}

    def find(self, path):
        """(kind, bytes) for a path, or None."""
        words = path.strip("/").split("/")
        if words == ["v2"]:
            return "application/json", b"{}"
        if len(words) != 4 or words[0] != "v2":
            return None
        if words[2] == "manifests" and (words[1], words[3]) in self.manifests:
            return MANIFEST, self.manifests[words[1], words[3]]
        if words[2] == "blobs" and words[3] in self.blobs:
            return "application/octet-stream", self.blobs[words[3]]
        return None

    def may(self, header):
        if not self.user:
            return True
        return header == f"Basic {base64.b64encode(':'.join(self.user).encode()).decode()}"

    def handler(self):
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                if not registry.may(self.headers.get("Authorization")):
                    self.answer(401, "application/json", b'{"errors":[{"code":"UNAUTHORIZED"}]}')
                elif found := registry.find(self.path):
                    self.answer(200, *found)
                else:
                    self.answer(404, "application/json", b'{"errors":[{"code":"NOT_FOUND"}]}')

            do_HEAD = do_GET

            def answer(self, status, kind, data):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
                if status == 200:
                    self.send_header("Docker-Content-Digest", digest(data))
                if status == 401:
                    self.send_header("WWW-Authenticate", 'Basic realm="test"')
                self.end_headers()
                if self.command == "GET":
                    self.send(data, slow="/blobs/" in self.path)

            def send(self, data, slow):
                for at in range(0, len(data), PIECE):
                    try:
                        self.wfile.write(data[at : at + PIECE])
                    except OSError:
                        return
                    if slow:
                        registry.pieces += 1
                    if slow and at + PIECE < len(data):
                        self.pause()

            def pause(self):
                """Sleeps for the time that the test has set by now."""
                began = time.monotonic()
                while (left := began + registry.piece_seconds - time.monotonic()) > 0:
                    time.sleep(min(left, 0.02))

            def log_message(self, *words):
                pass

        return Handler
