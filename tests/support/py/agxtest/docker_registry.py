"""Debian's docker-registry, by default on the loopback, a token server for it, and a proxy that
breaks connections.

The registry keeps its blobs as files below a directory of the test.
"""

import base64
import contextlib
import gzip
import hashlib
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"

# Name, password, and the htpasswd line for the registry.
USER, PASSWORD = "me", "secret"
HTPASSWD = f"{USER}:$2b$04$XAq04ewYU1NDBPwolx7Vb.vmlJMfxCcDsbbOO4qwI1PyTllo5wdi6\n"
BASIC = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
SERVICE, ISSUER = "test-registry", "test-issuer"


def program():
    return Path(os.environ["AGX_PACKAGES"]) / "docker-registry/usr/bin/docker-registry"


def digest(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def describe(kind, data, **more):
    return {"mediaType": kind, "size": len(data), "digest": digest(data), **more}


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class DockerRegistry:
    """Runs until close(). `tokens`: a TokenServer whose tokens it requires; `password`: it requires
    the password of USER; `tls`: its Certificate."""

    def __init__(self, directory, password=False, tokens=None, address="127.0.0.1", tls=None):
        self.blobs = directory / "blobs"
        self.tokens, self.address, self.tls = tokens, address, tls
        self.authorization = BASIC if password else None
        config = {
            "version": 0.1,
            "log": {"level": "info", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": str(self.blobs)}},
            "http": {"addr": f"{address}:0", "secret": "x"},
        }
        if tls:
            files = {"certificate": str(tls.certificate), "key": str(tls.key)}
            config["http"]["tls"] = files
        if password:
            (directory / "htpasswd").write_text(HTPASSWD)
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(directory / "htpasswd")}}
        if tokens:
            config["auth"] = {
                "token": {
                    "realm": tokens.url,
                    "service": SERVICE,
                    "issuer": ISSUER,
                    "rootcertbundle": str(tokens.certificate),
                }
            }
        path = directory / "config.json"
        path.write_text(json.dumps(config))  # JSON is YAML, too
        self.log = directory / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [program(), "serve", path], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.port = self.wait()

    def wait(self):
        """The port on which it listens."""
        while True:
            found = re.search(r"listening on [\d.]+:(\d+)", self.log.read_text())
            if found:
                return int(found[1])
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.01)

    @property
    def host(self):
        return f"{self.address}:{self.port}"

    def close(self):
        self.process.kill()
        self.process.wait()

    def blob(self, name):
        """The file that holds the blob of this digest."""
        text = name.removeprefix("sha256:")
        return self.blobs / f"docker/registry/v2/blobs/sha256/{text[:2]}/{text}/data"

    def ask(self, method, target, body=None, **headers):
        if self.tokens:
            repository = target.removeprefix("/v2/").split("/blobs/")[0].split("/manifests/")[0]
            headers["Authorization"] = f"Bearer {self.tokens.token(repository, 'pull', 'push')}"
        elif self.authorization:
            headers["Authorization"] = self.authorization
        connection = http.client.HTTPConnection(self.address, self.port, timeout=60)
        if self.tls:
            context = ssl.create_default_context(cafile=self.tls.certificate)
            connection = http.client.HTTPSConnection(self.address, self.port, context=context)
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status < 300, f"{method} {target}: {answer.status} {text}"
        return answer

    def push_blob(self, repository, data):
        place = self.ask("POST", f"/v2/{repository}/blobs/uploads/").headers["Location"]
        url = urllib.parse.urlsplit(place)
        target = f"{url.path}?{url.query}&digest={digest(data)}"
        self.ask("PUT", target, data, **{"Content-Type": "application/octet-stream"})

    def push_manifest(self, repository, tag, manifest):
        data = json.dumps(manifest).encode()
        kind = {"Content-Type": manifest["mediaType"]}
        self.ask("PUT", f"/v2/{repository}/manifests/{tag}", data, **kind)
        return data

    def push(self, repository, tag, *layers):
        """Adds an image with these layers (tars) and returns its manifest."""
        packed = [gzip.compress(layer, 1, mtime=0) for layer in layers]
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Labels": {"tag": tag}},
                "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]},
            }
        ).encode()
        for data in (config, *packed):
            self.push_blob(repository, data)
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": describe(CONFIG, config),
            "layers": [describe(LAYER, data) for data in packed],
        }
        self.push_manifest(repository, tag, manifest)
        return manifest

    def push_index(self, repository, tag, manifests):
        """`manifests` is {(os, architecture): manifest}."""
        entries = []
        for (system, architecture), manifest in manifests.items():
            data = json.dumps(manifest).encode()
            platform = {"os": system, "architecture": architecture}
            entries.append(describe(MANIFEST, data, platform=platform))
        self.push_manifest(
            repository, tag, {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}
        )


class Certificate:
    """A self-signed certificate of an address, with its key."""

    def __init__(self, directory, address):
        self.key, self.certificate = directory / "key.pem", directory / "certificate.pem"
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test"]
        command += ["-addext", f"subjectAltName=IP:{address}"]
        command += ["-keyout", self.key, "-out", self.certificate]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


class TokenServer:
    """Gives tokens to USER, and to anonymous clients if `anonymous` is true; it signs them with its
    own key."""

    def __init__(self, directory, anonymous):
        signer = Certificate(directory, "127.0.0.1")
        self.key, self.certificate = signer.key, signer.certificate
        self.anonymous = anonymous
        self.asked = []  # (account or None, scope)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}/token"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def token(self, repository, *actions):
        chain = self.certificate.read_text().split("-----")[2].replace("\n", "")
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "sub": USER,
            "aud": SERVICE,
            "exp": now + 300,
            "nbf": now - 10,
            "iat": now,
            "jti": str(time.monotonic_ns()),
            "access": [{"type": "repository", "name": repository, "actions": actions}],
        }
        head = {"typ": "JWT", "alg": "RS256", "x5c": [chain]}
        text = f"{b64(json.dumps(head).encode())}.{b64(json.dumps(claims).encode())}"
        command = ["openssl", "dgst", "-sha256", "-sign", self.key]
        signed = subprocess.run(command, input=text.encode(), check=True, stdout=subprocess.PIPE)
        return f"{text}.{b64(signed.stdout)}"

    def handler(self):
        tokens = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
                who = self.headers.get("Authorization")
                tokens.asked.append((USER if who == BASIC else None, query["scope"][0]))
                if who != BASIC and (who or not tokens.anonymous):
                    self.answer(401, {"details": "who are you"})
                    return
                repository = query["scope"][0].split(":")[1]
                self.answer(200, {"token": tokens.token(repository, "pull")})

            def answer(self, status, value):
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *words):
                pass

        return Handler


class BreakingLine:
    """A proxy to a registry. It breaks connections after this many bytes of answers, `times` times.
    With `hold` it does not break such a connection, but sends nothing more."""

    def __init__(self, port, after, times, hold=False):
        self.port, self.after, self.times, self.hold = port, after, times, hold
        self.passed = self.broken = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def host(self):
        return f"127.0.0.1:{self.listener.getsockname()[1]}"

    def close(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.port))
            for way in ((client, server, None), (server, client, self.after)):
                threading.Thread(target=self.pass_on, args=way, daemon=True).start()

    def pass_on(self, source, target, limit):
        left = limit
        with contextlib.suppress(OSError):
            while data := source.recv(16 << 10):
                if limit and self.breaks(data, left):
                    break
                target.sendall(data)
                if limit:
                    left -= len(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def breaks(self, data, left):
        with self.lock:
            if len(data) > left and self.broken < self.times:
                self.broken += 1
                if self.hold:
                    threading.Event().wait()
                return True
            self.passed += len(data)
            return False
