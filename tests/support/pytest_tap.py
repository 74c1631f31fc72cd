"""usage: tools/venv_python tests/support/pytest_tap.py PYTEST-ARGUMENT...

Runs pytest and prints TAP, so that each Python test counts like a C test. If AGX_MUST_WORK is 1, a
skipped test is a failure with its reason. If the program does not end soon after the last test, it
prints the stack of each thread to stderr.
"""

import faulthandler
import os
import sys

import pytest

END_S = 60  # for the end of pytest and the interpreter after the last test


class Tap:
    """A pytest plugin that prints one TAP line for each test."""

    def __init__(self):
        # pytest captures descriptor 1 while tests run; this one stays ours.
        self.out = os.fdopen(os.dup(1), "w", buffering=1)
        self.err = os.dup(2)
        self.must_work = os.environ.get("AGX_MUST_WORK") == "1"
        self.number = 0
        self.failed = 0

    def comment(self, text):
        for line in text.splitlines():
            print(f"# {line}", file=self.out)

    def result(self, ok, name, directive=""):
        self.number += 1
        self.failed += not ok
        print(f"{'ok' if ok else 'not ok'} {self.number} - {name}{directive}", file=self.out)

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.split("::", 1)[-1].replace("#", " ")
        if report.failed:
            self.comment(report.longreprtext)
            for title, text in report.sections:
                self.comment(f"---- {title}\n{text}")
            self.result(False, name if report.when == "call" else f"{name} ({report.when})")
        elif report.skipped:
            self.comment(f"cannot run here: {report.longrepr[-1]}")
            self.result(not self.must_work, name, "" if self.must_work else " # SKIP")
        elif report.when == "call":
            self.result(True, name)

    def pytest_sessionfinish(self):
        faulthandler.dump_traceback_later(END_S, file=self.err)

    def pytest_collectreport(self, report):
        if report.failed:
            self.comment(report.longreprtext)
            self.result(False, f"{report.nodeid} (collection)")


def main():
    tap = Tap()
    options = ["-p", "no:terminal", "-p", "no:cacheprovider", *sys.argv[1:]]
    status = pytest.main(options, plugins=[tap])
    if tap.number == 0:
        tap.comment(f"pytest ran no test (exit status {int(status)})")
    print(f"1..{tap.number}", file=tap.out)
    sys.exit(tap.failed > 0 or tap.number == 0)


if __name__ == "__main__":
    main()
