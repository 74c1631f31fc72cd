"""usage: docker_tls.py PROGRAM ARGUMENT...

Runs a program with a Docker Engine behind TLS: the program reaches the engine that DOCKER_HOST
names (a Unix socket) through a proxy on 127.0.0.1, which has a certificate and requires one of its
clients.
"""

import contextlib
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from pathlib import Path


def make_pair(directory, name):
    """Makes a key and a self-signed certificate."""
    key, cert = directory / f"{name}-key.pem", directory / f"{name}-cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", key, "-out", cert]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return key, cert


def move(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def serve_one(raw, context, engine):
    try:
        client = context.wrap_socket(raw, server_side=True)
    except (OSError, ssl.SSLError):
        raw.close()
        return
    upstream = socket.socket(socket.AF_UNIX)
    upstream.connect(engine)
    for ends in ((client, upstream), (upstream, client)):
        threading.Thread(target=move, args=ends, daemon=True).start()


def serve(listener, context, engine):
    while True:
        raw, _ = listener.accept()
        args = (raw, context, engine)
        threading.Thread(target=serve_one, args=args, daemon=True).start()


def main():
    engine = os.environ["DOCKER_HOST"].removeprefix("unix://")
    with tempfile.TemporaryDirectory(prefix="agx-tls-") as name:
        directory = Path(name)
        key, cert = make_pair(directory, "server")
        cert.rename(directory / "ca.pem")
        client_key, client_cert = make_pair(directory, "client")
        client_key.rename(directory / "key.pem")
        client_cert.rename(directory / "cert.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "ca.pem", key)
        context.load_verify_locations(directory / "cert.pem")
        context.verify_mode = ssl.CERT_REQUIRED
        listener = socket.create_server(("127.0.0.1", 0))
        args = (listener, context, engine)
        threading.Thread(target=serve, args=args, daemon=True).start()
        env = os.environ | {
            "DOCKER_HOST": f"tcp://127.0.0.1:{listener.getsockname()[1]}",
            "DOCKER_TLS_VERIFY": "1",
            "DOCKER_CERT_PATH": name,
        }
        return subprocess.run(sys.argv[1:], env=env, check=False).returncode


sys.exit(main())
