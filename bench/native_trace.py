"""usage: bench/native_trace.py [--build DIR] [--count N] [--at-once N] [--calls]

Shows where the time of a native create goes. It prints the daemon's stages from the request to
READY, as its log reports them: the median of all creates, and the quickest create, which shows a
machine that has nothing else to do. Then it prints the processor time of a life (create, READY,
delete) by thread. With --calls it also prints the system calls of one create that took longest,
under strace, which slows each call by some 30 us. It needs root. The daemon runs in its own
namespaces (tests/support/docker_box.py).
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/support/py")]

from agxtest.protos import agbox as api  # noqa: E402 (the path comes first)
from measure import Bench  # noqa: E402
from native_driver import NativeDaemon, NativeService, NativeSide  # noqa: E402

IMAGE = "agx-busybox:1"
CALL = re.compile(r"^(\d+) +[\d.]+ (\w+)\(.*<([\d.]+)>$")
RESUMED = re.compile(r"^(\d+) +[\d.]+ <\.\.\. (\w+) resumed>.*<([\d.]+)>$")
# Calls that wait for another thread or process.
WAITS = {"epoll_wait", "futex", "recvmsg", "recvfrom", "wait4", "waitid", "read"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[2])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--count", type=int, default=100, help="lives")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--calls", action="store_true", help="one create under strace")
    return parser.parse_args()


def enter_box():
    """Executes this program again, in a box of namespaces."""
    python, box = ROOT / "build/venv/bin/python", ROOT / "tests/support/docker_box.py"
    words = [python, box, "--no-engine", pathlib.Path(__file__).resolve(), *sys.argv[1:]]
    os.execv(python, [str(word) for word in words])


class TalkativeDaemon(NativeDaemon):
    """A daemon that logs each state of its operations. Its log is a pipe, and each line gets its
    time on arrival, because the times in the lines have only milliseconds."""

    CONFIG = NativeDaemon.CONFIG.replace("level: warn", "level: debug, format: json")

    def __init__(self, bench):
        super().__init__(bench)
        self.moments = collections.defaultdict(list)
        os.mkfifo(self.home / "log")
        lines = os.fdopen(os.open(self.home / "log", os.O_RDWR), "rb")
        threading.Thread(target=self.read, args=(lines,), daemon=True).start()

    def read(self, lines):
        for line in lines:
            now = time.monotonic()
            if b"op.state" in line and b"native-up" in line:
                fields = json.loads(line)
                self.moments[fields["op"]].append((fields["to"], now))


def trace_one(target, name):
    """The seconds of each stage of one create."""
    began = time.monotonic()
    target.client.create(name, image=IMAGE)
    accepted = time.monotonic()
    target.until(name, api().SANDBOX_READY)
    done = time.monotonic()
    target.delete(name)
    moments = target.daemon.moments.pop(name)
    stages = {"accepted (client)": accepted - began}
    for (state, since), (_, until) in itertools.pairwise(moments):
        stages[f"state {state}"] = until - since
    stages["stored, told (client)"] = done - moments[-1][1]
    return stages | {"whole (client)": done - began}


def trace_creates(target, names):
    creates = [trace_one(target, name) for name in names]
    quickest = min(creates, key=lambda stages: stages["whole (client)"])
    print(f"stages of {len(creates)} creates, ms:       median  quickest")
    for stage, seconds in quickest.items():
        median = statistics.median(stages[stage] for stages in creates)
        print(f"  {stage:<28}{median * 1e3:10.2f}{seconds * 1e3:10.2f}")


def ticks(pid, since):
    """Milliseconds of processor time: with `since` 11 of a process and of its children that have
    ended, with 13 of these children only."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[since:15])) * 1000 / os.sysconf("SC_CLK_TCK")


def accounts(process):
    """Milliseconds of processor time of each thread, by its name, and of all children."""
    used, folder = collections.Counter(), pathlib.Path(f"/proc/{process.pid}")
    for task in (folder / "task").iterdir():
        name = (task / "comm").read_text().strip()
        used[name] += int((task / "schedstat").read_text().split()[0]) / 1e6
    used["children"] = ticks(process.pid, 13)
    for children in (folder / "task").glob("*/children"):
        used["children"] += sum(ticks(pid, 11) for pid in children.read_text().split())
    used["client"] = sum(os.times()[:4]) * 1000  # with the program that it starts
    return used


def account_lives(side, count, at_once):
    process = side.target.daemon.process
    before = accounts(process)
    rate = side.rate(count, at_once)
    time.sleep(1)  # the clean-up after a delete counts too
    used = accounts(process)
    used.subtract(before)
    print(f"processor time of a life, {at_once} at a time ({rate:.0f} a second)")
    for name, ms in used.most_common():
        if ms / count >= 0.01:
            print(f"  {name:<28}{ms / count:8.2f} ms")
    print(f"  {'all':<28}{sum(used.values()) / count:8.2f} ms")


def trace_calls(target, name):
    log = target.daemon.home / "strace"
    options = ["-f", "-ttt", "-T", "-o", log, "-p", target.daemon.process.pid]
    strace = subprocess.Popen(
        ["strace", *map(str, options)], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    strace.stderr.readline()  # "Process N attached"
    time.sleep(0.5)  # until strace has attached to all threads
    target.create(name)
    strace.terminate()
    strace.wait()
    target.delete(name)
    calls = collections.Counter()
    for line in log.read_text(errors="replace").splitlines():
        if (found := CALL.match(line) or RESUMED.match(line)) and found[2] not in WAITS:
            calls[found[2]] += float(found[3]) * 1e3
    print("calls of one create, all threads and processes (under strace)")
    for call, ms in calls.most_common(20):
        print(f"  {call:<28}{ms:8.2f} ms")


def main():
    options = arguments()
    if "AGX_BOX" not in os.environ:
        enter_box()
    bench = Bench(ROOT, options.build)
    try:
        daemon = TalkativeDaemon(bench)
        side = NativeSide(NativeService(daemon, IMAGE))
        bench.defer(side.end)
        daemon.load(IMAGE)
        for name in side.names(5):
            side.life_of(name)
        trace_creates(side.target, side.names(options.count))
        account_lives(side, options.count, options.at_once)
        if options.calls:
            trace_calls(side.target, side.names(1)[0])
    finally:
        bench.clean_up()


if __name__ == "__main__":
    main()
