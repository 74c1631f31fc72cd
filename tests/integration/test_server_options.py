"""The command line of agentix-server: help, errors, the effect of each option."""

import os
import signal
import socket
import subprocess

import pytest
from agxtest.server import TIMEOUT_S, wait_for
from agxtest.wire import Client


def run(*options, env=None):
    """Runs the program to its end."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("AGENTIX_")}
    return subprocess.run(
        [os.environ["AGENTIX_SERVER"], *map(str, options)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=clean | (env or {}),
        check=False,
    )


def test_help_and_version():
    done = run("--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: agentix-server")
    done = run("--version")
    assert done.returncode == 0 and done.stdout.startswith("agentix-server ")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--nonsense"], "--help"),
        (["word"], "'word'"),
        (["--port", "x"], "--port"),
        (["--port", "65536"], "65535"),
        (["--max-message", "1k"], "4k"),
        (["--max-message", "x"], ""),
        (["--max-calls", "-1"], "--max-calls"),
        (["--grace", "soon"], "--grace"),
        (["--resume", "-1s"], "--resume"),
        (["--log-level", "loud"], "debug"),
        (["--log-format", "xml"], "logfmt"),
        (["--token-file", "/nonexistent/token"], "/nonexistent/token"),
        (["--origin", "dev.example"], "scheme://host"),
        (["--origin", "http://dev.example/"], "scheme://host"),
        (["--origin", "*"], "scheme://host"),
        (["--host-name", "dev.example:80"], "without a port"),
        (["--host-name", "::1"], "brackets"),
        (["--origin=null"] * 33, "32"),
        (["--host", "0.0.0.0", "--port", "0"], "--insecure"),
        (["--host", "::", "--port", "0"], "--insecure"),
    ],
)
def test_a_wrong_option_is_told_in_one_line_with_status_2(options, text):
    done = run(*options)
    assert done.returncode == 2 and text in done.stderr
    assert done.stderr.count("agentix-server: ") >= 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--python", "/nonexistent/python"], "/nonexistent/python"),
        (["--worker", "no-such-worker"], "no-such-worker"),
        (["--socket", "/nonexistent/dir/s"], "/nonexistent/dir/s"),
        (["--host", "no.such.host.invalid", "--insecure"], "no.such.host.invalid"),
    ],
)
def test_what_cannot_be_done_is_told_with_status_1(options, text):
    done = run("--port", "0", *options)
    assert done.returncode == 1 and text in done.stderr


def test_an_empty_token_is_refused(tmp_path):
    path = tmp_path / "token"
    path.write_text("\n")
    done = run("--token-file", path)
    assert done.returncode == 2 and "token" in done.stderr


def test_a_port_in_use_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("--port", taken.getsockname()[1], "--worker", "/bin/true")
        assert done.returncode == 1 and "in use" in done.stderr


def test_a_socket_in_use_is_told_and_left_alone(serve_fake):
    server = serve_fake()
    done = run("--socket", server.socket_path, "--worker", "/bin/true")
    assert done.returncode == 1 and str(server.socket_path) in done.stderr
    with Client(server, unix=True) as c:
        assert c.call("fake::echo", 1) == ("result", [1])


def test_a_socket_left_by_a_killed_server_is_taken_over(serve_fake, fake):
    dead = serve_fake()
    dead.stop(signal.SIGKILL, status=-9)
    assert dead.socket_path.exists()
    process = subprocess.Popen(
        [os.environ["AGENTIX_SERVER"], "--socket", dead.socket_path, "--worker", fake()],
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: answers(dead.socket_path), "the new server listens")
    finally:
        process.terminate()
        assert process.wait(60) == 0
    assert not dead.socket_path.exists()


def test_a_server_that_can_be_reached_ends_in_order(fake, tmp_path):
    """TERM at the moment when it listens, before it has answered a client."""
    path = tmp_path / "s"
    for _ in range(8):
        process = subprocess.Popen(
            [os.environ["AGENTIX_SERVER"], "--socket", path, "--worker", fake()],
            stderr=subprocess.DEVNULL,
        )
        while not answers(path) and process.poll() is None:
            pass
        process.terminate()
        assert process.wait(60) == 0
        assert not path.exists()


def answers(path):
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(str(path)) == 0


def test_the_environment_gives_defaults_and_options_win(serve_fake):
    server = serve_fake(env={"AGENTIX_BIND_HOST": "192.0.2.1", "AGENTIX_BIND_PORT": "1"})
    assert server.port > 1024
    assert run(env={"AGENTIX_BIND_PORT": "many"}).returncode == 2
    assert "AGENTIX_BIND_PORT" in run(env={"AGENTIX_BIND_PORT": "many"}).stderr


def test_the_worker_gets_a_clean_environment(serve_fake):
    """LD_* and PYTHON* of the image are ignored; its PATH is used after ours."""
    dirty = {
        "LD_LIBRARY_PATH": "/x",
        "PYTHONPATH": "/x",
        "PYTHONHOME": "",
        "NIX_SSL_CERT_FILE": "/x",
        "AGENTIX_WORKER_FDS": "7,8",
        "KEPT": "yes",
        "PATH": "/image/bin:/usr/bin:/bin",
    }
    server = serve_fake("--path", "/code:/more", env=dirty)
    with Client(server) as c:
        env = c.call("fake::surroundings")[1]["env"]
    assert env["KEPT"] == "yes" and env["AGENTIX_PATH"] == "/code:/more"
    assert env["AGENTIX_WORKER_FDS"] == "3,4"
    ours = os.path.dirname(os.path.realpath(os.environ["AGENTIX_SERVER"]))
    assert env["PATH"] == f"{ours}:/image/bin:/usr/bin:/bin"
    for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "NIX_SSL_CERT_FILE"):
        assert name not in env


def test_insecure_allows_any_address(serve_fake):
    server = serve_fake("--host", "0.0.0.0", "--insecure")
    with Client(server) as c:
        assert c.call("fake::echo", 1) == ("result", [1])


def test_log_lines_can_be_json(serve_fake):
    server = serve_fake("--log-format", "json")
    assert server.log().startswith("{")
