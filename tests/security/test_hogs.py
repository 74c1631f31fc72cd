"""Code that uses all resources it can get stays within its limits; other sandboxes and the daemon
continue."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest
from agxtest.protos import agbox
from agxtest.server import wait_for
from inside import PIDS

BACKEND = os.environ["AGX_BACKEND"]
pytestmark = pytest.mark.deadline(180)

MIB = 1 << 20
MAIN_LOG = 16 * MIB


@pytest.fixture(name="hog")
def fixture_hog(stage):
    """hog(**spec) makes a sandbox that is deleted at the end."""
    made = []

    def hog(**spec):
        made.append(stage.ready(**spec))
        return made[-1]

    yield hog
    for each in made:
        stage.client.deleted(each)


def goes_on(stage, neighbour):
    assert stage.runs(neighbour, "true") == 0


def finish(stage, exec_id):
    """Cancels the command and waits for its end."""
    stage.client.box.CancelExec(exec_id=exec_id)
    running = agbox().EXEC_STATE_RUNNING
    wait_for(lambda: stage.client.exec(exec_id).state != running, "the command has ended", 90)
    return stage.client.exec(exec_id)


def test_fork_bomb_meets_its_limit_and_ends_when_it_is_told_to(stage, box, hog):
    bombed = hog()
    # Not a shell's fork bomb: a shell ends when it may not fork, and then leaves processes free.
    bomb = stage.client.start(bombed, "/probe", "fork-bomb").exec_id

    def no_process():
        run = stage.client.run(bombed, "sh", "-c", "sleep 0 & sleep 0 & wait")
        return run.state == agbox().EXEC_STATE_FAILED

    wait_for(no_process, "the bomb has all processes that it may have", 90)
    goes_on(stage, box)
    assert finish(stage, bomb).state == agbox().EXEC_STATE_CANCELLED
    wait_for(lambda: not no_process(), "there are processes again", 60)


def test_more_processes_than_the_limit_are_refused_where_there_is_one(stage, hog):
    """A sandbox may have PIDS processes; the machine of the test has a higher limit."""
    crowd = f"n=0; while [ $n -lt {2 * PIDS} ]; do sleep 1000 >/dev/null 2>&1 & n=$((n+1)); done"
    outside = subprocess.Popen(["busybox", "sh", "-c", crowd], start_new_session=True)
    assert outside.wait() == 0, "it does not even succeed without a limit"
    os.killpg(outside.pid, signal.SIGKILL)
    # A command ends with its last process, so all are killed except the shell that reports.
    inside = f"sh -c '{crowd}'; code=$?; kill -9 -1; exit $code"
    assert stage.runs(hog(), "sh", "-c", inside) != 0


def test_memory_hog_is_killed_and_nobody_else_is(stage, box, hog):
    # `tail` keeps a line without an end in memory.
    take = "head -c 100m /dev/zero | tr '\\0' x | tail -n 1 >/dev/null"
    assert stage.runs(hog(memory_limit="512m"), "sh", "-c", take) == 0
    greedy = hog(memory_limit="64m")
    assert stage.runs(greedy, "sh", "-c", take) != 0
    goes_on(stage, box)
    wait_for(lambda: stage.runs(greedy, "true") == 0, "the sandbox itself goes on", 60)


def test_output_without_an_end_takes_no_more_than_its_cap(stage, box, hog):
    loud = hog()
    logs = Path(stage.daemon.place.top)

    def taken():
        """The space on disk, also of sparse files. Files of deleted sandboxes may go meanwhile."""
        total = 0
        for directory, _, names in os.walk(logs):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    total += os.lstat(os.path.join(directory, name)).st_blocks * 512
        return total

    before = taken()
    flood = stage.client.start(loud, "yes").exec_id
    # It writes much more than the log keeps, and all of it is read.
    assert stage.runs(loud, "sh", "-c", "yes 0123456789abcdef | head -c 200m") == 0
    goes_on(stage, box)
    assert finish(stage, flood).state == agbox().EXEC_STATE_CANCELLED
    assert taken() - before < 80 * MIB, "two commands of 16 MiB each, and one of them unrolled"


def test_thousands_of_commands_are_all_run_and_told_of(stage, box, hog):
    busy = hog()
    runs = []
    for _ in range(2000):
        runs.append(stage.client.start(busy, "true").exec_id)
        if len(runs) == 50:
            assert [stage.client.ended(each).exit_code for each in runs] == [0] * 50
            runs.clear()
    goes_on(stage, box)


# The engine of the tests cannot limit a disk.
if BACKEND != "docker":

    @pytest.mark.parametrize(
        "filler",
        [
            "dd if=/dev/zero of=/fill bs=1M count=80",
            "mkdir /fill; i=0; while [ $i -lt 10000 ]; do : >/fill/$i || exit; i=$((i+1)); done",
        ],
        ids=["bytes", "inodes"],
    )
    def test_disk_filler_fills_its_own(stage, box, hog, filler):
        assert stage.runs(hog(disk_limit="256m"), "sh", "-c", filler) == 0
        full = hog(disk_limit="64m")
        assert stage.runs(full, "sh", "-c", filler) != 0
        goes_on(stage, box)
        assert stage.runs(full, "rm", "-rf", "/fill") == 0
        assert stage.runs(full, "sh", "-c", "echo more >/more") == 0

    def test_endless_output_of_a_main_process_takes_no_more_than_its_cap(stage, box, hog):
        loud = hog(
            command=["yes", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"]
        )
        native = stage.daemon.place.data / "native"
        log = native / "boxes" / loud / "0" / "main.log"
        wait_for(lambda: log.stat().st_size >= MAIN_LOG, "the log is full", 90)
        goes_on(stage, loud)
        goes_on(stage, box)
        assert log.stat().st_size <= MAIN_LOG
        stage.client.box.StopSandbox(sandbox_id=loud)
        stage.client.until(loud, agbox().SANDBOX_STOPPED)
        # The log has the first and the last output, and between them a line about the missing part.
        assert log.stat().st_size <= MAIN_LOG + 256
