"""Shared by the tests of flows."""

from pathlib import Path

LABEL = "io.github.1996fanrui.agents-sandbox"


def primary(engine, sandbox_id):
    return engine.inspect(f"agbox-primary-{sandbox_id}")


def network(engine, sandbox_id):
    return [n for n in engine.networks() if n["Name"] == f"agbox-net-{sandbox_id}"]


def said(run):
    """What a command printed: stdout, stderr."""
    return Path(run.stdout_log_path).read_text(), Path(run.stderr_log_path).read_text()


async def output(client, sandbox_id, *command):
    """Of a command that succeeds."""
    run = await client.run(sandbox_id, command)
    assert run.exit_code == 0, (run.error, said(run))
    return said(run)[0]


async def until(client, sandbox_id, *types, **options):
    """Events up to the first of one of these types."""
    found = []
    stream = client.subscribe_sandbox_events(sandbox_id, **options)
    async for event in stream:
        found.append(event)
        if event.event_type in types:
            await stream.aclose()
            return found
    raise AssertionError(f"the stream ended behind {found}")
