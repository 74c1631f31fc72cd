"""Pulls images from a real registry into the store."""

import base64
import json
import os
import platform
import subprocess
import time
from pathlib import Path

import pytest
from agxtest import images
from agxtest.docker_registry import (
    PASSWORD,
    USER,
    BreakingLine,
    DockerRegistry,
    TokenServer,
    digest,
)

pytestmark = pytest.mark.deadline(120)

DRIVER = os.environ["PULL_DRIVER"]
LAYER_BYTES = 3_000_000
HERE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]

# Codes of gRPC.
NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION, DATA_LOSS = 5, 7, 9, 15


@pytest.fixture(name="registry")
def fixture_registry(tmp_path):
    registry = DockerRegistry(tmp_path)
    yield registry
    registry.close()


def layer(name, size=100):
    """A tar with one file that cannot be compressed."""
    tree = images.Tree()
    tree.file(name, os.urandom(size))
    return tree.finish()


class Result:
    """The driver's result for one image."""

    def __init__(self, line):
        words = line.split(" ")
        self.line = line
        self.got = words[0] == "got"
        self.code = 0 if self.got else int(words[2])
        self.layers = [Path(word) for word in words[3:]] if self.got else []


def start(tmp_path, *refs):
    command = [DRIVER, tmp_path / "store", tmp_path, *refs]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def pull(tmp_path, *refs):
    """Pulls the refs and returns the results in their order."""
    driver = start(tmp_path, *refs)
    lines = driver.communicate()[0].splitlines()
    assert driver.returncode == 0
    ends = [line for line in lines if not line.startswith("progress")]
    results = {line.split(" ")[1]: Result(line) for line in ends}
    assert not any((tmp_path / "store/tmp").iterdir())
    return [results[ref] for ref in refs]


def files(result):
    """Names of the files in the layers, the top one first."""
    return [[path.name for path in place.iterdir()] for place in result.layers]


def set_credentials(tmp_path, host, password=PASSWORD):
    auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": auth}}}))


def test_an_image_is_pulled_by_anybody(registry, tmp_path):
    registry.push("team/tool", "1", layer("a"), layer("b"), layer("c", LAYER_BYTES), layer("d"))
    ref = f"{registry.host}/team/tool:1"
    (result,) = pull(tmp_path, ref)
    assert result.got, result.line
    assert files(result) == [["d"], ["c"], ["b"], ["a"]]
    (again,) = pull(tmp_path, ref)
    assert again.line == result.line


def test_what_is_not_there_is_not_found(registry, tmp_path):
    registry.push("tool", "1", layer("a"))
    missing, other = pull(tmp_path, f"{registry.host}/tool:2", f"{registry.host}/other:1")
    assert missing.code == other.code == NOT_FOUND
    assert "manifest unknown" in missing.line


def test_a_registry_with_a_password_wants_credentials(tmp_path):
    registry = DockerRegistry(tmp_path, password=True)
    ref = f"{registry.host}/tool:1"
    try:
        registry.push("tool", "1", layer("a"))
        (result,) = pull(tmp_path, ref)
        assert result.code == PERMISSION_DENIED
        assert "there are none for it" in result.line
        set_credentials(tmp_path, registry.host, password="wrong")
        (result,) = pull(tmp_path, ref)
        assert result.code == PERMISSION_DENIED
        assert f"does not accept the credentials of '{USER}'" in result.line
        set_credentials(tmp_path, registry.host)
        (result,) = pull(tmp_path, ref)
        assert result.got, result.line
    finally:
        registry.close()


@pytest.mark.parametrize("anonymous", [True, False])
def test_a_registry_with_tokens_gets_them(tmp_path, anonymous):
    tokens = TokenServer(tmp_path, anonymous)
    registry = DockerRegistry(tmp_path, tokens=tokens)
    ref = f"{registry.host}/team/tool:1"
    try:
        registry.push("team/tool", "1", layer("a"), layer("b"))
        if not anonymous:
            (result,) = pull(tmp_path, ref)
            assert result.code == PERMISSION_DENIED
            assert "who are you" in result.line
            set_credentials(tmp_path, registry.host)
        tokens.asked.clear()
        (result,) = pull(tmp_path, ref)
        assert result.got, result.line
        # One for the whole pull.
        assert tokens.asked == [(None if anonymous else USER, "repository:team/tool:pull")]
    finally:
        registry.close()
        tokens.close()


def test_a_pull_over_a_line_that_breaks_goes_on(registry, tmp_path):
    registry.push("tool", "1", layer("a", LAYER_BYTES), layer("b", LAYER_BYTES))
    line = BreakingLine(registry.port, after=400_000, times=8)
    (result,) = pull(tmp_path, f"{line.host}/tool:1")
    line.close()
    assert result.got, result.line
    assert line.broken == 8
    # The received bytes were not requested again.
    assert line.passed < 2 * LAYER_BYTES + 9 * 64_000


def test_a_pull_that_is_killed_leaves_nothing_and_can_be_done_again(registry, tmp_path):
    registry.push("tool", "1", layer("a"), layer("b", LAYER_BYTES))
    line = BreakingLine(registry.port, after=400_000, times=1, hold=True)
    driver = start(tmp_path, f"{line.host}/tool:1")
    while line.broken == 0:
        time.sleep(0.01)
    driver.kill()
    driver.communicate()
    line.close()
    assert not (tmp_path / "store/refs.json").exists()
    (result,) = pull(tmp_path, f"{registry.host}/tool:1")
    assert result.got, result.line
    assert files(result) == [["b"], ["a"]]


def test_a_blob_that_was_changed_in_the_registry_is_refused(registry, tmp_path):
    changed = layer("b", LAYER_BYTES)
    manifest = registry.push("tool", "1", layer("a"), changed)
    name = manifest["layers"][1]["digest"]
    place = registry.blob(name)
    right = place.read_bytes()
    place.write_bytes(right[:1000] + bytes([right[1000] ^ 1]) + right[1001:])
    (result,) = pull(tmp_path, f"{registry.host}/tool:1")
    assert result.code == DATA_LOSS, result.line
    assert name in result.line
    assert not (tmp_path / "store/layers" / digest(changed).replace(":", "-")).exists()
    place.write_bytes(right)
    (result,) = pull(tmp_path, f"{registry.host}/tool:1")
    assert result.got, result.line


def test_a_configuration_that_was_changed_in_the_registry_is_refused(registry, tmp_path):
    manifest = registry.push("tool", "1", layer("a"))
    config = registry.blob(manifest["config"]["digest"])
    config.write_bytes(config.read_bytes().replace(b"linux", b"linus"))
    (result,) = pull(tmp_path, f"{registry.host}/tool:1")
    assert result.code == DATA_LOSS, result.line
    assert "configuration" in result.line


def test_of_an_index_this_machine_s_image_is_taken(registry, tmp_path):
    mine = registry.push("tool", "mine", layer("mine"))
    other = registry.push("tool", "other", layer("other"))
    registry.push_index(
        "tool", "all", {("windows", HERE): other, ("linux", HERE): mine, ("linux", "mips"): other}
    )
    registry.push_index("tool", "none", {("windows", HERE): other, ("linux", "mips"): other})
    result, none = pull(tmp_path, f"{registry.host}/tool:all", f"{registry.host}/tool:none")
    assert files(result) == [["mine"]]
    assert none.code == FAILED_PRECONDITION
    assert f"none for linux/{HERE}, only for: windows/{HERE}, linux/mips" in none.line


def test_pulls_at_the_same_time_fetch_a_common_layer_once(registry, tmp_path):
    base = layer("base", LAYER_BYTES)
    line = BreakingLine(registry.port, after=0, times=0)
    line.after = 1 << 60
    for number in range(8):
        registry.push(f"tool{number}", "1", base, layer(f"own{number}"))
    results = pull(tmp_path, *[f"{line.host}/tool{number}:1" for number in range(8)])
    line.close()
    assert all(result.got for result in results)
    assert {result.layers[-1] for result in results} == {results[0].layers[-1]}
    assert line.passed < 2 * LAYER_BYTES
