"""Ping, one by one, while a client repeatedly lists 10,000 sandboxes: 99.9th percentile."""

import subprocess

from daemon import Ours, create, ping_p999, started, tools

UNIT = "us"
BAR = None


def setup(bench):
    free, busy = started(Ours(bench)), started(Ours(bench))
    create(bench, busy, 10000)
    program, descriptors = tools(bench.root, bench.build)
    lister = [program, "--insecure", "--protoset", descriptors, "-c", 1, "-z", "1h"]
    lister += ["--call", "agbox.v1.SandboxService.ListSandboxes", f"unix://{busy.socket}"]
    process = subprocess.Popen([str(word) for word in lister], stdout=subprocess.DEVNULL)
    bench.defer(process.wait)
    bench.defer(process.kill)

    return (
        lambda seconds: ping_p999(bench, busy, seconds),
        lambda seconds: ping_p999(bench, free, seconds),
    )
