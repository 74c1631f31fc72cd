"""usage: native_driver.py BUILD IMAGE

Works like bench/docker_driver.py, with the sides `native`, `runc`, `bwrap` and `docker`. `native`
answers two more questions:

    rate      sandboxes created and deleted per second, `at_once` at a time
    machine   bytes by which MemAvailable falls for each of `alive` sandboxes
"""

import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/support/py")]

from agxtest import images  # noqa: E402 (the path comes first)
from agxtest.protos import agbox as api  # noqa: E402
from daemon import Daemon, Ours  # noqa: E402
from docker_driver import IDLE, WAIT_SECONDS, Command, Service, Side, serve  # noqa: E402
from measure import Bench, BenchError, run  # noqa: E402


class NativeDaemon(Daemon):
    """Our daemon, with the native backend."""

    CONFIG = Ours.CONFIG

    def __init__(self, bench):
        options = ["--foreground", "--backend", "native"]
        super().__init__(bench, bench.program("src/daemon/agentixd"), options, self.CONFIG)
        self.socket = self.home / "run/agentix/agentixd.sock"
        bench.defer(self.stop)

    def stop(self):
        """Stops the daemon in order, so that it removes its mount of devices and control group."""
        if not self.process:
            return
        self.process.terminate()
        self.process.wait()
        instance = (self.home / "data/agentix/instance").read_text()[:8]
        left = sorted(map(str, pathlib.Path("/sys/fs/cgroup").glob(f"**/agentix-{instance}")))
        if left:
            raise BenchError(f"left behind: {', '.join(left)}")

    def load(self, image):
        """Imports an image with the same files as the engine's image of that name."""
        command = [self.bench.program("src/cli/agentix"), "image", "import", "-", "--name", image]
        tree = images.TREES[image.removeprefix("agx-").removesuffix(":1")][0]().finish()
        subprocess.run(
            [str(word) for word in command],
            input=tree,
            env=self.env | {"AGENTIX_SOCKET": str(self.socket)},
            check=True,
            capture_output=True,
        )


class NativeService(Service):
    """Waits as our command line does, with one call for each state. A stream of events would take
    the client twice the time, because grpcio reads it in a thread of its own."""

    def until(self, name, wanted):
        state = {
            api().SANDBOX_READY: api().SANDBOX_STATE_READY,
            api().SANDBOX_STOPPED: api().SANDBOX_STATE_STOPPED,
            api().SANDBOX_DELETED: api().SANDBOX_STATE_DELETED,
        }[wanted]
        states = [state, api().SANDBOX_STATE_FAILED]
        answer = self.client.control.WaitSandbox(
            seconds=WAIT_SECONDS, sandbox_id=name, states=states
        )
        if answer.sandbox.state != state:
            raise BenchError(f"sandbox '{name}' failed: {answer.sandbox.error_message}")


class NativeSide(Side):
    def rate(self, count, at_once):
        """Whole lives (create, READY, delete) per second, by a client that uses little CPU."""
        daemon, (prefix,) = self.target.daemon, self.names(1)
        command = [daemon.bench.program("bench/lives"), daemon.socket, self.target.image, prefix]
        return float(run([*command, str(count), str(at_once)]))

    def life_of(self, name):
        self.target.create(name)
        self.target.delete(name)

    def end(self):
        """Deletes all sandboxes, also of failed questions: control groups outlive the box."""
        known = self.target.client.box.ListSandboxes().sandboxes
        self.each("delete", [sandbox.sandbox_id for sandbox in known], 8)

    def machine(self, alive):
        """Measures new sandboxes only, so it first deletes those of another figure or round."""
        self.each("delete", self.alive, 8)
        self.alive = []
        before = available()
        self.keep(alive)
        return (before - available()) / alive

    def measure(self, what, count, at_once=1, alive=0):
        if what == "rate":
            return [self.rate(count, at_once)]
        if what == "machine":
            return self.machine(alive)
        return super().measure(what, count, at_once, alive)


def available():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise BenchError("/proc/meminfo has no MemAvailable")


def unpack(bench, image):
    """Unpacks the image's files into a directory."""
    root = pathlib.Path(bench.temporary_directory()) / "rootfs"
    tree = images.TREES[image.removeprefix("agx-").removesuffix(":1")][0]().finish()
    with tempfile.TemporaryFile() as file:
        file.write(tree)
        file.seek(0)
        with tarfile.open(fileobj=file) as tar:
            tar.extraction_filter = lambda member, _: member  # newer Pythons ask; change nothing
            tar.extractall(root)
    return root


class Runc:
    """`runc run -d` with the same files and runc's default configuration, without a terminal."""

    def __init__(self, bench, image):
        self.bundle = unpack(bench, image).parent
        run(["runc", "spec", "--bundle", self.bundle])
        path = self.bundle / "config.json"
        config = json.loads(path.read_text())
        config["process"] |= {"terminal": False, "args": IDLE}
        path.write_text(json.dumps(config))

    def create(self, name):
        subprocess.run(
            ["runc", "run", "-d", "--bundle", str(self.bundle), name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )

    def stop(self, name):
        run(["runc", "kill", name, "KILL"])

    def delete(self, name):
        run(["runc", "delete", "-f", name])

    def exec(self, name):
        run(["runc", "exec", name, "/bin/true"])


class Bwrap:
    """Runs /bin/true in new namespaces: nothing stays that could be deleted."""

    def __init__(self, bench, image):
        self.root = unpack(bench, image)

    def create(self, _name):
        run(["bwrap", "--unshare-all", "--bind", self.root, "/", "--proc", "/proc", "--dev",
             "/dev", "/bin/true"])  # fmt: skip

    def delete(self, _name):
        pass


def native(bench, image):
    daemon = NativeDaemon(bench)
    side = NativeSide(NativeService(daemon, image))
    bench.defer(side.end)
    daemon.load(image)
    return side


SIDES = {
    "native": native,
    "docker": lambda _bench, image: Side(Command(image)),
    "runc": lambda bench, image: Side(Runc(bench, image)),
    "bwrap": lambda bench, image: Side(Bwrap(bench, image)),
}


def main():
    bench = Bench(ROOT, pathlib.Path(sys.argv[1]))
    try:
        serve(lambda name: SIDES[name](bench, sys.argv[2]))
    finally:
        bench.clean_up()


if __name__ == "__main__":
    main()
