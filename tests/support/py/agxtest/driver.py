"""A program that does what the lines on its standard input say: tests/support/driver.h."""

import subprocess


class Driver:
    """Runs in a namespace (networld.py). Its end takes the pipes along."""

    def __init__(self, space, *command):
        pipe = subprocess.PIPE
        self.process = space.popen(*command, stdin=pipe, stdout=pipe, text=True)

    def tell(self, line):
        print(line, file=self.process.stdin, flush=True)

    def hear(self):
        return self.process.stdout.readline().strip()

    def say(self, line):
        """Its answer."""
        self.tell(line)
        return self.hear()

    def ok(self, *lines):
        for line in lines:
            answer = self.say(line)
            assert answer == "ok", answer
        return self

    def stop(self):
        """Ends its input; its exit status, once it has done what it was told."""
        self.process.stdin.close()
        status = self.process.wait()
        self.process.stdout.close()
        return status

    def close(self):
        return self.stop()

    def kill(self):
        self.process.kill()
        self.stop()
