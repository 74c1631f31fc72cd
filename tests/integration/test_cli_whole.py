"""agentix, agentixd and the fake backend together."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from agxtest.cli import interrupt
from agxtest.server import wait_for
from cli_fixtures import fixture_cli, fixture_installed  # noqa: F401

TIMEOUT_S = 60


@pytest.fixture(name="box")
def fixture_box(installed):
    """The id of a sandbox that is ready."""
    done = installed.run("sandbox", "create", "--image", "i", "--label", "job=7")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def start(installed, *words, **options):
    return installed.cli.start(*words, env=installed.env, **options)


def test_life_of_a_sandbox(installed):
    done = installed.run("sandbox", "create", "--image", "i", "--sandbox-id", "box-1")
    assert (done.returncode, done.stdout) == (0, "box-1\n")
    assert "state=Ready" in installed.run("sandbox", "get", "box-1").stdout
    assert installed.run("sandbox", "stop", "box-1").returncode == 0
    assert re.search(r"box-1 +\d+s ago +Stopped \d+s", installed.run("sandbox", "list").stdout)
    done = installed.run("exec", "run", "box-1", "--", "true")
    assert done.returncode == 1 and "is not ready; `agentix sandbox get`" in done.stderr
    assert installed.run("sandbox", "resume", "box-1").returncode == 0
    assert installed.run("sandbox", "delete", "box-1").returncode == 0
    assert len(installed.run("sandbox", "list").stdout.splitlines()) == 1
    assert "Deleted" in installed.run("sandbox", "list", "--include-deleted").stdout
    done = installed.run("sandbox", "create", "--image", "i", "--sandbox-id", "box-1")
    assert done.returncode == 1 and "an id can be used only once" in done.stderr
    events = installed.run("sandbox", "events", "box-1", "--json").stdout.splitlines()
    assert [json.loads(line)["sequence"] for line in events] == [
        str(number) for number in range(1, len(events) + 1)
    ]
    assert json.loads(events[-1])["event_type"] == "SANDBOX_DELETED"


def test_create_on_a_terminal_shows_how_far_a_pull_is(installed):
    words = ["sandbox", "create", "--image", "i", "--label", "fake.create=delay 4s; pull 40"]
    status, _, screen = installed.cli.run_on_terminal(*words, env=installed.env)
    assert status == 0
    assert re.search(r"Pulling fake/image:1: (\d+)/40 layers, \1\.0/40\.0 MB", screen)
    assert int(re.search(r"Sandbox ready in (\d+)\.\ds", screen)[1]) >= 4


def test_sandbox_of_a_file(installed, tmp_path):
    file = tmp_path / "box.yaml"
    file.write_text("image: of-the-file\nlabels:\n  a: b\n")
    done = installed.run("sandbox", "create", "--yaml-file", file, "--label", "c=d")
    lines = installed.run("sandbox", "get", done.stdout.strip()).stdout.splitlines()
    assert "image=of-the-file" in lines and 'labels={"a":"b","c":"d"}' in lines
    file.write_text("image: x\nno_such_key: 1\n")
    done = installed.run("sandbox", "create", "--yaml-file", file)
    assert done.returncode == 1 and "no_such_key" in done.stderr


def test_sandbox_that_fails_or_takes_too_long(installed):
    words = ("sandbox", "create", "--image", "i", "--label")
    done = installed.run(*words, "fake.create=fail UNAVAILABLE no room")
    assert done.returncode == 1 and "failed: no room (SANDBOX_CREATE_FAILED)" in done.stderr
    done = installed.run(*words, "fake.create=delay 60s", "--timeout", "100ms")
    assert done.returncode == 1 and "is still Pending" in done.stderr
    slow = done.stdout.strip()
    done = installed.run("sandbox", "delete", slow)
    assert done.returncode == 0, done.stderr


def test_delete_by_label(installed):
    for _ in range(3):
        installed.run("sandbox", "create", "--image", "i", "--label", "job=7", "--no-wait")
    done = installed.run("sandbox", "delete", "--label", "job=7")
    assert done.returncode == 0 and "Deleted 3 sandboxes in " in done.stderr
    done = installed.run("sandbox", "delete", "--label", "job=7")
    assert done.stderr == "No sandboxes matched the label selector.\n"


def test_commands_give_their_output_and_exit_code(installed, box):
    done = installed.run("exec", "run", box, "--", "echo", "hello", "world")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello world\n", "")
    done = installed.run("exec", "run", box, "--", "sh", "-c", "echo a; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "a\n", "")
    done = installed.run("exec", "run", box, "--", "no-such-program")
    assert (done.returncode, done.stdout) == (127, "") and "not found" in done.stderr
    done = installed.run("exec", "run", box, "--deadline", "200ms", "--", "sleep", "60")
    assert done.returncode == 137 and "EXEC_DEADLINE_EXCEEDED" in done.stderr


def test_input_and_output_of_a_command_are_whole(installed, box):
    data = os.urandom(1_000_000)
    done = subprocess.run(
        [installed.cli.program, "exec", "run", "-i", box, "--", "cat"],
        input=data,
        capture_output=True,
        env=installed.env,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stdout == data, done.stderr) == (0, True, b"")


def test_closed_descriptors_are_no_harm(installed, box):
    words = f"{installed.cli.program} exec run -i {box} -- cat"
    for closed in ("<&-", "2>&-", "<&- >&- 2>&-"):
        command = ["sh", "-c", f"{words} {closed}"]
        options = {"env": installed.env, "timeout": TIMEOUT_S, "check": False}
        assert subprocess.run(command, stdin=subprocess.DEVNULL, **options).returncode == 0


@pytest.mark.parametrize(("signo", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_command_is_cancelled(installed, box, signo, status):
    process = start(installed, "exec", "run", box, "--", "sh", "-c", "echo here; sleep 60")
    assert process.stdout.readline() == "here\n"
    assert interrupt(process, signo)[0] == status
    wait_for(lambda: len(installed.run("exec", "list").stdout.splitlines()) == 1, "it is gone")


def test_command_whose_reader_goes_away_is_cancelled(installed, box):
    process = start(installed, "exec", "run", box, "--", "yes")
    assert process.stdout.readline() == "y\n"
    process.stdout.close()
    assert process.wait(TIMEOUT_S) == 1
    process.stderr.close()
    wait_for(lambda: len(installed.run("exec", "list").stdout.splitlines()) == 1, "it is gone")


def test_detached_command_is_followed_and_cancelled(installed, box):
    words = ("--", "sh", "-c", "echo one; sleep 60")
    done = installed.run("exec", "run", box, "--detach", "--exec-id", "exec-1", *words)
    assert (done.returncode, done.stdout) == (0, "exec-1\n")
    follower = start(installed, "exec", "logs", "-f", "exec-1")
    assert follower.stdout.readline() == "one\n"
    assert "exec-1" in installed.run("exec", "list", box).stdout
    assert installed.run("exec", "cancel", "exec-1").returncode == 0
    assert follower.wait(TIMEOUT_S) == 0
    follower.communicate()
    assert "state=Cancelled" in installed.run("exec", "get", "exec-1").stdout
    done = installed.run("exec", "cancel", "exec-1")
    assert (done.returncode, done.stderr) == (0, "The command has already ended.\n")
    assert installed.run("exec", "logs", "exec-1", "--offset", "1").stdout == "ne\n"


def test_command_goes_on_while_the_daemon_is_killed_and_started_again(installed, box):
    words = ("sh", "-c", "echo one; sleep 6; echo two; exit 5")  # the daemon is killed long before
    process = start(installed, "exec", "run", box, "--", *words)
    assert process.stdout.readline() == "one\n"
    [pid] = installed.daemons()
    os.kill(pid, signal.SIGKILL)
    assert process.stderr.readline() == (
        "agentix: lost the connection to the daemon; waiting for it to return\n"
    )
    assert installed.run("daemon", "start").returncode == 0
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out, err) == (5, "two\n", "")


def test_waits_and_events_go_on_while_the_daemon_is_restarted(installed, box):
    waiting = start(installed, "sandbox", "wait", box, "--state", "stopped")
    following = start(installed, "sandbox", "events", box, "-f")
    seen = [following.stdout.readline()]
    assert "SANDBOX_ACCEPTED" in seen[0]
    assert installed.run("daemon", "stop").returncode == 0
    assert installed.run("daemon", "start").returncode == 0
    assert installed.run("sandbox", "stop", box).returncode == 0
    out, err = waiting.communicate(timeout=TIMEOUT_S)
    assert (waiting.returncode, out) == (0, "Stopped\n"), err
    while "SANDBOX_STOPPED" not in seen[-1]:
        seen.append(following.stdout.readline())
    numbers = [int(line.split()[2]) for line in seen]
    assert numbers == list(range(1, 1 + len(numbers)))
    interrupt(following)


def test_daemon_that_is_about_to_end_is_followed_by_another(installed, box):
    for _ in range(5):
        assert installed.run("daemon", "start").returncode == 0
        status = installed.run("daemon", "status").stdout
        waiting = start(installed, "sandbox", "wait", box, "--state", "stopped")
        time.sleep(0.1)
        os.kill(int(re.search(r"pid=(\d+)", status).group(1)), signal.SIGTERM)
        time.sleep(0.01)
        done = installed.run("sandbox", "get", box)
        assert done.returncode == 0, done.stderr
        waiting.kill()
        waiting.communicate()


def connections(installed):
    """The number of connections to the daemon's socket, from the kernel."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return sum(each.split()[5:8:2] == ["03", str(installed.cli.socket)] for each in lines)


def test_stopped_daemon_is_not_started_by_one_who_waits(installed, box):
    wait_for(lambda: connections(installed) == 0, "who made the sandbox is gone")
    waiting = start(installed, "sandbox", "wait", box, "--state", "stopped")
    wait_for(lambda: connections(installed) == 1, "it waits")
    assert installed.run("daemon", "stop").returncode == 0
    _, err = waiting.communicate(timeout=TIMEOUT_S)
    assert waiting.returncode == 1 and "lost the connection to the daemon" in err
    assert installed.daemons() == []


def test_status_and_version_and_backup(installed, box, tmp_path):
    done = installed.run("daemon", "status")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0] == "state=running"
    assert "backend=fake" in lines and "sandboxes=1 (1 Ready)" in lines
    ours, theirs = installed.run("version").stdout.split()[1::2]
    assert ours == theirs
    copy = tmp_path / "copy.mdb"
    assert installed.run("daemon", "backup", copy).returncode == 0
    installed.run("sandbox", "delete", box)
    assert installed.run("daemon", "stop").returncode == 0
    store = installed.cli.top / "data" / "agentix" / "store" / "data.mdb"
    copy.replace(store)
    done = installed.run("sandbox", "get", box)
    assert done.returncode == 0, done.stderr
