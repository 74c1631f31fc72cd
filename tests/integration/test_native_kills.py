"""kill -9 of agentixd in the middle of each native operation: the next daemon continues accepted
operations, nothing is done twice, and nothing is left behind.

The moments are spread over the time of the operation, and one follows each visible effect of it.
The result is the same for every moment.
"""

import contextlib
import json
import os
import signal
import threading
import time
from pathlib import Path

import grpc
import pytest
from agxtest import archives, host, images
from agxtest.agbox import unique
from agxtest.protos import agbox
from agxtest.registry import Registry
from agxtest.server import wait_for
from native_fixtures import *  # noqa: F403

pytestmark = pytest.mark.deadline(300)

# A sanitizer looks for other faults and is slow.
FEWER = os.environ.get("SANITIZE", "none") != "none"
# Fractions of the time that the operation takes without a kill.
SPREAD = (0, 0.3, 0.7) if FEWER else (0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.2)
SETTLE_S = 120
FILES, FILE_BYTES = 50, 16384  # of an image


# -- facts


def after(seconds):
    def moment(_done):
        time.sleep(seconds)

    return moment


def fact(condition):
    """The moment when the condition holds or the operation is over."""

    def moment(done):
        wait_for(lambda: condition() or done(), "a fact of the operation", SETTLE_S)

    return moment


def groups(box):
    """The control groups of all parts of the sandbox, in all hierarchies."""
    top, own = Path("/sys/fs/cgroup"), f"box-{box}"
    found = [*top.glob(f"agentix-*/{own}*"), *top.glob(f"*/agentix-*/{own}*")]
    return [path for path in found if path.name == own or path.name.startswith(f"{own}.")]


def tasks(box):
    """The processes of the primary."""
    found = set()
    for path in groups(box):
        with contextlib.suppress(OSError):
            if path.name == f"box-{box}":
                found |= set((path / "cgroup.procs").read_text().split())
    return found


def record(stage, box):
    try:
        return json.loads((stage.boxes / box / "state.json").read_text())
    except OSError:
        return {}


def notes_init(stage, box):
    return any("init" in part for part in record(stage, box).get("parts", []))


def forwarders():
    return [each for each in host.processes() if "agentix-forward" in each[1]]


def of_create(stage, box):
    """The visible effects of a create, in their order."""
    home = stage.boxes / box
    return [
        home.exists,
        lambda: record(stage, box),
        (home / "0/fs/etc/hostname").exists,
        lambda: groups(box),
        lambda: tasks(box),
        lambda: notes_init(stage, box),
    ]


def of_stop(stage, box):
    return [lambda: not tasks(box), lambda: not groups(box), lambda: not notes_init(stage, box)]


# -- operations


def settles(stage, box, *wanted):
    def found():
        handle = stage.client.get(box)
        assert handle.error_code == "", f"{handle.error_code}: {handle.error_message}"
        return stage.state(box) in wanted

    wait_for(found, f"'{box}' becomes {wanted}", SETTLE_S)


def kill_in_the_middle(stage, box, ask, moment, wanted):
    """Kills the daemon during an operation on the box; the next daemon continues it."""
    ask(box)
    moment(lambda: stage.state(box) in wanted)
    stage.restart()
    settles(stage, box, *wanted)


def moments(stage, make, ask, wanted, facts):
    """Yields (box, moment) with boxes from make(). The first box is not disturbed: it shows how
    long the operation takes."""
    box = make()
    began = time.monotonic()
    ask(box)
    settles(stage, box, *wanted)
    seconds = time.monotonic() - began
    for part in SPREAD:
        yield make(), after(part * seconds)
    for number in range(len(facts(stage, box))):
        box = make()
        yield box, fact(facts(stage, box)[number])


def new_box():
    return unique("box")


def check_alive(stage, box, parts=1):
    """Checks that the box answers and exists once."""
    assert stage.runs(box) == 0
    assert len({path.name for path in groups(box)}) == parts, groups(box)
    wait_for(lambda: len(tasks(box)) == 1, "init is alone")


# -- sandboxes


def test_create_is_carried_on(stage):
    for box, moment in moments(stage, new_box, stage.create, ("READY",), of_create):
        kill_in_the_middle(stage, box, stage.create, moment, ("READY",))
        check_alive(stage, box)


def test_create_with_all_that_there_is_is_carried_on(stage, tmp_path):
    """Companion, copy, port, disk limit."""
    source = tmp_path / "copied"
    source.mkdir()
    for number in range(100):
        (source / f"f{number}").write_text("x" * 1000)
    port = {"container_port": 8080, "protocol": agbox().PORT_PROTOCOL_TCP}
    spec = {
        "copies": [{"source": str(source), "target": "/root/c"}],
        "companion_containers": [{"name": "db", "image": BUSYBOX}],  # noqa: F405
        "disk_limit": "64m",
    }
    ports = iter(range(30000, 31000))

    def create(box):
        stage.create(box, ports=[port | {"host_port": next(ports)}], **spec)

    def facts(stage, box):
        upper = stage.boxes / box / "0/fs/upper"
        copied = [upper.exists, lambda: list(upper.glob("root/c/*")), forwarders]
        return [*of_create(stage, box), lambda: record(stage, box).get("made"), *copied]

    for box, moment in moments(stage, new_box, create, ("READY",), facts):
        kill_in_the_middle(stage, box, create, moment, ("READY",))
        check_alive(stage, box, parts=2)
        assert stage.runs(box, "sh", "-c", "[ $(ls /root/c | wc -l) = 100 ]") == 0
        stage.client.deleted(box)
    wait_for(lambda: len(forwarders()) == 1, "only the first one's forwarder is left")


def with_file(stage):
    box = stage.ready()
    assert stage.runs(box, "sh", "-c", "echo kept >/root/f") == 0
    return box


def test_stop_is_carried_on(stage):
    def ask(box):
        stage.client.box.StopSandbox(sandbox_id=box)

    def make():
        return with_file(stage)

    for box, moment in moments(stage, make, ask, ("STOPPED",), of_stop):
        kill_in_the_middle(stage, box, ask, moment, ("STOPPED",))
        assert (tasks(box), groups(box)) == (set(), [])


def test_resume_is_carried_on_with_the_files_of_before(stage):
    def ask(box):
        stage.client.box.ResumeSandbox(sandbox_id=box)

    def make():
        box = with_file(stage)
        stage.client.box.StopSandbox(sandbox_id=box)
        settles(stage, box, "STOPPED")
        return box

    def facts(stage, box):
        return of_create(stage, box)[3:]

    for box, moment in moments(stage, make, ask, ("READY",), facts):
        kill_in_the_middle(stage, box, ask, moment, ("READY",))
        check_alive(stage, box)
        assert stage.runs(box, "grep", "-q", "kept", "/root/f") == 0


def test_delete_is_carried_on(stage):
    def ask(box):
        stage.client.box.DeleteSandbox(sandbox_id=box)

    def facts(stage, box):
        return [*of_stop(stage, box), lambda: not (stage.boxes / box).exists()]

    def make():
        return with_file(stage)

    for box, moment in moments(stage, make, ask, ("DELETED",), facts):
        kill_in_the_middle(stage, box, ask, moment, ("DELETED",))
        assert (tasks(box), groups(box)) == (set(), [])
        assert not (stage.boxes / box).exists()


# -- commands


def test_command_runs_once_and_reports_its_true_exit_code(stage):
    box = stage.ready()
    script = "echo line >>/root/log; sleep 0.05; exit 7"
    began = time.monotonic()
    assert stage.runs(box, "sh", "-c", script) == 7
    seconds = time.monotonic() - began
    for number, part in enumerate(SPREAD):
        run = stage.client.start(box, "sh", "-c", script)
        time.sleep(part * seconds)
        stage.restart()
        assert stage.client.ended(run.exec_id).exit_code == 7
        assert stage.runs(box, "sh", "-c", f"[ $(wc -l </root/log) = {number + 2} ]") == 0


# -- images


def image_files():
    """The files of busybox, and so many others that the operation takes a while."""
    tree = images.busybox()
    for number in range(FILES):
        tree.file(f"root/f{number}", os.urandom(FILE_BYTES))
    return tree.finish()


def kill_during(stage, call, moment):
    """Kills the daemon during a call, which may or may not get its answer."""
    over = threading.Event()

    def run():
        with contextlib.suppress(grpc.RpcError):
            call()
        over.set()

    thread = threading.Thread(target=run)
    thread.start()
    moment(over.is_set)
    stage.daemon.kill()
    thread.join()
    stage.start()


def of_images(stage):
    """The visible effects on disk, in their order."""
    top = stage.place.data / "images"
    before = {path: len(list((top / path).iterdir())) for path in ("tmp", "layers", "configs")}
    refs = (top / "refs.json").read_text()
    found = [lambda p=p, n=n: len(list((top / p).iterdir())) > n for p, n in before.items()]
    return [*found, lambda: (top / "refs.json").read_text() != refs]


def names(stage):
    return {name for image in stage.images.ListImages().images for name in image.names}


def check_whole_or_not_there(stage, name, again):
    """Checks that the image can be used if it exists, and can be imported or pulled otherwise. Then
    removes it."""
    if name not in names(stage):
        again()
    box = stage.ready(image=name)
    assert stage.runs(box, "sh", "-c", f"[ $(cat /root/f* | wc -c) = {FILES * FILE_BYTES} ]") == 0
    stage.client.deleted(box)
    wait_for(lambda: can_remove(stage, name), "the image is free")


def can_remove(stage, name):
    with contextlib.suppress(grpc.RpcError):
        return stage.images.RemoveImage(image=name)
    return None


def check_images(stage, call, name):
    began = time.monotonic()
    call()
    seconds = time.monotonic() - began
    stage.images.RemoveImage(image=name)
    for moment in [after(part * seconds) for part in SPREAD[::2]]:
        kill_during(stage, call, moment)
        check_whole_or_not_there(stage, name, call)
    for number in range(4):
        kill_during(stage, call, fact(of_images(stage)[number]))
        check_whole_or_not_there(stage, name, call)


def test_import_is_whole_or_leaves_nothing(stage):
    data = archives.docker_save((["whole:1"], [image_files()], {}))
    check_images(stage, lambda: stage.send(data), "docker.io/library/whole:1")


# -- what dies beside the daemon


def inits(stage, box):
    """PID 1 of each part, from the record."""
    record = json.loads((stage.boxes / box / "state.json").read_text())
    return [part["init"]["pid"] if "init" in part else 0 for part in record["parts"]]


def test_a_companion_that_died_while_no_daemon_ran_is_started_again(stage):
    companions = [{"name": name, "image": stage.image} for name in ("cache", "db")]
    box = stage.ready(companion_containers=companions)
    before = inits(stage, box)
    stage.stop()
    os.kill(before[1], signal.SIGKILL)
    stage.start()
    wait_for(lambda: inits(stage, box)[1] not in (0, before[1]), "it runs again", SETTLE_S)
    after = inits(stage, box)
    assert (after[0], after[2]) == (before[0], before[2])
    assert stage.runs(box) == 0
    told = [event.event_type for event in stage.client.history(box)]
    assert agbox().COMPANION_CONTAINER_FAILED not in told


@pytest.fixture(name="registry")
def fixture_registry():
    registry = Registry()
    yield registry
    registry.close()


def test_pull_is_whole_or_leaves_nothing(stage, registry):
    name = registry.add("whole", "1", image_files())
    check_images(stage, lambda: list(stage.images.PullImage(image=name)), name)


def test_create_whose_image_is_being_pulled_is_carried_on(stage, registry):
    name = registry.add("whole", "1", image_files())
    registry.piece_seconds = 0.02

    def create(box):
        stage.create(box, image=name)

    def make():
        for each in stage.states():
            stage.client.deleted(each)
        wait_for(lambda: name not in names(stage) or can_remove(stage, name), "the image is free")
        return new_box()

    def facts(stage, _box):
        return of_images(stage)

    for box, moment in moments(stage, make, create, ("READY",), facts):
        kill_in_the_middle(stage, box, create, moment, ("READY",))
        check_alive(stage, box)
    make()  # and the image goes
