"""The world of the fake backend, which a test controls and reads (docs/design/backends.md)."""

import os
import re
import subprocess

from agxtest.server import TIMEOUT_S, wait_for

# Commands that the world simulates.
TRUE = ("true",)
FOREVER = ("sleep", "600")
STUBBORN = ("stubborn",)  # ignores TERM
FORKER = ("forker",)  # its first process ends, another continues


def exits(code):
    return ("sh", "-c", f"exit {code}")


def says(out, err):
    """A command that prints a line to stdout, and `<err>: not found` to stderr."""
    return ("sh", "-c", f"{err}; echo {out}")


class Hold:
    """An operation that starts and does not end before release()."""

    def __init__(self, world, verb, sandbox_id):
        self.world, self.verb, self.sandbox_id = world, verb, sandbox_id
        self.before = self.asked()
        world.script(f"{verb} {sandbox_id} x1 hang-cancellable")

    def asked(self):
        return self.world.effects(f"ask-{self.verb}", self.sandbox_id)

    def begun(self):
        """Waits until the backend has started it."""
        wait_for(lambda: self.asked() > self.before, f"{self.verb} of {self.sandbox_id} begins")
        return self

    def release(self):
        """Lets it end; does nothing if it was cancelled."""
        self.begun()
        self.world.script(f"now release {self.sandbox_id}", check=False)


class World:
    """A process that outlives daemons and ends with the test."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir(mode=0o700)
        self.run("--start", directory)
        self.script("# it answers")

    def run(self, *arguments, check=True):
        env = os.environ | {"AGENTIX_FAKE_PARENT": str(os.getpid())}
        command = [os.environ["AGENTIX_FAKEWORLD"], *map(str, arguments)]
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert not check or done.returncode == 0, done.stderr
        return done.returncode == 0

    def script(self, *lines, check=True):
        """Adds a rule to the world's script."""
        return self.run("--script", self.directory, "\n".join(lines), check=check)

    def close(self):
        self.run("--stop", self.directory, check=False)

    # -- what will happen

    def hold(self, verb, sandbox_id):
        """Makes the next such operation wait."""
        return Hold(self, verb, sandbox_id)

    def fail(self, verb, sandbox_id, message):
        """Makes the next such operation fail."""
        self.script(f"{verb} {sandbox_id} x1 fail INTERNAL {message}")

    def fail_companion(self, sandbox_id, place, message):
        self.script(f"create {sandbox_id} x1 companion-fail {place} {message}")

    def lose(self, sandbox_id):
        """Removes the sandbox from the world, so that nothing of it is left."""
        self.script(f"now vanish {sandbox_id}")

    # -- what has happened

    def journal(self):
        """The effects so far, each with its words, in order."""
        lines = (self.directory / "journal").read_text().splitlines()
        return [tuple(re.sub(r" #\d+$", "", line).split()) for line in lines]

    def effects(self, *words):
        """The number of times that this effect has happened."""
        return sum(entry[: len(words)] == words for entry in self.journal())

    def sandboxes(self):
        """The objects that exist in the world."""
        found = set()
        for what, name, *_ in self.journal():
            if what == "make":
                found.add(name)
            elif what in ("remove", "vanish"):
                found.discard(name)
        return found
