"""Functions for the worker's tests, without heavy imports."""


def add(a: int, b: int = 2) -> int:
    return a + b


async def aadd(a: int, b: int = 2) -> int:
    return a + b


def loaded(name: str) -> bool:
    import sys

    return name in sys.modules


def kinds(a, /, b: int, *rest: int, c, **more: int):
    return [a, b, list(rest), c, more]


def defaults(a: int = "1", b: int = None, c: float = 2):  # noqa: RUF013
    return [repr(a), type(a).__name__, repr(b), "float"]


def say(words):
    print(words)


def scale(x: float) -> float:
    return x * 2


def maybe(x: str | None):
    return type(x).__name__


def pair(x: tuple):
    return type(x).__name__


def bad_name(x: "no_such_name"):  # noqa: F821
    return x


LIST_DESCRIPTORS = """
import os
for fd in range(64):
    try:
        os.fstat(fd)
        print(fd)
    except OSError:
        pass
"""


def open_descriptors_of_a_child():
    import subprocess

    command = ["python3", "-I", "-c", LIST_DESCRIPTORS]
    done = subprocess.run(command, capture_output=True, text=True, close_fds=False)
    return [int(number) for number in done.stdout.split()]
