"""bench/run lists, measures, judges and prints figures. BENCH_BUILD is our build directory."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KEYS = ["figure", "ours", "peer", "unit", "ratio", "bar", "ok"]

FIGURE = '''"""A figure made for this test."""

UNIT = "things/s"
BAR = {bar!r}


def setup(bench):
    ours, peer = iter({ours!r}), iter({peer!r})
    return (lambda seconds: next(ours)), {peer!r} and (lambda seconds: next(peer))
'''


def bench(*arguments):
    done = subprocess.run([ROOT / "bench/run", *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def measured(tmp_path):
    """Measures a figure with those values for its rounds; gives the status and the object."""

    def measure(ours, peer=None, bar=None):
        text = FIGURE.format(ours=ours, peer=peer or [], bar=bar)
        (tmp_path / "made.py").write_text(text)
        status, output, _ = bench("--figures", tmp_path, "--quick", "--json")
        return status, json.loads(output)

    return measure


def test_list_names_each_figure_with_one_line():
    status, output, _ = bench("--list")
    names = [line.split()[0] for line in output.splitlines()]
    assert status == 0
    assert names == sorted(path.stem for path in (ROOT / "bench/figures").glob("*.py"))
    assert all(len(line.split()) > 3 for line in output.splitlines())


def test_an_unknown_figure_is_refused_with_the_names_that_exist():
    status, output, errors = bench("no_such_figure")
    assert (status, output) == (2, "")
    assert "no figure 'no_such_figure'" in errors
    assert "msgpack_decode" in errors


def test_a_build_that_lacks_the_program_says_what_to_do(tmp_path):
    status, _, errors = bench("--quick", "--build", tmp_path, "msgpack_decode")
    assert status == 2
    assert "make bench" in errors


def test_the_median_of_the_rounds_counts(measured):
    status, result = measured([1, 30, 20], [10, 99, 1], "ratio >= 2")
    assert list(result) == KEYS
    assert (result["ours"], result["peer"], result["ratio"]) == (20, 10, 2)
    assert (status, result["ok"]) == (0, True)


def test_a_missed_bar_is_not_ok_and_shows_in_the_exit_status(measured):
    status, result = measured([1, 1, 1], [1, 1, 1], "ratio >= 1, ours <= 0.5")
    assert (status, result["ok"]) == (1, False)


def test_without_a_peer_and_a_bar_there_is_no_verdict(measured):
    status, result = measured([3, 3, 3])
    assert status == 0
    assert [result[key] for key in ("peer", "ratio", "bar", "ok")] == [None] * 4


def test_a_codec_figure_is_measured_beside_its_peer():
    build = os.environ["BENCH_BUILD"]
    status, output, errors = bench("--quick", "--json", "--build", build, "msgpack_decode")
    assert status in (0, 1), errors  # the bar is for release builds
    result = json.loads(output)
    assert list(result) == KEYS
    assert result["figure"] == "msgpack_decode"
    assert result["ours"] > 0 and result["peer"] > 0
