"""Helpers for a copy of the sources: write into it, and run its checks."""

import subprocess


def run(tree, *command):
    """Exit status and output of a check of the copy."""
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def write(tree, name, text):
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text(text)


def fails(tree, check, *words):
    """The check fails, and one line of its output has all the words."""
    status, output = run(tree, check)
    assert status != 0, f"{check} passed"
    assert any(all(word in line for word in words) for line in output.splitlines()), output
