"""usage: netagent.py [PORT]...

Listens on the ports, TCP and UDP, on all addresses of its network namespace. It greets each
connection and returns each datagram. It prints "ready". For each line "KIND ADDRESS PORT [SOURCE]"
of its input (KIND is tcp or udp) it tries such a connection and prints the result.
"""

import errno
import os
import socket
import sys
import threading

# Silence for this long is a result.
SILENCE_S = 1.0
NAMES = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.EACCES: "unreachable",
    errno.ETIMEDOUT: "silent",
}


def greet(listener):
    while True:
        connection, _ = listener.accept()
        connection.sendall(b"hello\n")
        connection.close()


def echo(sock):
    """Answers from the address of the request, which a route would not always choose."""
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    while True:
        data, extra, _, peer = sock.recvmsg(2048, 256)
        sock.sendmsg([data], extra, 0, peer)


def serve(port):
    for kind, target in ((socket.SOCK_STREAM, greet), (socket.SOCK_DGRAM, echo)):
        s = socket.socket(socket.AF_INET6, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        s.bind(("::", port))
        if kind == socket.SOCK_STREAM:
            s.listen(64)
        threading.Thread(target=target, args=(s,), daemon=True).start()


def attempt(kind, address, port, source=""):
    what = socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM
    info = socket.getaddrinfo(address, int(port), type=what)[0]
    with socket.socket(info[0], what) as s:
        s.settimeout(SILENCE_S)
        try:
            if source:
                s.setsockopt(socket.SOL_IP, 15, 1)  # IP_FREEBIND
                s.bind((source, 0))
            s.connect(info[4])
            if kind == "udp":
                s.send(b"anybody?")
            return "open" if s.recv(16) else "closed"
        except TimeoutError:
            return "silent"
        except OSError as error:
            return NAMES.get(error.errno, os.strerror(error.errno or 0))


def main():
    for port in sys.argv[1:]:
        serve(int(port))
    print("ready", flush=True)
    for line in sys.stdin:
        print(attempt(*line.split()), flush=True)


if __name__ == "__main__":
    main()
