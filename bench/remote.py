"""Shared by the remote-call figures: each side has a server and a driver, which run for one figure.

The server is ours, or a peer's from its own environment. The driver (remote_driver.py) is a client
process of the same package that calls the server. Ours listens on a Unix socket unless the figure
asks for TCP; the peers support only TCP.
"""

import json
import os
import pathlib
import socket
import subprocess
import time
import urllib.request

from measure import BenchError

START_SECONDS = 30


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """A child in its own process group, which ends with the figure."""

    def __init__(self, bench, command, **options):
        self.child = subprocess.Popen(
            [str(word) for word in command], stderr=subprocess.DEVNULL, process_group=0, **options
        )
        bench.defer(self.stop)

    def stop(self):
        self.child.terminate()
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, 9)
            self.child.wait()


def is_healthy(url):
    """Whether GET /health succeeds; `url` is http:// or unix://."""
    try:
        if url.startswith("unix://"):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(url.removeprefix("unix://"))
                s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                return b" 200 " in s.recv(4096)
        with urllib.request.urlopen(f"{url}/health", timeout=1) as answer:
            return answer.status == 200
    except OSError:
        return False


def wait_healthy(process, url):
    end = time.monotonic() + START_SECONDS
    while not is_healthy(url):
        if process.child.poll() is not None or time.monotonic() > end:
            raise BenchError(f"the server of {url} did not start")
        time.sleep(0.001)


class Server(Process):
    """A running server, which listens at `url`."""

    def __init__(self, bench, side, tcp=False):
        targets = bench.root / "bench" / "targets"
        if side == "ours":
            self.home = pathlib.Path(bench.temporary_directory())
            listen = ["--port", str(free_port())] if tcp else ["--socket", self.home / "s.sock"]
            command = [bench.program("src/runtime/agentix-server"), *listen, "--path", targets]
            command += ["--python", "/usr/bin/python3", "--package", bench.program("python")]
            self.url = f"http://127.0.0.1:{listen[1]}" if tcp else f"unix://{listen[1]}"
        else:
            port = free_port()
            python = bench.peer(side)
            command = [python.parent / "agentix-server", "--host", "127.0.0.1", "--port", str(port)]
            self.url = f"http://127.0.0.1:{port}"
        self.started = time.perf_counter()
        # The peers' worker finds the targets because the working directory is on its path.
        super().__init__(
            bench, command, cwd=targets, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )


class Driver(Process):
    """A client process that does one kind of work for some seconds and prints a number."""

    def __init__(self, bench, side, url, cold=False):
        targets = bench.root / "bench" / "targets"
        python = "/usr/bin/python3" if side == "ours" else bench.peer(side)
        package = f"{bench.program('python')}:" if side == "ours" else ""
        super().__init__(
            bench,
            [python, bench.root / "bench" / "remote_driver.py", url, *(["cold"] if cold else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": f"{package}{targets}"},
        )
        if self.child.stdout.readline().strip() != "ready":
            raise BenchError(f"the client of {side} cannot call its server")

    def measure(self, work, seconds):
        self.child.stdin.write(json.dumps({"work": work, "seconds": seconds}) + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline()
        if not answer:
            raise BenchError(f"'{work}' failed in the client")
        return float(answer)


def driven(bench, side, work, tcp=False):
    """Starts a server and a driver; returns the function that measures this side."""
    server = Server(bench, side, tcp)
    wait_healthy(server, server.url)
    driver = Driver(bench, side, server.url)
    return lambda seconds: driver.measure(work, seconds)


def remote_pair(bench, work, peer="agentixx-0.1.5", tcp=False):
    """(ours, peer) for one kind of work; there is no peer if `peer` is None."""
    return driven(bench, "ours", work, tcp), driven(bench, peer, work) if peer else None


def resident(pid):
    """The resident memory of a process in MiB."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024
