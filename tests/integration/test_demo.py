"""`make demo`: what a newcomer sees."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_shows_a_call_of_each_shape():
    done = subprocess.run(
        [ROOT / "tools" / "demo", os.environ["AGENTIX_BUILD"]],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(None, 1) for line in done.stdout.splitlines())
    assert list(lines) == ["server", "connect", "unary", "stream", "bidi", "error", "speed"]
    assert lines["unary"] == "longest(['a', 'bundle', 'of']) -> 'bundle'"
    assert lines["stream"].endswith("-> ['a', 'g', 'e', 'n', 't', 'i', 'x']")
    assert lines["bidi"].endswith("-> ['HELLO!', 'AGAIN!']")
    assert lines["error"] == "words::broken: ValueError: this function fails on purpose"
    server, worker, client = re.findall(r"\d+", lines["server"])[-1:] + re.findall(
        r"(?:process|are) (\d+)", lines["connect"]
    )
    assert len({server, worker, client}) == 3, "three processes took part"
