"""Tests that need another kernel than the host's: Debian's, with control groups of version 2."""

import os
import shutil

import pytest
from agxtest import guest

TOP = "/sys/fs/cgroup"

COMMANDS = {
    "version": "grep -c cgroup2 /proc/mounts; grep -c '^cgroup ' /proc/mounts; uname -r",
    "cgroup": "test_cgroup",
    "io_weight": (
        f"echo +io >{TOP}/cgroup.subtree_control && mkdir {TOP}/x && cat {TOP}/x/io.weight"
    ),
    # The first process of a container with its own part of the hierarchy.
    "container": (
        f"mkdir {TOP}/box && echo $$ >{TOP}/box/cgroup.procs && "
        f"exec unshare -m sh -c 'mount --bind {TOP}/box {TOP} && exec test_cgroup'"
    ),
    # One of several there.
    "crowded": (
        f"mkdir {TOP}/full && echo $$ >{TOP}/full/cgroup.procs && (sleep 1000 & "
        f"exec unshare -m sh -c 'mount --bind {TOP}/full {TOP} && exec test_cgroup make_sets')"
    ),
    # A user with a part of the hierarchy from systemd, and one without.
    "delegated": (
        f"mkdir -p {TOP}/mine/app && cd {TOP}/mine && "
        "chown user . cgroup.procs cgroup.subtree_control cgroup.threads app app/cgroup.procs && "
        "echo $$ >app/cgroup.procs && cd / && exec su user -c test_cgroup"
    ),
    "refused": "exec su user -c 'test_cgroup make_sets'",
    "seccomp": "test_seccomp",
    "quota": "AGX_BOX=/data AGX_DISK_KIND=quota test_disk",
    "image": "AGX_BOX=/run AGX_DISK_KIND=image test_disk",
    "plan": "test_init_plan",
    "plan_faults": "test_init_plan_faults",
    "status": "echo out; echo err >&2; exit 3",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Boots once for all tests and returns the results."""
    directory = tmp_path_factory.mktemp("guest")
    programs = os.environ["GUEST_PROGRAMS"].split(":")
    try:
        # Our programs find each other by the paths that they have on this machine.
        files = {os.environ[name]: os.environ[name] for name in ("AGENTIX_INIT", "INIT_PROG")}
        files["/sbin/mkfs.ext4"] = guest.find("mkfs.ext4")
        yield guest.Guest(directory, programs=programs, files=files).run(COMMANDS)
    except guest.CannotRun as why:
        pytest.skip(str(why))
    finally:
        shutil.rmtree(directory)  # pytest would keep it, and it is large


def test_a_command_of_the_guest_brings_its_output_and_status_back(results):
    assert results["status"] == guest.Result(3, "out\nerr\n")


def test_the_guest_has_control_groups_of_version_2_alone(results):
    assert results["version"].output.split()[:2] == ["1", "0"]
    assert results["version"].output.split()[2].endswith("-cloud-amd64")


@pytest.mark.parametrize("where", ["cgroup", "container", "delegated"])
def test_control_groups_of_version_2_do_what_those_of_version_1_do(results, where):
    result = results[where]
    assert result.status == 0, result.output
    assert "\nnot ok" not in result.output and "SKIP" not in result.output
    assert "ok 16 - " in result.output


def test_where_no_group_can_be_made_the_error_says_what_to_do(results):
    assert "other processes are in the group" in results["crowded"].output
    assert "run as root, or under systemd" in results["refused"].output


def test_the_weight_of_disk_access_is_there_to_be_set(results):
    # The tests of control groups skip it if it does not exist.
    assert results["io_weight"].output.strip() == "default 100"


def test_the_system_call_filter_is_one_for_this_kernel_too(results):
    result = results["seccomp"]
    assert result.status == 0, result.output


@pytest.mark.parametrize("way", ["quota", "image"])
def test_what_is_written_is_limited_by_a_project_quota_or_an_image(results, way):
    result = results[way]
    assert result.status == 0, result.output
    assert "SKIP" not in result.output


@pytest.mark.parametrize("which", ["plan", "plan_faults"])
def test_agentix_init_carries_out_its_plan_on_this_kernel(results, which):
    result = results[which]
    assert result.status == 0, result.output
    assert "SKIP" not in result.output
