"""A source cannot be replaced between its check and its mount in a native sandbox."""

import os
import shutil

import pytest
from sources import CHECKED, SECRET, Ground, given, outcome, staged

pytestmark = pytest.mark.deadline(300)


class UnguardedInit:
    """unguard.c in the place of agentix-init; at first no guard is off and no path is swapped."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir(parents=True)
        self.program = directory / "agentix-init"
        shutil.copy(os.environ["AGX_UNGUARD"], self.program)
        (directory / "real").symlink_to(os.environ["AGENTIX_INIT"])

    def swap(self, one, other):
        """Swaps two paths right before each start from now on."""
        (self.directory / "swap").write_text(f"{one}\n{other}")

    def leave_out(self, guard):
        (self.directory / "off").write_text(guard)


@pytest.fixture(name="ground")
def fixture_ground(tmp_path):
    return Ground(tmp_path / "ground")


def test_last_part_that_changes_between_check_and_mount_changes_nothing(tmp_path, ground):
    """The sandbox gets the checked directory, at whatever path it is then; the swap is tested in
    both directions."""
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
        # The same with a symlink to the daemon's own files.
        (ground.project / "link").symlink_to(store)
        init.swap(ground.source, ground.project / "link")
        assert outcome(stage, **given("mount", ground.source)) == CHECKED
        init.leave_out("sources")
        (ground.project / "dir").mkdir()
        (ground.project / "other").symlink_to(store)
        init.swap(ground.project / "dir", ground.project / "other")
        mount = given("mount", ground.project / "dir")
        assert outcome(stage, path="/in/data.mdb >/dev/null && echo store", **mount) == "store\n"
