"""The native backend's conformance suite on Debian's kernel, with control groups of version 2."""

import os
import re
import shutil

import pytest
from agxtest import guest, images


def settles(is_left):
    """Waits, because the kernel removes some objects later."""
    return f"for i in $(seq 60); do {is_left} >/dev/null 2>&1 || break; sleep 1; done; "


# Runs in the guest itself, not in separate namespaces, and then checks what is left. The guest has
# no /etc/protocols and no other file of Debian, because the backend needs none.
COMMANDS = {
    "conformance": (
        "mkdir /data/box && AGX_BOX=/data/box AGX_IMAGES=/images exec conformance_backend_native"
    ),
    # Lists their contents too, if there are any.
    "groups": (
        settles("ls -d /sys/fs/cgroup/agentix-*")
        + "find /sys/fs/cgroup/agentix-* -type d; head /sys/fs/cgroup/agentix-*/*/cgroup.procs"
    ),
    "links": settles("ip -o link | grep agx") + "ip -o link",
    "mounts": settles("grep agentix /proc/mounts") + "grep -c agentix /proc/mounts",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    directory = tmp_path_factory.mktemp("guest")
    archive = directory / "busybox.tar"
    archive.write_bytes(images.archive("busybox"))
    # Our programs find each other by the paths that they have on this machine.
    files = {path: path for path in os.environ["GUEST_FILES"].split(":")}
    files["/images/busybox.tar"] = archive
    try:
        machine = guest.Guest(directory, [os.environ["BACKEND_NATIVE"]], files)
        yield machine.run(COMMANDS, seconds=1500)
    except guest.CannotRun as why:
        pytest.skip(str(why))
    finally:
        shutil.rmtree(directory)  # pytest would keep it, and it is large


def test_the_native_backend_passes_the_suite_of_all_backends(results):
    result = results["conformance"]
    assert result.status == 0, result.output
    assert "SKIP" not in result.output
    assert len(re.findall(r"^ok \d+", result.output, re.MULTILINE)) >= 50


def test_nothing_is_left_on_the_host(results):
    assert "No such file" in results["groups"].output
    assert "agx" not in results["links"].output
    assert results["mounts"].output.strip() == "0"
