"""Attempts that need features which the host's kernel may lack, on Debian's kernel in emulation.

As on the host, an attempt succeeds unguarded, and in a sandbox without the guards that stop it. A
complete sandbox stops it, and so does each of its guards alone. The guest has no Python: its shell
runs the daemon, the client and unguard.c, and prints the result of each.
"""

import os
import re
import shutil

import pytest
from agxtest import guest
from escapes import ATTEMPTS, Attempt
from guards import left_out
from inside import IMAGE, LEFT, tree

# Some other attempts too, because this kernel differs in more: it has control groups of version 2.
SAMPLE = ("mount", "bpf", "keyctl", "io-uring", "core-pattern", "cgroup", "ptrace")
SAMPLE += ("left-chmod", "left-openat", "left-swapped-link", "left-capabilities")
LEFT_OUTSIDE = "/data/left"
CHOSEN = [a for a in ATTEMPTS if a.needs or str(a) in SAMPLE]

START = """
export HOME=/data XDG_RUNTIME_DIR=/run XDG_DATA_HOME=/data AGENTIX_AUTOSTART=0
mkdir /data/init {left}
cp {unguard} /data/init/agentix-init
ln -s {init} /data/init/real
echo 'native: {{init: /data/init/agentix-init, ready: 1}}' >/data/config.yaml
{agentixd} --foreground --backend native --config /data/config.yaml >/data/log 2>&1 &
until {agentix} image import /images/probe.tar --name {image} >>/data/log 2>&1; do sleep 1; done
unguarded() {{  # LABEL NAME ARGUMENT
    echo "@ $1 unguarded $(unshare -m probe "$2" "$3" | tail -n 1)"
}}
made() {{  # SANDBOX MOUNT GUARD...
    each=$1 mount=$2
    shift 2
    echo -n "$*" >/data/init/off
    {agentix} sandbox create --image {image} --sandbox-id "$each" $mount >>/data/log 2>&1
}}
inside() {{  # SANDBOX LABEL WHAT NAME ARGUMENT
    echo "@ $2 $3 $({agentix} exec run "$1" -- /probe "$4" "$5" | tee -a /data/log | tail -n 1)"
}}
gone() {{
    {agentix} sandbox delete "$1" >>/data/log 2>&1
}}
"""


def script():
    """The shell script of the guest. A sandbox that stops its attempts serves several of them."""
    lines, kept = [], {}

    def made(name, attempt, off):
        mount = f"--mount={LEFT_OUTSIDE}:{LEFT}:writable" if attempt.writes else ""
        lines.append(f"made {name} '{mount}' {left_out(off)}")

    def inside(name, attempt, what):
        argument = attempt.argument.format(left=LEFT)
        lines.append(f"inside {name} {attempt} {what} {attempt.name} '{argument}'")

    def held(attempt, off, what):
        kind = off, attempt.writes
        if kind not in kept:
            kept[kind] = f"kept-{len(kept)}"
            made(kept[kind], attempt, off)
        inside(kept[kind], attempt, what)

    for a in CHOSEN:
        lines.append(f"unguarded {a} {a.name} '{a.argument.format(left=LEFT_OUTSIDE)}'")
        held(a, frozenset(), "whole")
        made(f"open-{a}", a, a.guards)
        inside(f"open-{a}", a, "open")
        lines.append(f"gone open-{a}")
        for each in a.guards:
            held(a, frozenset(a.guards) - {each}, each)
    inside(kept[frozenset(), True], Attempt("suid-calls", "{left}"), "whole")
    return "\n".join(lines) + "\ncat /data/log\n"


@pytest.fixture(name="said", scope="module")
def fixture_said(tmp_path_factory):
    directory = tmp_path_factory.mktemp("guest")
    archive = directory / "probe.tar"
    archive.write_bytes(tree())
    # Our programs find each other by the paths that they have on this machine.
    files = {path: path for path in os.environ["GUEST_FILES"].split(":")}
    files["/images/probe.tar"] = archive
    files["/bin/probe"] = os.environ["AGX_PROBE"]
    start = START.format(
        image=IMAGE,
        left=LEFT_OUTSIDE,
        unguard=os.environ["AGX_UNGUARD"],
        init=os.environ["AGENTIX_INIT"],
        agentix=os.environ["AGENTIX"],
        agentixd=os.environ["AGENTIXD"],
    )
    try:
        machine = guest.Guest(directory, files=files)
        output = machine.run({"attempts": start + script()})["attempts"].output
    except guest.CannotRun as why:
        pytest.skip(str(why))
    finally:
        shutil.rmtree(directory)  # pytest would keep it, and it is large
    print(output)
    told = {(m[0], m[1]): m[2] for m in re.findall(r"^@ (\S+) (\S+) (.*)$", output, re.M)}
    return told | {"log": output}


@pytest.mark.parametrize("attempt", CHOSEN, ids=str)
def test_attempt_is_held_by_its_guards_on_another_kernel(said, attempt):
    expected = {"unguarded": "OUT", "whole": "HELD", "open": "OUT"}
    expected |= dict.fromkeys(attempt.guards, "HELD")
    assert {what: said.get((str(attempt), what)) for what in expected} == expected


def test_calls_that_set_setuid_bits_do_what_was_asked_on_another_kernel(said):
    """In the sandbox's own files."""
    assert said["suid-calls", "whole"] == "OUT", said["log"]
