"""`agentix call` of Python functions, by reference."""

import json
import os
import subprocess
import sys

import pytest
from agxtest.server import TIMEOUT_S

MODULE = """
from agentix import Channel


def greet(name: str, times: int = 1) -> list[str]:
    return [f"hi {name}"] * times


async def count(n: int):
    for i in range(n):
        yield i


async def double(channel: Channel[int]):
    async for i in channel:
        yield 2 * i


def fail():
    raise ValueError("no")
"""


@pytest.fixture(name="call")
def fixture_call(serve, tmp_path):
    directory = tmp_path / "functions"
    directory.mkdir()
    (directory / "numbers_demo.py").write_text(MODULE)
    server = serve(
        "--python", sys.executable, "--package", os.environ["PYTHON_PACKAGE"], "--path", directory
    )

    def call(name, *arguments, stdin=""):
        url = f"unix://{server.socket_path}"
        command = [os.environ["AGENTIX"], "call", url, f"numbers_demo::{name}", *arguments]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )

    return call


def values(done):
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_each_shape(call):
    assert values(call("greet", "name=Ada", "times:=2")) == [["hi Ada", "hi Ada"]]
    assert values(call("count", "n:=300", "--stream")) == list(range(300))
    stdin = "".join(f"{i}\n" for i in range(300))
    assert values(call("double", "--bidi", stdin=stdin)) == [2 * i for i in range(300)]


def test_failure_with_its_traceback_when_asked_for(call):
    done = call("fail")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "agentix: numbers_demo::fail: ValueError: no\n"
    done = call("fail", "--traceback")
    assert 'raise ValueError("no")' in done.stderr


def test_what_does_not_exist_or_fit(call):
    assert "AttributeError" in call("nothing").stderr
    assert "ValidationError" in call("count", "n=many", "--stream").stderr
    assert call("count", "n:=1").returncode == 1  # a stream called as unary
