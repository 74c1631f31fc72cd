"""DNS in native sandboxes when only the host reaches the resolver: each part has a forwarder."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from local_resolver import ANSWER, RESOLVER, resolver
from native_fixtures import *  # noqa: F403

pytestmark = pytest.mark.deadline(120)

CONF = Path("/etc/resolv.conf")
# Its healthcheck is a command in the companion; the commands after it run only if it succeeded.
ASKS = f"nslookup some.test 127.0.0.11 | grep -F {ANSWER}"


@pytest.fixture(name="local_resolver", autouse=True)
def fixture_local_resolver(tmp_path):
    own = tmp_path / "resolv.conf"
    own.write_text(f"nameserver {RESOLVER}\n")
    subprocess.run(["mount", "--bind", own, CONF], check=True)
    try:
        with resolver() as asked:
            yield asked
    finally:
        subprocess.run(["umount", CONF], check=True)


def companion(name, **fields):
    return fields | {"name": name, "image": BUSYBOX}  # noqa: F405


def asking(name):
    return companion(
        name,
        healthcheck={
            "test": ["CMD-SHELL", ASKS],
            "interval": {"nanos": 200_000_000},
            "timeout": {"seconds": 20},
            "retries": 100,
        },
        post_start_on_primary=[f"touch /root/{name}"],
    )


def test_the_sandbox_and_each_companion_resolve_names(stage):
    box = stage.ready(companion_containers=[asking("cache"), asking("db")])
    assert stage.runs(box, "sh", "-c", ASKS) == 0
    for name in ("cache", "db"):
        wait_for(  # noqa: F405
            lambda name=name: stage.runs(box, "test", "-e", f"/root/{name}") == 0,
            f"{name} resolves names",
            60,
        )
    # Each part has its own, also when a later daemon has adopted them.
    stage.restart()
    assert stage.runs(box, "sh", "-c", ASKS) == 0


def test_a_companion_that_is_started_again_resolves_names(stage, local_resolver):
    lives = (
        "echo >> /root/lives; n=$(wc -l < /root/lives);"
        " until nslookup life-$n.test 127.0.0.11; do sleep 0.2; done;"
        " [ $n -lt 2 ] || exec sleep 1000"
    )
    stage.ready(companion_containers=[companion("cache", command=["sh", "-c", lives])])
    wait_for(lambda: "life-2.test" in local_resolver, "its second life asks for a name", 60)  # noqa: F405


def askers(stage, box):
    """The processes that resolve names for its parts, from the record."""
    record = json.loads((stage.boxes / box / "state.json").read_text())
    return [part["names"]["pid"] for part in record["parts"]]


def test_who_asks_for_names_is_started_again_also_when_no_daemon_ran(stage):
    box = stage.ready(companion_containers=[companion("cache")])

    def kill_and_await(start=lambda: None):
        before = askers(stage, box)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        start()
        wait_for(lambda: not set(before) & set(askers(stage, box)), "others ask", 60)  # noqa: F405
        assert stage.runs(box, "sh", "-c", ASKS) == 0

    kill_and_await()
    stage.stop()
    kill_and_await(stage.start)
