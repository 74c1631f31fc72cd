"""Hundreds of native sandboxes survive kill -9 of the daemon; afterwards the machine is as before.

AGENTIX_SANDBOXES sets the number (1,000 in `make proof`).
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from native_fixtures import *  # noqa: F403

# A sanitizer's daemon takes ten times as long for each, and finds its faults with fewer.
FEWER = os.environ.get("SANITIZE", "none") != "none"
COUNT = int(os.environ.get("AGENTIX_SANDBOXES", "50" if FEWER else "200"))
AT_ONCE = 32
SAMPLE = 20  # one in so many is tested
OWN_KIB = 24 << 10  # the limit of the daemon's private memory: docs/performance.md

BOXES = [f"box-{number:04}" for number in range(COUNT)]


def at_once(action, boxes):
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(action, boxes))


@contextmanager
def timed(what):
    began = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - began:.1f} s")


def kib_of(path, name):
    """The value of a line of /proc."""
    for line in Path(path).read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise AssertionError(f"{path} has no {name}")


def check_memory(stage, before_kib):
    """The first figure is only for the log, because it includes other programs of the machine."""
    pid = stage.daemon.process.pid
    used_kib, own_kib = before_kib - available_kib(), kib_of(f"/proc/{pid}/status", "RssAnon")
    print(f"memory: {used_kib // COUNT} KiB a sandbox, all of the machine")
    print(f"daemon: {own_kib} KiB of its own, {len(os.listdir(f'/proc/{pid}/fd'))} descriptors")
    assert FEWER or own_kib <= OWN_KIB


def available_kib():
    return kib_of("/proc/meminfo", "MemAvailable")


def sample_answers(stage, word):
    """Checks that each has its own files with the previous `word`, and writes the next one."""

    def ask(box):
        script = f'[ "$(cat /root/word 2>/dev/null)" = "{word}" ] && echo "{word}+" >/root/word'
        return stage.runs(box, "sh", "-c", script)

    assert set(at_once(ask, BOXES[::SAMPLE])) == {0}


@pytest.mark.deadline(600)
def test_hundreds_of_sandboxes_live_through_a_crash_and_leave_the_machine_as_it_was(stage):
    before_kib = available_kib()
    with timed("created"):
        at_once(stage.ready, BOXES)
    check_memory(stage, before_kib)
    sample_answers(stage, "")
    with timed("adopted"):
        stage.restart()
        sample_answers(stage, "+")
    assert stage.states() == dict.fromkeys(BOXES, "READY")
    check_memory(stage, before_kib)
    with timed("deleted"):
        at_once(stage.client.deleted, BOXES)
    assert not stage.states()
    with timed("gone"):
        stage.leaves_nothing()
