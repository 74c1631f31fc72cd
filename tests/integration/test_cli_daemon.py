"""agentix daemon, and the automatic start of a daemon by agentix, with the real agentixd."""

import os
import re
import shutil
import signal
import threading
from pathlib import Path

import grpc
import pytest
from agxtest.cli import interrupt
from agxtest.fake_daemon import Refusal
from agxtest.server import wait_for
from cli_fixtures import fixture_cli, fixture_fake, fixture_installed  # noqa: F401

TIMEOUT_S = 60
STARTED = re.compile(r"agentix: started the daemon \(pid (\d+)\); `agentix daemon stop` stops it\n")


def test_daemon_is_started_once_it_is_needed_and_said_so(installed):
    done = installed.run("sandbox", "list")
    pid = int(STARTED.match(done.stderr).group(1))
    assert installed.daemons() == [pid]
    done = installed.run("sandbox", "list")
    assert "started" not in done.stderr and installed.daemons() == [pid]


def test_many_at_the_same_moment_start_one(installed):
    words = ("sandbox", "list")
    processes = [installed.cli.start(*words, env=installed.env) for _ in range(12)]
    said = [process.communicate(timeout=TIMEOUT_S)[1] for process in processes]
    assert len(installed.daemons()) == 1
    assert sum("started the daemon" in text for text in said) == 1, said
    assert not any("did not start" in text or "nobody listens" in text for text in said)


def test_daemon_that_cannot_start_says_why_at_once(installed):
    installed.config.write_text("no_such_key: 1\n")
    done = installed.run("sandbox", "list")
    assert done.returncode == 1
    assert "agentix: the daemon did not start: " in done.stderr and "no_such_key" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_no_daemon_is_started_where_that_is_switched_off(installed):
    done = installed.run("sandbox", "list", AGENTIX_AUTOSTART="0")
    assert done.returncode == 1 and "AGENTIX_AUTOSTART is 0" in done.stderr
    assert installed.daemons() == []


def test_missing_agentixd_is_named(installed):
    (installed.bin / "agentixd").unlink()
    done = installed.run("sandbox", "list", PATH=str(installed.bin))
    assert done.returncode == 1 and "there is no agentixd" in done.stderr


def test_agentixd_on_the_path_is_found(installed):
    elsewhere = installed.cli.top / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "agentix").symlink_to(installed.bin / "agentix")
    alone = installed.cli.top / "alone"
    alone.mkdir()
    shutil.copy(installed.bin / "agentix", alone)
    installed.cli.program = str(alone / "agentix")
    done = installed.run("sandbox", "list", PATH=str(installed.bin))
    assert STARTED.match(done.stderr)


def test_socket_that_is_named_is_where_the_daemon_comes_to_be(installed):
    named = installed.cli.top / "named.sock"
    done = installed.run("sandbox", "list", AGENTIX_SOCKET=str(named))
    assert STARTED.match(done.stderr) and named.is_socket()


def test_start_and_stop(installed):
    done = installed.run("daemon", "start")
    pid = int(STARTED.match(done.stderr).group(1))
    assert (done.returncode, done.stdout) == (0, "")
    done = installed.run("daemon", "start")
    assert (done.returncode, done.stderr) == (
        0,
        f"agentix: a daemon is already running (pid {pid})\n",
    )
    done = installed.run("daemon", "stop")
    assert done.returncode == 0 and "Daemon stopped in " in done.stderr
    assert installed.daemons() == []
    done = installed.run("daemon", "stop")
    assert (done.returncode, done.stderr) == (
        0,
        f"agentix: no daemon is running at '{installed.cli.socket}'\n",
    )


def test_start_gives_the_daemon_its_options(installed):
    installed.config.unlink()
    done = installed.run("daemon", "start", "--", "--backend", f"fake:{installed.cli.top}/other")
    assert STARTED.match(done.stderr)
    words = Path(f"/proc/{installed.daemons()[0]}/cmdline").read_bytes().split(b"\0")
    assert b"--backend" in words


def test_stop_of_one_that_does_not_end_says_so(installed):
    installed.run("daemon", "start")
    [pid] = installed.daemons()
    os.kill(pid, signal.SIGSTOP)
    done = installed.run("daemon", "stop")
    os.kill(pid, signal.SIGCONT)
    assert done.returncode == 1 and f"(pid {pid}) does not stop" in done.stderr


def test_stop_leaves_alone_who_is_no_daemon(cli, fake):
    done = cli.run("daemon", "stop")
    assert done.returncode == 1 and f"process {os.getpid()} (" in done.stderr
    assert "holds the daemon's socket" in done.stderr


def test_status_of_none_is_3(cli):
    done = cli.run("daemon", "status")
    assert (done.returncode, done.stdout) == (3, f"state=stopped\nsocket={cli.socket}\n")


def test_status_says_how_it_does(cli, fake):
    stats = fake.messages.GetStatsResponse(
        version="1.2.3\x1b", pid=77, backend="fake", rss_bytes=3 << 20, active_execs=2
    )
    stats.uptime.seconds = 7300
    for state, count in ((2, 3), (4, 1), (6, 9)):
        stats.sandboxes.add(state=state, count=count)
    fake.methods["GetStats"] = lambda request, context: stats
    done = cli.run("daemon", "status")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "state=running",
        "pid=77",
        "version=1.2.3\\u{1b}",
        f"socket={cli.socket}",
        "backend=fake",
        "uptime=2h",
        "memory=3.0MiB",
        "sandboxes=4 (3 Ready, 1 Stopped)",
        "active_execs=2",
    ]
    assert '"rss_bytes": "3145728"' in cli.run("daemon", "status", "--json").stdout


def test_version_is_that_of_both(cli, fake):
    fake.methods["Ping"] = lambda request, context: fake.messages.PingResponse(version="9.9")
    done = cli.run("version")
    assert done.returncode == 0
    ours, theirs = done.stdout.splitlines()
    assert ours.startswith("agentix: 0.") and theirs == "agentixd: 9.9"
    fake.stop()
    assert cli.run("version").stdout.splitlines()[1] == "agentixd: unavailable"


def test_logs_are_the_end_of_the_file(cli):
    log = cli.top / "data" / "agentix" / "agentixd.log"
    done = cli.run("daemon", "logs")
    assert done.returncode == 1 and f"'{log}' does not exist" in done.stderr
    log.parent.mkdir(parents=True)
    lines = [f"line {i} {'x' * 50}\n" for i in range(5000)]
    log.write_text("".join(lines))
    assert cli.run("daemon", "logs").stdout == "".join(lines[-100:])
    assert cli.run("daemon", "logs", "-n", "4999").stdout == "".join(lines[1:])
    assert cli.run("daemon", "logs", "--lines=9999").stdout == "".join(lines)
    assert cli.run("daemon", "logs", "-n0").stdout == ""


def test_logs_are_followed_into_the_next_file(cli):
    log = cli.top / "data" / "agentix" / "agentixd.log"
    log.parent.mkdir(parents=True)
    log.write_text("one\ntwo\n")
    process = cli.start("daemon", "logs", "-f", "-n", "1")
    assert process.stdout.readline() == "two\n"
    with log.open("a") as out:
        out.write("three\n")
    assert process.stdout.readline() == "three\n"
    with log.open("a") as out:
        out.write("last\n")
        out.flush()
        log.rename(log.with_suffix(".log.1"))
        log.write_text("first\n")
    assert [process.stdout.readline() for _ in range(2)] == ["last\n", "first\n"]
    with log.open("a") as out:
        out.write("second\n")
    assert process.stdout.readline() == "second\n"
    process.terminate()
    process.communicate()


def test_backup_is_whole_or_not_there(cli, fake, tmp_path):
    pieces = [os.urandom(100_000) for _ in range(50)]
    file = tmp_path / "copy.mdb"

    def broken(_request, _context):
        yield fake.messages.BackupResponse(data=pieces[0])
        raise Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "the disk is full")

    fake.methods["Backup"] = broken
    done = cli.run("daemon", "backup", file)
    assert (done.returncode, list(tmp_path.iterdir())) == (1, [])
    assert done.stderr == "agentix: the disk is full\n"
    fake.methods["Backup"] = lambda request, context: (
        fake.messages.BackupResponse(data=piece) for piece in pieces
    )
    done = cli.run("daemon", "backup", file)
    assert (done.returncode, done.stderr) == (0, f"Wrote 5000000 bytes to {file}.\n")
    assert file.read_bytes() == b"".join(pieces) and file.stat().st_mode & 0o7777 == 0o600
    assert list(tmp_path.iterdir()) == [file]
    pieces[:] = [b"new"]
    done = cli.run("daemon", "backup", file)
    assert done.returncode == 1 and "--force replaces it" in done.stderr
    assert file.stat().st_size == 5_000_000
    assert cli.run("daemon", "backup", file, "--force").returncode == 0
    assert file.read_bytes() == b"new" and list(tmp_path.iterdir()) == [file]
    done = cli.run("daemon", "backup", tmp_path / "no" / "dir")
    assert done.returncode == 1 and "No such file" in done.stderr


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM])
def test_backup_that_is_interrupted_leaves_nothing(cli, fake, tmp_path, signo):
    sent, over = threading.Event(), threading.Event()

    def endless(_request, _context):
        yield fake.messages.BackupResponse(data=b"first")
        sent.set()
        over.wait(TIMEOUT_S)

    fake.methods["Backup"] = endless
    process = cli.start("daemon", "backup", tmp_path / "copy.mdb")
    assert sent.wait(TIMEOUT_S)
    wait_for(lambda: any(tmp_path.iterdir()), "it writes")
    status, out, err = interrupt(process, signo)
    over.set()
    assert (status, out, list(tmp_path.iterdir())) == (128 + signo, "", [])
    assert err == f"agentix: interrupted: '{tmp_path / 'copy.mdb'}' was not written\n"
