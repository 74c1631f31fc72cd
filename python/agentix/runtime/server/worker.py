"""The worker process: `python3 -I -m agentix.runtime.server.worker`, started by agentix-server.

Environment: AGENTIX_WORKER_FDS, the descriptors of the two lanes; AGENTIX_PATH, directories of user
code; AGENTIX_MAX_THREADS, how many plain functions may run at once.
"""

import os
import sys

# Letting a coroutine wait for 5 ms (Python's own value) because some function computes is too long.
SWITCH_INTERVAL = 0.0005
COLLECT_MAX = 1_000_000
DRAIN_SECONDS = 5.0


def _leave(code):
    """Ends the process for good: threads may still be inside user code."""
    import atexit
    import contextlib

    try:
        atexit._run_exitfuncs()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


class Glue:
    """The functions that the C side calls. Imports happen when needed."""

    generator_type = type(_ for _ in ())

    def __init__(self):
        from agentix.runtime.server import _errors, _leaves, _prepare

        self.prepare, self.describe = _prepare.prepare, _errors.describe
        self.replace, self.replace_plain = _leaves.replace, _leaves.replace_plain
        self.worker = self.loop = None

    def stream(self, call, plan, args, kwargs):
        from agentix.runtime.server._drive import stream

        return stream(call, plan, args, kwargs)

    def bidi(self, call, plan, args, kwargs):
        from agentix.runtime.server._drive import bidi

        return bidi(call, plan, args, kwargs)

    def await_it(self, awaitable):
        from agentix.runtime.server._drive import await_it

        return await_it(awaitable)

    def collect(self, generator):
        """The items of a plain generator, as a list of bounded length."""
        items = []
        for item in generator:
            if len(items) >= COLLECT_MAX:
                raise ValueError(f"a generator gave more than {COLLECT_MAX} items")
            items.append(item)
        return items

    def shutdown(self, grace_ms):
        from agentix.runtime.server._drive import Shutdown

        Shutdown(self.worker, self.loop, grace_ms / 1000)

    def leave(self, error):
        """User code requested the end of the process."""
        self.worker.drain(DRAIN_SECONDS)
        if isinstance(error, KeyboardInterrupt):
            from agentix._worker import die_of_interrupt

            die_of_interrupt()
        code = error.code if isinstance(error, SystemExit) else 1
        if code is not None and not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
        _leave((code or 0) & 0xFF)


def _run_loop(worker, glue):
    import asyncio

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    ready = getattr(loop, "_ready", None)
    eager = sys.version_info >= (3, 12)
    glue.loop = loop
    worker.attach(loop, asyncio.Task, eager, getattr(ready, "pop", None), asyncio.CancelledError)
    loop.run_forever()


def _set_path(entries):
    """Puts user code first, as PYTHONPATH does; never the working directory."""
    found = [os.path.abspath(entry) for entry in entries.split(":") if entry]
    sys.path[:] = found + [entry for entry in sys.path if entry not in found]


def _packed(text):
    data = text.encode("utf-8", "backslashreplace")
    return b"\xdb" + len(data).to_bytes(4, "big") + data


def _boot_error(fd, error):
    """Reports a failed start to the server, without the modules that may be the cause."""
    import traceback

    text = "".join(traceback.format_exception(error))
    fields = {"type": type(error).__name__, "message": str(error), "traceback": text}
    body = b"\x82" + _packed("type") + _packed("boot_error") + _packed("error") + b"\x83"
    for name, value in fields.items():
        body += _packed(name) + _packed(value)
    os.write(fd, len(body).to_bytes(4, "little") + body)


def _boot(loop_fd, thread_fd):
    """The worker and its glue, ready to start."""
    _set_path(os.environ.get("AGENTIX_PATH", ""))
    sys.setswitchinterval(SWITCH_INTERVAL)
    sys.stdout.reconfigure(line_buffering=True)  # readers of the log get whole lines at once

    from agentix._worker import new_worker

    glue = Glue()
    threads = os.environ.get("AGENTIX_MAX_THREADS", "")
    limit = int(threads) if threads.isdigit() else 0
    libraries = f"{os.environ.get('AGENTIX_PATH', '')}:{sys.prefix}/lib/agentix/functions"
    glue.worker = new_worker(loop_fd, thread_fd, glue, limit, libraries)
    return glue.worker, glue


def main():
    loop_fd, thread_fd = map(int, os.environ.pop("AGENTIX_WORKER_FDS").split(","))
    try:
        worker, glue = _boot(loop_fd, thread_fd)
    except Exception as error:
        _boot_error(loop_fd, error)
        raise
    version = ".".join(map(str, sys.version_info[:3]))
    try:
        worker.start(f"python {version}")
        if worker.wait():
            _run_loop(worker, glue)
        worker.drain(DRAIN_SECONDS)
    except (SystemExit, KeyboardInterrupt) as error:
        glue.leave(error)
    _leave(0)


if __name__ == "__main__":
    main()
