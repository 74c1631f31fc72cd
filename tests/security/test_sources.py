"""The daemon mounts and copies exactly the checked files, even if a sandbox changes the paths.

Each attack is first made on a daemon without the guard (unwalk.c), where it must succeed.
"""

import contextlib
import os

import grpc
import pytest
from agxtest.protos import agbox
from agxtest.server import wait_for
from sources import (
    BACKEND,
    CHECKED,
    REFUSED,
    SECRET,
    WAIT_S,
    Ground,
    awaited_resume,
    both,
    given,
    judge,
    outcome,
    read,
    staged,
    stops,
)

pytestmark = pytest.mark.deadline(300)

# The reasons for a refusal if the source was another file at a check.
REASONS = ("symlink", "belongs to the daemon", "the engine mounted something else")
# The number of sandboxes that are made while their sources change places.
SWAPS = int(os.environ.get("AGX_SWAPS", "40" if BACKEND == "native" else "12"))


@pytest.fixture(name="ground")
def fixture_ground(tmp_path):
    return Ground(tmp_path / "ground")


@pytest.fixture(name="stage")
def fixture_stage(tmp_path):
    with staged(tmp_path / "d") as stage:
        yield stage


@pytest.mark.parametrize("kind", ["mount", "copy"])
def test_symlink_that_a_sandbox_made_leads_no_source_astray(tmp_path, kind):
    for stage, ground, held in both(tmp_path):
        box = ground.sandbox(stage)
        assert outcome(stage, **given(kind, ground.source)) == CHECKED
        ground.attack(stage, box)
        judge(ground, held, outcome(stage, **given(kind, ground.source)))


def test_symlink_that_a_sandbox_made_leads_no_tool_astray(tmp_path):
    for stage, ground, held in both(tmp_path):
        uv = stage.daemon.place.home / ".local/share/uv"
        (uv / "python").mkdir(parents=True)
        ground.project = uv
        box = ground.sandbox(stage)
        script = f"rmdir /project/python && ln -s {ground.outside} /project/python"
        assert stage.runs(box, "sh", "-c", script) == 0
        text = outcome(stage, path=f"{uv}/python/etc/file", builtin_tools=["uv"])
        if held:
            assert REFUSED in text and "'uv'" in text and str(uv / "python") in text
        else:
            assert text == SECRET


def test_symlink_that_a_sandbox_made_leads_no_resume_astray(tmp_path):
    for stage, ground, held in both(tmp_path):
        writer, other = ground.sandbox(stage), stage.ready(**given("mount", ground.source))
        assert read(stage, other, "/in/file") == CHECKED
        stage.client.box.StopSandbox(sandbox_id=other)
        stops(stage, other)
        ground.attack(stage, writer)
        stage.client.box.ResumeSandbox(sandbox_id=other)
        resumed = awaited_resume(stage, other)
        judge(ground, held, read(stage, other, "/in/file") if resumed is True else resumed)


def test_symlinks_of_a_sandbox_are_known_after_a_crash_and_when_it_is_gone(tmp_path, ground):
    with staged(tmp_path / "d", sandbox={"cleanup_ttl": "1ms"}) as stage:
        ground.attack(stage, box := ground.sandbox(stage))
        stage.restart()
        judge(ground, True, outcome(stage, **given("mount", ground.source)))
        stage.client.deleted(box)

        def is_purged():
            with contextlib.suppress(grpc.RpcError):
                return not stage.client.get(box)
            return True

        wait_for(is_purged, "nothing is known of it", WAIT_S)
        stage.restart()
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
    """Three processes in a sandbox swap a directory on the path, the last part and the file itself
    with symlinks all the time; each is a symlink half of the time."""
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
            assert any(each in text for each in REASONS), text
            seen["refused"] += 1
    assert seen["refused"], "the places did not change"
    # An engine's mounts are checked four times, and at each check half of the sources are symlinks.
    assert seen["checked"] or BACKEND == "docker"
