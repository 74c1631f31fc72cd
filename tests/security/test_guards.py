"""Each guard alone: it stops its attempts in a native sandbox, without the other guards."""

import re
from pathlib import Path

import pytest
from escapes import ATTEMPTS
from guards import GUARDS, GuardedStage
from inside import neighbour

GUARDED = [a for a in ATTEMPTS if a.guards]
# test_escape_guest.py makes the attempts that need a feature which this kernel lacks.
POSSIBLE = [a for a in GUARDED if not a.needs or Path(a.needs).exists()]
SECURITY = Path(__file__).parents[2] / "SECURITY.md"


@pytest.fixture(name="guarded", scope="module")
def fixture_guarded(tmp_path_factory, world):
    stage = GuardedStage(tmp_path_factory.mktemp("guarded"), world)
    world.names |= neighbour(stage)
    yield stage
    stage.close()


@pytest.mark.parametrize("attempt", POSSIBLE, ids=str)
def test_attempt_succeeds_without_its_guards_and_each_of_them_holds_it(guarded, attempt):
    """All other guards stay in place."""
    out, output = guarded.succeeds(attempt, attempt.guards)
    assert out, f"something else holds it, too: {output}"
    for guard in attempt.guards:
        held, output = guarded.is_held(attempt, frozenset(attempt.guards) - {guard})
        assert held, f"{guard} alone does not hold it: {output}"


def test_the_table_of_guards_in_security_md_is_the_one_that_is_tested():
    rows = re.findall(r"^\| ((?:`[a-z-]+`(?:, )?)+) \| ((?:`[\w-]+`(?:, )?)+) \|$", table(), re.M)
    told = {
        attempt: tuple(re.findall(r"`([^`]+)`", guards))
        for guards, attempts in rows
        for attempt in re.findall(r"`([^`]+)`", attempts)
    }
    assert told == {str(a): a.guards for a in GUARDED}
    assert {g for guards in told.values() for g in guards} == set(GUARDS)


def table():
    """The section of SECURITY.md about guards."""
    _, _, rest = SECURITY.read_text().partition("### Which guard holds it")
    return rest.partition("\n#")[0]
