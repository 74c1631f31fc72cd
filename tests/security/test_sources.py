"""What is mounted or copied is what was checked, whatever a sandbox does to the paths meanwhile.

Each attack is first made on a daemon that leaves the guard out (unwalk.c, unguard.c), where it must
succeed.
"""

import contextlib
import os
import shutil
from pathlib import Path

import grpc
import pytest
from agxtest.agbox import refusal_of, state_name, unique
from agxtest.daemon import NativeDaemon, NativePlace
from agxtest.protos import agbox
from agxtest.server import wait_for
from inside import NativeStage, said

pytestmark = pytest.mark.deadline(300)

CHECKED, SECRET = "of the project", "of the host"
REFUSED = "is not followed: a sandbox may have made it"
PROGRAMS = ("init/agentix-init", "image/agentix-unpack", "forward/agentix-forward")
# How many sandboxes are made while their sources change places. 300 is what was asked for once.
SWAPS = int(os.environ.get("AGX_SWAPS", "40"))
WAIT_S = 120  # says when a hang is one


class UnwalkedPlace(NativePlace):
    """The daemon of unwalk.c, with the real programs beside it."""

    def command(self, *options):
        programs, build = self.top / "programs", Path(os.environ["AGENTIXD"]).parent.parent
        if not programs.exists():
            programs.mkdir(parents=True)
            shutil.copy(os.environ["AGX_UNWALK"], programs / "agentixd")
            for each in PROGRAMS:
                (programs / Path(each).name).symlink_to(build / each)
        return super().command(*options, program=programs / "agentixd")


class UnwalkedDaemon(NativeDaemon):
    def make_place(self, directory):
        return UnwalkedPlace(directory)


class UnguardedInit:
    """unguard.c in the place of agentix-init; no guard is off, and no paths are swapped, yet."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir(parents=True)
        self.program = directory / "agentix-init"
        shutil.copy(os.environ["AGX_UNGUARD"], self.program)
        (directory / "real").symlink_to(os.environ["AGENTIX_INIT"])

    def swap(self, one, other):
        """Right before each start from now on."""
        (self.directory / "swap").write_text(f"{one}\n{other}")

    def leave_out(self, guard):
        (self.directory / "off").write_text(guard)


class Ground:
    """Directories of the host: a project that a sandbox can write to, and one that nobody may."""

    def __init__(self, top):
        self.project, self.outside = top / "project", top / "outside"
        for place, text in ((self.project / "a", CHECKED), (self.outside, SECRET)):
            (place / "etc").mkdir(parents=True)
            (place / "etc" / "file").write_text(text)

    @property
    def source(self):
        """A directory in the project, as its owner sees it."""
        return self.project / "a" / "etc"

    def sandbox(self, stage):
        """One that may write to the project."""
        mount = {"source": str(self.project), "target": "/project", "writable": True}
        return stage.ready(mounts=[mount])

    def attack(self, stage, box):
        script = f"mv /project/a /project/o && ln -s {self.outside} /project/a"
        assert stage.runs(box, "sh", "-c", script) == 0


@contextlib.contextmanager
def staged(directory, daemon=NativeDaemon, **options):
    stage = NativeStage(directory, daemon=daemon, **options)
    try:
        yield stage
    finally:
        stage.close()


@pytest.fixture(name="ground")
def fixture_ground(tmp_path):
    return Ground(tmp_path / "ground")


@pytest.fixture(name="stage")
def fixture_stage(tmp_path):
    with staged(tmp_path / "d") as stage:
        yield stage


@pytest.fixture(name="both")
def fixture_both(tmp_path):
    """both(): a daemon that follows what it finds, then ours; and what becomes of an attack."""

    def both():
        for daemon, held in ((UnwalkedDaemon, False), (NativeDaemon, True)):
            with staged(tmp_path / daemon.__name__, daemon) as stage:
                yield stage, Ground(tmp_path / f"{daemon.__name__}-ground"), held

    return both


def given(kind, source, **spec):
    """A spec with that as a mount or as a copy, at /in."""
    one = {"source": str(source), "target": "/in"}
    return spec | ({"mounts": [one]} if kind == "mount" else {"copies": [one]})


def settled(stage, box):
    """Its state, once that is one that lasts."""

    def lasts():
        state = state_name(stage.client.get(box).state)
        return state if state in ("READY", "FAILED", "STOPPED") else None

    return wait_for(lasts, "it has come to something", WAIT_S)


def outcome(stage, path="/in/file", **spec):
    """What a new sandbox has in that file, or why there is no sandbox."""
    box = unique("box")
    try:
        stage.client.create(box, image=stage.image, **spec)
    except grpc.RpcError as error:
        return refusal_of(error).message
    if settled(stage, box) == "FAILED":
        return stage.client.get(box).error_message
    text = read(stage, box, path)
    stage.client.deleted(box)
    return text


def read(stage, box, path):
    return said(stage, stage.client.run(box, "sh", "-c", f"cat {path}"))


def judge(ground, held, text):
    """Our daemon names the symlink and why; the other one gives away what nobody may have."""
    if held:
        assert REFUSED in text and str(ground.project / "a") in text
    else:
        assert text == SECRET


@pytest.mark.parametrize("kind", ["mount", "copy"])
def test_symlink_that_a_sandbox_made_leads_no_source_astray(both, kind):
    for stage, ground, held in both():
        box = ground.sandbox(stage)
        assert outcome(stage, **given(kind, ground.source)) == CHECKED
        ground.attack(stage, box)
        judge(ground, held, outcome(stage, **given(kind, ground.source)))


def test_symlink_that_a_sandbox_made_leads_no_tool_astray(both):
    for stage, ground, held in both():
        cache = stage.daemon.place.home / ".cache"
        (cache / "uv").mkdir(parents=True)
        ground.project = cache
        box = ground.sandbox(stage)
        script = f"rmdir /project/uv && ln -s {ground.outside} /project/uv"
        assert stage.runs(box, "sh", "-c", script) == 0
        text = outcome(stage, path="~/.cache/uv/etc/file", builtin_tools=["uv"])
        if held:
            assert REFUSED in text and "'uv'" in text and str(cache / "uv") in text
        else:
            assert text == SECRET


def test_symlink_that_a_sandbox_made_leads_no_resume_astray(both):
    for stage, ground, held in both():
        writer, other = ground.sandbox(stage), stage.ready(**given("mount", ground.source))
        assert read(stage, other, "/in/file") == CHECKED
        stage.client.box.StopSandbox(sandbox_id=other)
        stops(stage, other)
        ground.attack(stage, writer)
        stage.client.box.ResumeSandbox(sandbox_id=other)
        resumed = awaited_resume(stage, other)
        judge(ground, held, read(stage, other, "/in/file") if resumed is True else resumed)


def stops(stage, box):
    wait_for(lambda: state_name(stage.client.get(box).state) == "STOPPED", "it stops", WAIT_S)


def awaited_resume(stage, box):
    """True: it runs; a text: why it does not."""

    def come_to():
        handle = stage.client.get(box)
        state = state_name(handle.state)
        if state == "READY":
            return True
        return handle.error_message if state in ("STOPPED", "FAILED") else None

    return wait_for(come_to, "it has come to something", WAIT_S)


def test_last_part_that_changes_between_check_and_mount_changes_nothing(tmp_path, ground):
    """The other way round, too: what is mounted is what was checked, wherever it is by then."""
    init = UnguardedInit(tmp_path / "init")
    with staged(tmp_path / "d", config={"init": init.program}) as stage:
        store = stage.daemon.place.data / "store"
        init.swap(ground.source, ground.outside / "etc")
        init.leave_out("sources")
        assert outcome(stage, **given("mount", ground.source)) == SECRET
        assert (ground.source / "file").read_text() == SECRET
        init.swap(ground.source, ground.outside / "etc")
        init.leave_out("")
        assert outcome(stage, **given("mount", ground.outside / "etc")) == CHECKED
        assert (ground.source / "file").read_text() == CHECKED
        # And by a symlink to what is the daemon's own.
        (ground.project / "link").symlink_to(store)
        init.swap(ground.source, ground.project / "link")
        assert outcome(stage, **given("mount", ground.source)) == CHECKED
        init.leave_out("sources")
        (ground.project / "dir").mkdir()
        (ground.project / "other").symlink_to(store)
        init.swap(ground.project / "dir", ground.project / "other")
        mount = given("mount", ground.project / "dir")
        assert outcome(stage, path="/in/data.mdb >/dev/null && echo store", **mount) == "store\n"


def test_symlinks_of_a_sandbox_are_known_after_a_crash_and_when_it_is_gone(tmp_path, ground):
    with staged(tmp_path / "d", sandbox={"cleanup_ttl": "1ms"}) as stage:
        ground.attack(stage, box := ground.sandbox(stage))
        stage.daemon.restart()
        stage.connect()
        judge(ground, True, outcome(stage, **given("mount", ground.source)))
        stage.client.deleted(box)

        def is_purged():
            with contextlib.suppress(grpc.RpcError):
                return not stage.client.get(box)
            return True

        wait_for(is_purged, "nothing is known of it", WAIT_S)
        stage.daemon.restart()
        stage.connect()
        for kind in ("mount", "copy"):
            judge(ground, True, outcome(stage, **given(kind, ground.source)))


def test_resume_tells_of_a_source_that_is_another_file_and_of_no_other(stage, ground):
    saved, kept = ground.source / "file", ground.outside / "etc"
    mounts = [
        {"source": str(saved), "target": "/saved"},
        {"source": str(kept), "target": "/kept"},
    ]
    box = stage.ready(mounts=mounts)

    def resume():
        stage.client.box.StopSandbox(sandbox_id=box)
        stops(stage, box)
        stage.client.box.ResumeSandbox(sandbox_id=box)
        assert awaited_resume(stage, box) is True

    def told():
        return [line for line in stage.daemon.log().splitlines() if "event=source.changed" in line]

    resume()
    assert told() == []
    new = saved.with_name("new")
    new.write_text("as editors save")
    new.rename(saved)
    resume()
    assert read(stage, box, "/saved") == "as editors save"
    (line,) = told()
    assert box in line and str(saved) in line and "target=/saved" in line


def test_sources_that_change_places_all_the_time_are_what_was_checked_or_refused(stage, ground):
    """Three processes in a sandbox: a directory on the way, the last part, and the file itself each
    are what they are half of the time, and a symlink the other half."""
    private = stage.daemon.place.data
    (ground.project / "last").mkdir()
    (ground.project / "last" / "file").write_text(CHECKED)
    (ground.project / "one").write_text(CHECKED)
    box = ground.sandbox(stage)
    links = {"a": ground.outside, "last": private, "one": ground.outside / "etc" / "file"}
    for name, text in links.items():
        assert stage.runs(box, "ln", "-s", str(text), f"/project/{name}-link") == 0
        pair = f"/project/{name} /project/{name}-link"
        stage.client.start(box, "/probe", "swap", pair)
    seen = {"checked": 0, "refused": 0}
    for i in range(SWAPS):
        name, path = (
            (ground.source, "/in/file"),
            (ground.project / "last", "/in/file || ls -a /in"),
            (ground.project / "one", "/in"),
        )[i % 3]
        kind = "mount" if i % 2 or i % 3 == 2 else "copy"
        text = outcome(stage, path=path, **given(kind, name, network=agbox().NETWORK_MODE_NONE))
        if text == CHECKED:
            seen["checked"] += 1
        else:
            assert "symlink" in text or "belongs to the daemon" in text, text
            seen["refused"] += 1
    assert all(seen.values()), f"the places did not change: {seen}"
