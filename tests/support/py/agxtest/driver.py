"""A program that carries out commands on its standard input: see tests/support/driver.h."""

import subprocess


class Driver:
    """A driver program in a namespace (networld.py). Its end closes the pipes."""

    def __init__(self, space, *command):
        pipe = subprocess.PIPE
        self.process = space.popen(*command, stdin=pipe, stdout=pipe, text=True)

    def tell(self, line):
        print(line, file=self.process.stdin, flush=True)

    def hear(self):
        return self.process.stdout.readline().strip()

    def say(self, line):
        """Sends a line and returns the answer."""
        self.tell(line)
        return self.hear()

    def ok(self, *lines):
        for line in lines:
            answer = self.say(line)
            assert answer == "ok", answer
        return self

    def stop(self):
        """Closes its input, waits until it has finished, and returns its exit status."""
        self.process.stdin.close()
        status = self.process.wait()
        self.process.stdout.close()
        return status

    def close(self):
        return self.stop()

    def kill(self):
        self.process.kill()
        self.stop()
