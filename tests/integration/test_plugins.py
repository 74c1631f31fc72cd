"""agentix.bash, agentix.files and agentix.deployment, called directly, without a server."""

import asyncio
import os
import signal
from importlib.metadata import EntryPoint

import agentix
import pytest
from agentix import bash, files
from agentix.deployment import PluginConflictError, Registry
from agentix.deployment._plugin import deployments
from agxtest.server import wait_for


def run(*args, **kwargs):
    return asyncio.run(bash.run(*args, **kwargs))


async def events(*args, **kwargs):
    return [e async for e in bash.run_stream(*args, **kwargs)]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


# ---- bash ----


def test_run_gives_code_and_both_outputs(tmp_path):
    result = run("pwd; echo $X >&2; exit 3", cwd=str(tmp_path), env={"X": "y"})
    assert result == bash.BashResult(exit_code=3, stdout=f"{tmp_path}\n", stderr="y\n")


def test_run_reads_and_drops_what_is_past_the_cap():
    result = run("head -c 100000 /dev/zero | tr '\\0' a", max_output=10)
    assert result.stdout == "a" * 10 + "\n[truncated at 10 bytes]" and result.exit_code == 0


def test_a_timeout_kills_the_whole_process_group(tmp_path):
    pids = tmp_path / "pids"
    result = run(f"(sleep 600 & echo $! >>{pids}; wait) & echo $! >>{pids}; wait", timeout=2.5)
    assert result.exit_code == -1 and result.stderr == "Command timed out after 2.5s"
    wait_for(lambda: not any(alive(int(p)) for p in pids.read_text().split()), "all are gone")


def test_a_child_left_in_the_background_does_not_hold_the_call():
    assert run("sleep 600 & echo on").stdout == "on\n"


def test_a_cancelled_run_kills_its_command(tmp_path):
    pids = tmp_path / "pids"

    async def main():
        task = asyncio.ensure_future(bash.run(f"echo $$ >{pids}; sleep 60"))
        while not pids.exists() or not pids.read_text():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not alive(int(pids.read_text()))


def test_secrets_of_the_runtime_are_not_inherited(monkeypatch):
    monkeypatch.setenv("AGENTIX_TOKEN", "secret")
    monkeypatch.setenv("PYTHONPATH", "/x")
    assert run("echo [$AGENTIX_TOKEN$PYTHONPATH]").stdout == "[]\n"


def test_run_stream_gives_output_as_it_comes_and_the_code_last():
    got = asyncio.run(events("echo a; echo b >&2; sleep 0.1; echo c; exit 4"))
    assert got[-1] == bash.BashExit(exit_code=4)
    assert "".join(e.data for e in got if e.type == "stdout") == "a\nc\n"
    assert "".join(e.data for e in got if e.type == "stderr") == "b\n"


def test_run_stream_ends_with_an_error_at_its_timeout_and_for_a_bad_directory():
    got = asyncio.run(events("echo a; sleep 60", timeout=2.5))
    assert [e.type for e in got] == ["stdout", "error"] and "2.5s" in got[-1].message
    assert asyncio.run(events("true", cwd="/nonexistent"))[0].type == "error"


@pytest.fixture
def leaver(tmp_path):
    """A command that leaves the session, keeps the outputs open, and lives until the test ends."""
    pid = tmp_path / "pid"
    child = f"setsid sh -c 'echo $$ >{pid}; exec sleep 600'"
    yield f"{child} & while ! [ -s {pid} ]; do sleep 0.01; done"
    os.kill(int(pid.read_text()), signal.SIGKILL)


def read_slowly(command, pause):
    async def main():
        got = []
        async for event in bash.run_stream(command):
            got.append(event)
            await asyncio.sleep(pause)
        return got

    return asyncio.run(asyncio.wait_for(main(), 120))


# Slowly: when the wait for more output ends, most of it is not read yet.
@pytest.mark.parametrize("pause", [0, 0.1])
def test_a_stream_ends_with_its_command_though_a_child_keeps_the_outputs_open(
    leaver, tmp_path, pause
):
    size = 1_200_000
    got = read_slowly(f"{leaver}; head -c {size} /dev/zero | tr '\\0' a; echo b >&2; exit 3", pause)
    assert got[-1] == bash.BashExit(exit_code=3)
    assert "".join(e.data for e in got if e.type == "stdout") == "a" * size
    assert "".join(e.data for e in got if e.type == "stderr") == "b\n"
    assert alive(int((tmp_path / "pid").read_text()))


def test_a_stream_that_is_left_kills_its_command(tmp_path):
    async def main():
        stream = bash.run_stream("echo $$; sleep 60")
        pid = int((await anext(stream)).data)
        await stream.aclose()
        return pid

    assert not alive(asyncio.run(main()))


# ---- files ----


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTIX_UPLOAD_ROOT", str(tmp_path / "root"))
    return tmp_path / "root"


def test_upload_and_download(root):
    result = files.upload("a/b/c.bin", b"\0data")
    assert (result.path, result.size) == (str(root / "a/b/c.bin"), 5)
    assert files.download("a/b/c.bin") == files.download(str(root / "a/b/c.bin")) == b"\0data"
    files.upload("a/b/c.bin", b"new")
    assert files.download("a/b/c.bin") == b"new"
    assert os.listdir(root / "a/b") == ["c.bin"]
    with pytest.raises(FileNotFoundError):
        files.download("a/none")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", ".", "", "a\0b"])
def test_a_path_that_leaves_the_root_is_refused(root, path):
    root.mkdir()
    with pytest.raises(PermissionError):
        files.upload(path, b"")
    with pytest.raises(PermissionError):
        files.download(path)


def test_links_are_never_followed(root, tmp_path):
    root.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/f").write_bytes(b"secret")
    (root / "d").symlink_to(tmp_path / "outside")
    (root / "f").symlink_to(tmp_path / "outside/f")
    for path in ("d/f", "f"):
        with pytest.raises(PermissionError, match="symbolic link"):
            files.download(path)
        with pytest.raises(PermissionError, match="symbolic link"):
            files.upload(path, b"over")
    assert (tmp_path / "outside/f").read_bytes() == b"secret"


def test_a_pipe_does_not_hold_a_download(root):
    root.mkdir()
    os.mkfifo(root / "p")
    assert files.download("p") == b""


# ---- deployment ----


class Fake:
    log: list = []  # noqa: RUF012

    async def create(self, config):
        self.log.append(("create", config.image))
        return agentix.Sandbox(agentix.SandboxId("s"), "http://x", "running")

    async def delete(self, sandbox_id):
        self.log.append(("delete", sandbox_id))

    async def get(self, sandbox_id):
        return agentix.SandboxInfo(sandbox_id=sandbox_id, runtime_url="http://x")


def test_session_deletes_the_sandbox_also_after_an_exception():
    async def main():
        config = agentix.SandboxConfig(image="i", runtime_image="r", platform="ignored")
        assert isinstance(Fake(), agentix.Deployment)
        with pytest.raises(KeyError):
            async with agentix.session(Fake(), config) as sandbox:
                assert sandbox.runtime_url == "http://x"
                raise KeyError

    asyncio.run(main())
    assert Fake.log == [("create", "i"), ("delete", "s")]


def test_a_registered_deployment_is_found_by_name():
    agentix.register_deployment("fake", Fake)
    assert agentix.load_deployment("fake") is Fake
    deployments().reset()
    with pytest.raises(KeyError, match=r"no plugin 'fake' in group 'agentix\.deployment'"):
        agentix.load_deployment("fake")


def test_one_broken_plugin_does_not_hide_the_others():
    registry = Registry("g")
    registry._walk_entry_points = lambda: [
        EntryPoint("good", "json:loads", "g"),
        EntryPoint("bad", "no_such_module:x", "g"),
        EntryPoint("twice", "json:loads", "g"),
        EntryPoint("twice", "json:dumps", "g"),
    ]
    assert list(registry.all()) == ["good"]
    assert set(registry.errors()) == {"bad", "twice"}
    with pytest.raises(ModuleNotFoundError):
        registry.get("bad")
    with pytest.raises(PluginConflictError, match="json:dumps and json:loads"):
        registry.get("twice")
    with pytest.raises(KeyError, match=r"available: \['bad', 'good', 'twice'\]"):
        registry.get("none")
