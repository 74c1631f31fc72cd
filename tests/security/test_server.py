"""agentix-server without a token, attacked by clients that can reach a port of the loopback but
must not call it: web pages in a browser on this machine, and other users. Each attempt runs a
function if an option removes its guard, and runs none otherwise.

Also attacks by the functions that the server runs, which have the same user.
"""

import ctypes
import os
import platform
import struct
import subprocess
from pathlib import Path

import pytest
from agxtest import tracer
from agxtest.wire import Client, Http, Polling

EVIL = "http://evil.example"
NOBODY = 65534
RAN = ("result", ["ran"])


class Refused(Exception):
    """The server refused the attempt."""


class Page:
    """A page of `origin` whose script asks the server for `host`, as a browser would. The browser
    sends the page's origin, and shows the answer only to pages of the server and to pages that the
    server allows to read it.
    """

    def __init__(self, server, origin, host):
        self.server = server
        self.origin = origin
        self.host = host
        self.headers = [f"Origin: {origin}"]

    def by_websocket(self):
        """Browsers let every page open a WebSocket to any server and read its messages."""
        with Client(self.server, headers=self.headers, host=self.host) as c:
            if c.status != 101:
                raise Refused(c.body)
            return c.call("fake::echo", "ran")

    def read(self, answer):
        status, headers, body = answer
        readers = {f"http://{self.host}", headers.get("access-control-allow-origin")}
        if status != 200 or self.origin not in readers:
            raise Refused(body)
        return body

    def by_polling(self):
        """Browsers send a body of plain text without asking the server first (no preflight)."""
        p = Polling.__new__(Polling)
        p.server, p.host, p.queue = self.server, self.host, []
        p.headers = [*self.headers, "Content-Type: text/plain"]
        url = "/socket.io/?EIO=4&transport=polling"
        body = self.read(p.http(url))
        p.url = f"{url}&sid={body.decode().partition('sid')[2][3:23]}"
        call = {"call_id": "p1", "target": "fake::echo", "args": ["ran"], "kwargs": {}}
        self.read(p.http(p.url, "POST", b"\x1e".join([b"40", *p.packets("unary", call)])))
        p.packet()
        return "result", p.event()[1]["value"]

    def blindly(self, sid):
        """Sends a call to a session with a known id; the page does not need the answer."""
        p = Polling.__new__(Polling)
        p.server, p.host = self.server, self.host
        p.headers = [*self.headers, "Content-Type: text/plain"]
        call = {"call_id": "blind", "target": "fake::echo", "args": ["ran"], "kwargs": {}}
        url = f"/socket.io/?EIO=4&transport=polling&sid={sid}"
        status, _, body = p.http(url, "POST", b"\x1e".join(p.packets("unary", call)))
        if status != 200:
            raise Refused(body)


def foreign(server):
    return Page(server, EVIL, f"127.0.0.1:{server.port}")


def rebound(server):
    """A page whose own name resolves to this machine; the browser sees one site."""
    return Page(server, f"{EVIL}:{server.port}", f"evil.example:{server.port}")


PAGES = {
    "another-origin": (foreign, ["--origin", EVIL]),
    "dns-rebinding": (rebound, ["--host-name", "evil.example"]),
}
WAYS = {"websocket": Page.by_websocket, "polling": Page.by_polling}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_the_web_runs_no_function(serve_fake, page, way):
    make, lifted = PAGES[page]
    assert WAYS[way](make(serve_fake(*lifted))) == RAN, "the attempt itself"
    with pytest.raises(Refused):
        WAYS[way](make(serve_fake()))


def test_a_page_that_knows_a_session_can_send_nothing_to_it(serve_fake):
    server = serve_fake("--origin", EVIL)
    victim = Polling(server)
    foreign(server).blindly(victim.open["sid"])
    assert victim.event()[1]["value"] == ["ran"], "the attempt itself"
    server = serve_fake()
    victim = Polling(server)
    with pytest.raises(Refused):
        foreign(server).blindly(victim.open["sid"])
    victim.start("fake::frames", "call")
    assert victim.event()[1]["value"] == 1, "its own call alone"


# The program of another user. It imports no file of the tests, because that user may not read them.
STRANGER = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
    s.sendall(bytes.fromhex(sys.argv[2]))
    data = b""
    while b"403" not in data and b"unary:result" not in data:
        more = s.recv(65536)
        if not more:
            break
        data += more
sys.stdout.buffer.write(data)
"""


def stranger(server):
    """Opens a WebSocket as another user, calls a function, and returns the server's answer."""
    c = Client.__new__(Client)
    call = {"call_id": "x", "target": "fake::echo", "args": ["ran"], "kwargs": {}}
    head = (
        "GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: localhost\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    data = head.encode() + c.frame("40") + c.encode("unary", call)
    return subprocess.run(
        ["/usr/bin/env", "python3", "-I", "-c", STRANGER, str(server.port), data.hex()],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_of_this_machine_runs_no_function(serve_fake):
    assert b"unary:result" in stranger(serve_fake("--insecure")), "the attempt itself"
    said = stranger(serve_fake())
    assert said.startswith(b"HTTP/1.1 403 ") and b"another user" in said


# -- clients that say nothing

EIO = "/socket.io/?EIO=4&transport=polling"
SESSIONS = 4096  # of one server


def fill(server):
    """Begins polling sessions and says nothing in them. Returns the first answer that is not 200;
    None: the server takes all.
    """
    with Http(server) as h:
        for _ in range(SESSIONS):
            status, _, body = h.request(EIO)
            if status != 200:
                return status, body
    return None


def test_silent_sessions_of_one_address_do_not_keep_others_out(serve_fake):
    server = serve_fake()
    status, body = fill(server) or (200, b"")
    assert status == 503 and b"CONNECT" in body
    with Client(server, source="127.0.0.2") as c:
        assert c.call("fake::echo", "ran") == RAN
    p = Polling(server, source="127.0.0.2")
    p.start("fake::echo", "ran")
    assert p.event()[1]["value"] == ["ran"]


# -- user code

PART = "stands-nowhere-else-"
TOKEN = PART * 100  # long, so that memory which is freed and used again cannot hide all of it
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 4, 24, 38, 22
# With any of these root may access a process that is not dumpable.
TRACING = {"CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21, "CAP_PERFMON": 38}
PRCTL = {"x86_64": 157, "aarch64": 167}
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
libc = ctypes.CDLL(None, use_errno=True)


def as_in_a_sandbox():
    """Drops the tracing capabilities of root, as in a sandbox; an ordinary user has none."""
    if os.geteuid() == 0:
        for number in TRACING.values():
            libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)


def always_dumpable():
    """The same, and prctl(PR_SET_DUMPABLE) returns success without an effect (seccomp)."""
    as_in_a_sandbox()
    code = [
        (0x20, 0, 0, 0),  # the number of the call
        (0x15, 0, 3, PRCTL[platform.machine()]),
        (0x20, 0, 0, 16),  # its first argument
        (0x15, 0, 1, PR_SET_DUMPABLE),
        (0x06, 0, 0, 0x00050000),  # SECCOMP_RET_ERRNO with none
        (0x06, 0, 0, 0x7FFF0000),  # SECCOMP_RET_ALLOW
    ]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def traced(server):
    with Client(server) as c:
        kind, value = c.call("fake::traces_server")
    assert kind == "result", value
    return set(value)


def test_user_code_cannot_look_into_the_server(serve_fake):
    possible = set(tracer.READS)
    if not YAMA.exists() or YAMA.read_text() == "0\n":
        possible |= set(tracer.ATTACHES)
    assert traced(serve_fake(prepare=always_dumpable)) >= possible, "the attempts themselves"
    assert traced(serve_fake(prepare=as_in_a_sandbox)) == set()


def unless_sanitized(test):
    """Skips the test under a sanitizer, which keeps copies and freed memory."""
    return test if os.environ["SANITIZE"] == "none" else None


@unless_sanitized
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can look into it")
@pytest.mark.parametrize("by", ["variable", "file"])
def test_the_server_does_not_keep_its_token(serve_fake, tmp_path, by):
    """Root cannot find it either, although root can read all its memory."""
    env = {"AGX_TEST_MARK": "m" * 40, "MALLOC_PERTURB_": "0"}
    if by == "variable":
        server = serve_fake(env=env | {"AGENTIX_TOKEN": TOKEN})
    else:
        path = tmp_path / "token"
        path.write_text(f"{TOKEN}\n")
        server = serve_fake("--token-file", path, env=env)
    server.worker_pid()
    memory = tracer.memory(server.pid)
    assert b"m" * 40 in memory, "what it was started with is there"
    assert PART.encode() not in memory
    assert PART.encode() not in tracer.environ(server.pid)
    with Client(server, headers=[f"Authorization: Bearer {TOKEN}"]) as c:
        assert c.call("fake::echo", "ran") == RAN
