"""Attempts to get out of a sandbox or to see too much; each succeeds without guards, and none in a
sandbox."""

import os
import signal
from pathlib import Path

import pytest
from escapes import ATTEMPTS, unguarded
from inside import PLACES, said

BACKEND = os.environ["AGX_BACKEND"]
MINE = [a for a in ATTEMPTS if BACKEND in a.backends]


@pytest.mark.parametrize("attempt", MINE, ids=str)
@pytest.mark.usefixtures("neighbour")
def test_attempt_is_held(request, stage, world, attempt):
    """The attempt must first succeed without guards; one that cannot succeed proves nothing."""
    if not attempt.needs or Path(attempt.needs).exists():
        status, output = unguarded(world, attempt)
        assert status == 0, f"it does not even succeed unguarded: {output}"
    box = request.getfixturevalue("writing_box" if attempt.writes else "box")
    run = stage.client.run(box, "/probe", attempt.name, world.argument(attempt, **PLACES))
    assert run.exit_code == 1, said(stage, run)


def test_signals_to_init_do_no_more_than_end_the_sandbox(stage):
    """Every signal except those that request its end; root of the sandbox may send these."""
    victim = stage.ready()
    asks = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT}
    numbers = " ".join(str(n) for n in range(1, 65) if n not in asks)
    run = stage.client.run(victim, "sh", "-c", f"for n in {numbers}; do kill -$n 1 || exit 3; done")
    assert run.exit_code == 0, said(stage, run)
    assert stage.runs(victim, "true") == 0
    stage.client.deleted(victim)


@pytest.mark.parametrize("attempt", [a for a in MINE if "suid" in a.guards], ids=str)
def test_bits_are_set_in_a_mount_that_allows_it(stage, allowing_box, world, attempt):
    """This shows that the guard stops these attempts elsewhere, also on an engine."""
    run = stage.client.run(allowing_box, "/probe", attempt.name, world.argument(attempt, **PLACES))
    assert run.exit_code == 0, said(stage, run)
