"""libagentix and `agentix call` against agentix-server and agentix-worker."""

import contextlib
import functools
import json
import os
import re
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from agxtest.server import TIMEOUT_S, wait_for

CALL = [os.environ["AGENTIX"], "call"]
FUNCTIONS = os.environ["TEST_FUNCTIONS"]
EXAMPLE = os.environ["C_FUNCTION_EXAMPLE"]
CLIENTS = os.environ["C_CLIENT_EXAMPLE"]
WORKER = os.environ["AGENTIX_WORKER"]
HEADERS = Path(__file__).parents[2] / "include" / "agentix"


@pytest.fixture(name="server")
def fixture_server(serve):
    server = serve("--path", f"{FUNCTIONS}:{EXAMPLE}", worker=WORKER)
    server.unix = f"unix://{server.socket_path}"
    return server


def call(*arguments, stdin="", env=None):
    """Runs `agentix call` to its end and returns the finished process."""
    return subprocess.run(
        [*CALL, *map(str, arguments)],
        input=stdin,
        env=os.environ | (env or {}),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def values(done):
    """The values that a successful call printed."""
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


class Cutter:
    """A TCP proxy that cuts all connections, or the first ones, after so many bytes from the
    server."""

    def __init__(self, port, limit, times):
        self.port, self.limit, self.times, self.cuts = port, limit, times, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.port))
            limit = self.limit if self.cuts < self.times else None
            up = threading.Thread(target=self.copy, args=(client, server, None), daemon=True)
            down = threading.Thread(target=self.copy, args=(server, client, limit), daemon=True)
            up.start()
            down.start()

    def copy(self, source, target, limit):
        left = limit
        with contextlib.suppress(OSError):
            while data := source.recv(4096 if left is None else min(4096, left)):
                target.sendall(data)
                if left is not None:
                    left -= len(data)
                    if left <= 0:
                        self.cuts += 1
                        break
        for side in (source, target):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()


@pytest.fixture(name="cutter")
def fixture_cutter(server):
    made = []

    def cutter(limit, times=1_000_000):
        made.append(Cutter(server.port, limit, times))
        return made[-1]

    yield cutter
    for each in made:
        each.close()


def test_each_shape_over_a_socket_and_over_tcp(server):
    for url in (server.unix, server.url):
        counted = [{"words": 3, "bytes": 13}]
        assert values(call(url, "c:words::count", "text=one two three")) == counted
        assert values(call(url, "c:words::count", "--args", '["one two three"]')) == counted
        assert values(call(url, "c:functions::count", "n:=3", "--stream")) == [0, 1, 2]
        assert values(call(url, "c:functions::upper", "--bidi", stdin='"a"\n\n"b"')) == ["A", "B"]


def test_arguments_are_text_or_json(server):
    def described(*pairs):
        return values(call(server.unix, "c:functions::describe", *pairs))[0]

    assert described("text=3") != described()
    assert values(call(server.unix, "c:functions::add", "a:=40", "b:=2")) == [42]
    assert values(call(server.unix, "c:functions::add", "--args", '{"a": 1, "b": 2}')) == [3]
    failed = call(server.unix, "c:functions::add", "a=40", "b:=2")
    assert failed.returncode == 1 and "TypeError" in failed.stderr


def test_bytes_are_base64_both_ways(server):
    done = call(server.unix, "c:words::reverse", "--bidi", stdin='{"$bytes": "AAEC"}\n')
    assert values(done) == [{"$bytes": "AgEA"}]


def test_large_results_arrive_whole(server):
    blob = values(call(server.unix, "c:functions::blob", "size:=3000000"))[0]
    assert len(blob["$bytes"]) == 4_000_000


def test_failures_say_type_and_message_on_stderr(server):
    done = call(server.unix, "c:functions::fail")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "agentix: c:functions::fail: ValueError: this is 1 too many\n"
    done = call(server.unix, "c:functions::count_and_fail", "--stream")
    assert (done.returncode, done.stdout) == (1, "1\n")
    assert "ValueError: after one" in done.stderr
    done = call(server.unix, "c:functions::upper", "--bidi", stdin='"a"\n5\n')
    assert (done.returncode, done.stdout) == (1, '"A"\n')
    assert "TypeError: text is needed" in done.stderr


@pytest.mark.parametrize(
    ("name", "arguments", "stdin", "printed"),
    [
        ("abort", [], "", ""),
        ("count_and_abort", ["n:=2", "--stream"], "", "0\n1\n"),
        ("upper_or_abort", ["--bidi"], '"abort"\n', ""),
    ],
)
def test_a_crash_in_each_shape_is_told(server, name, arguments, stdin, printed):
    done = call(server.unix, f"c:functions::{name}", *arguments, stdin=stdin)
    assert (done.returncode, done.stdout) == (1, printed)
    assert "WorkerExited: runtime worker was killed by signal 6" in done.stderr
    assert values(call(server.unix, "c:functions::add", "a:=40", "b:=2")) == [42]


def test_bidi_input_that_is_no_json_names_its_line(server):
    done = call(server.unix, "c:functions::upper", "--bidi", stdin='"a"\n{\n')
    assert done.returncode == 1 and "line 2" in done.stderr


def test_bidi_input_waits_for_the_function(server):
    many = "".join(f'"{i}"\n' for i in range(5000))
    assert values(call(server.unix, "c:functions::swallow", "--bidi", stdin=many)) == [5000]
    assert values(call(server.unix, "c:functions::quit", "--bidi", stdin=many)) == []


def test_timeout_ends_the_call(server):
    done = call(server.unix, "c:functions::sleep_wait", "--timeout", "200ms")
    assert done.returncode == 1 and "within 200 ms" in done.stderr


@pytest.mark.parametrize("kind", [("sleep_wait",), ("endless", "--stream"), ("hold", "--bidi")])
def test_interrupt_cancels_and_waits(server, kind):
    name, *flags = kind
    wait_for(lambda: server.health()["calls"] == 0, "calls of others are over")
    process = subprocess.Popen(
        [*CALL, server.unix, f"c:functions::{name}", *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: server.health()["calls"] == 1, "the call runs")
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert "Cancelled" in stderr


def test_reader_that_goes_away_ends_the_call(server):
    command = " ".join([*CALL, server.unix, "c:functions::endless", "--stream"])
    script = f"{command} | head -n 2 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    assert done.stdout == "1\n"


def test_usage_mistakes_exit_with_2_and_help_with_0(server):
    for wrong in (
        [],
        [server.unix],
        [server.unix, "a::b", "c"],
        [server.unix, "a::b", "c:={"],
        [server.unix, "a::b", "--stream", "--bidi"],
        [server.unix, "a::b", "--args", "3"],
        [server.unix, "a::b", "--timeout", "soon"],
        [server.unix, "a::b", "--token-file", "/nowhere"],
        [server.unix, "a::b", "--nonsense"],
    ):
        done = call(*wrong)
        assert (done.returncode, done.stdout) == (2, ""), wrong
        assert "agentix help call" in done.stderr
    agentix = CALL[0]
    for right in (["--help"], ["help"], ["help", "call"], ["call", "--help"], ["version"]):
        done = subprocess.run([agentix, *right], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout and not done.stderr
    assert subprocess.run([agentix, "nothing"], capture_output=True, check=False).returncode == 2


def test_addresses_that_lead_nowhere(tmp_path):
    done = call(f"unix://{tmp_path}/none", "a::b")
    assert done.returncode == 1 and "No such file" in done.stderr
    done = call("http://127.0.0.1:1", "a::b")
    assert done.returncode == 1 and "Connection refused" in done.stderr
    done = call("https://127.0.0.1", "a::b")
    assert done.returncode == 1 and "https is not supported" in done.stderr


def test_server_that_is_none_of_ours_or_silent(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        def answer():
            peer, _ = listener.accept()
            peer.recv(4096)
            peer.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            peer.close()

        threading.Thread(target=answer, daemon=True).start()
        done = call(url, "a::b")
        assert done.returncode == 1 and "404" in done.stderr
        done = call(url, "a::b", "--timeout", "300ms")
        assert done.returncode == 1 and "within 300 ms" in done.stderr


def test_token_from_file_or_environment(serve, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    server = serve("--path", FUNCTIONS, "--token-file", token, worker=WORKER)
    add = [f"unix://{server.socket_path}", "c:functions::add", "a:=1", "b:=2"]
    assert values(call(*add, "--token-file", token)) == [3]
    assert values(call(*add, env={"AGENTIX_TOKEN": "s3cret"})) == [3]
    for env in ({}, {"AGENTIX_TOKEN": "wrong"}):
        done = call(*add, env=env)
        assert done.returncode == 1 and "token" in done.stderr


def test_stream_that_is_cut_again_and_again_is_whole(server, cutter):
    proxy = cutter(20_000)
    done = call(proxy.url, "c:functions::count", "n:=5000", "--stream")
    assert values(done) == list(range(5000))
    assert proxy.cuts > 5


def test_bidi_that_is_cut_again_and_again_is_whole(server, cutter):
    proxy = cutter(15_000)
    many = [f"item {i}" for i in range(2000)]
    stdin = "".join(json.dumps(item) + "\n" for item in many)
    done = call(proxy.url, "c:functions::upper", "--bidi", stdin=stdin)
    assert values(done) == [item.upper() for item in many]
    assert proxy.cuts > 3


def test_unary_whose_connection_is_cut_gets_its_result_once(server, cutter):
    proxy = cutter(1500, times=1)  # after the handshake, in the middle of the result
    blob = values(call(proxy.url, "c:functions::blob", "size:=3000"))[0]
    assert len(blob["$bytes"]) == 4000
    assert proxy.cuts == 1


def test_server_that_dies_leaves_calls_without_a_result(serve):
    server = serve("--path", FUNCTIONS, worker=WORKER)
    process = subprocess.Popen(
        [*CALL, server.url, "c:functions::sleep_wait", "--timeout", "8s"],
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: server.health()["calls"] == 1, "the call runs")
    server.process.kill()
    server.process.wait()
    _, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert "within 8000 ms" in stderr


def test_examples_run(server):
    done = subprocess.run(
        [f"{CLIENTS}/c_client_blocking", server.unix], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        'count: {"words":3,"bytes":13}',
        'split: "one"',
        'split: "two"',
        'reverse: {"$bytes":"Y2Jh"}',
        'reverse: {"$bytes":"enl4"}',
    ]
    done = subprocess.run(
        [f"{CLIENTS}/c_client_event_loop", server.url, "c:functions::echo", "2000"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "2000 good, 0 failed\n"), done.stderr


def test_library_exports_what_its_headers_declare_and_nothing_else():
    command = ["nm", "-D", "--defined-only", "--format=posix", os.environ["LIBAGENTIX"]]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    exported = {line.split("@")[0] for line in listed.splitlines() if line.split()[1] == "T"}
    declared = set()
    for name in ("error", "msgpack", "runtime"):
        text = (HEADERS / f"{name}.h").read_text()
        declared |= set(re.findall(r"AGX_PUBLIC[^;]*?\b(agx_\w+)\(", text))
    assert len(declared) > 40 and exported == declared


def runs(server, n):
    return server.health()["calls"] == n


def test_abandoned_calls_leave_no_connection(server):
    before = len(os.listdir(f"/proc/{server.pid}/fd"))
    for n in (1, 2, 3):  # the server keeps each for a while, in case its client reconnects
        process = subprocess.Popen(
            [*CALL, server.unix, "c:functions::endless", "--stream"], stdout=subprocess.DEVNULL
        )
        wait_for(functools.partial(runs, server, n), "the call runs")
        process.kill()
        process.wait()
    wait_for(lambda: len(os.listdir(f"/proc/{server.pid}/fd")) <= before, "descriptors are back")
