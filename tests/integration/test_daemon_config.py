"""agentixd's configuration: files, options, --print-config, and the documents about it."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from agxtest.daemon import PROGRAM, TIMEOUT_S, Place

PACKAGING = Path(os.environ.get("PACKAGING", "packaging"))
MAN = Path(os.environ.get("MAN", "docs/man"))


@pytest.fixture(name="place")
def fixture_place(deadline):
    place = Place()
    yield place
    place.close()


def run(place, *options, env=None):
    return subprocess.run(
        [PROGRAM, *map(str, options)],
        env=env or place.env(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def printed(place, *options):
    done = run(place, "--print-config", *options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def keys_of(text):
    """`section.name: value` of each key in YAML as --print-config writes it."""
    keys, section = {}, ""
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if line.startswith("#") or not colon or line.strip().startswith("#"):
            continue
        if not value and not line.startswith(" "):
            section = name + "."
        elif line.startswith("  "):
            keys[section + name.strip()] = value.strip()
        else:
            keys[name] = value.strip()
    return keys


def test_help_and_version_need_nothing():
    for option, words in (("--help", "usage: agentixd"), ("--version", "agentixd ")):
        done = subprocess.run(
            [PROGRAM, option],
            env={},
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(words)


@pytest.mark.parametrize("options", [["--nonsense"], ["word"], ["--config"]])
def test_wrong_options_are_told_with_status_2(place, options):
    done = run(place, *options)
    assert done.returncode == 2 and "--help" in done.stderr


def test_the_printed_configuration_reads_back_as_the_same(place):
    place.configure(
        "backend: 'fake:/a b'\nallow_uids: [5]\nlog: {level: debug, keep: 9}\n"
        "sandbox: {idle_ttl: 90s}\nstore: {grouping: false}\n"
    )
    first = printed(place)
    assert '"fake:/a b"' in first and "idle_ttl: 1m30s" in first and "grouping: false" in first
    again = place.top / "again.yaml"
    again.write_text(first)
    assert printed(place, "--config", again) == first


def test_options_win_over_the_file(place):
    place.configure("backend: native\ncompat: none\n")
    text = printed(place, "--backend", "fake:/w", "--compat", "agbox")
    assert 'backend: "fake:/w"' in text and "compat: agbox" in text


def test_printing_and_checking_touch_nothing(place):
    before = sorted(place.top.rglob("*"))
    printed(place)
    assert run(place, "--check-config").returncode == 0
    assert sorted(place.top.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("log:\n  level: loud\n", ["line 2", "'log.level'", "'loud'", "debug, info, warn, error"]),
        ("a: 1\n", ["line 1", "'a'", "backend"]),
        ("sandbox:\n\n  look: 5\n", ["line 3", "'sandbox.look'", "'5'", "a time"]),
        ("limits: {message: 1t}\n", ["line 1", "'limits.message'", "256m"]),
        ("log: [\n", ["line"]),
        ("shutdown: {grace: 4s, limit: 1s}\n", ["'shutdown.grace'", "'shutdown.limit'"]),
    ],
)
@pytest.mark.parametrize("option", ["--check-config", "--print-config", "--foreground"])
def test_a_wrong_file_is_told_with_line_and_key_and_status_2(place, text, words, option):
    place.configure(text)
    done = run(place, option)
    assert done.returncode == 2 and done.stdout == ""
    for word in [*words, "agentixd: "]:
        assert word in done.stderr
    if "shutdown" not in text:
        assert str(place.config) in done.stderr
    assert done.stderr.count("\n") == 1
    assert not place.run.exists()


def test_the_default_is_native_and_for_compatibility_docker(place):
    assert 'backend: "native"' in printed(place)
    assert 'backend: "native"' in printed(place, "--backend", "")
    assert 'backend: "docker"' in printed(place, "--compat", "agbox")
    assert 'backend: "fake:/x"' in printed(place, "--compat", "agbox", "--backend", "fake:/x")


def test_a_file_that_was_named_must_be_there(place):
    done = run(place, "--config", place.top / "none.yaml", "--check-config")
    assert done.returncode == 2 and "none.yaml" in done.stderr
    assert run(place, "--compat", "docker", "--check-config").returncode == 2


def test_a_file_that_is_too_large_is_refused(place):
    place.configure("# " + "x" * (2 << 20))
    done = run(place, "--check-config")
    assert done.returncode == 2 and str(place.config) in done.stderr


def test_the_example_file_has_every_key_with_its_default(place):
    example = (PACKAGING / "config.yaml").read_text()
    commented = re.sub(r"^(\s*)#(\s*[a-z_]+:( |$))", r"\1\2", example, flags=re.M)
    assert keys_of(commented) == keys_of(printed(place))
    assert printed(place, "--config", PACKAGING / "config.yaml") == printed(place)


def test_the_manual_page_has_every_key_with_its_default(place):
    page = (MAN / "agentixd.yaml.5").read_text()
    documented = {}
    for item in page.split(".It Cm ")[1:]:
        key, default = item.split("\n", 1)[0], re.search(r"^Default:\n\.Li (.*) \.$", item, re.M)
        documented[key] = default[1]
    assert sorted(documented) == sorted(keys_of(printed(place)))
    lines, section = [], ""
    for unset in ("docker.init", "native.init", "images.insecure_registries"):
        assert documented.pop(unset) == "none"
    for key, default in documented.items():
        front, _, name = key.rpartition(".")
        if front != section:
            lines.append(f"{front}:")
            section = front
        lines.append(f"{'  ' if front else ''}{name}: {default}")
    place.configure("\n".join(lines) + "\n")
    assert printed(place) == printed(place, "--config", "/dev/null")
