"""Output of the worker: it is captured, bounded, sent in `/log`, and written to a file."""

import pytest
from agxtest.server import assert_grows_less, rss_kib, wait_for
from agxtest.wire import Client


def follow(server, since=None):
    c = Client(server, connect=False)
    c.connect(None if since is None else {"since": since}, "log")
    return c


def test_output_of_the_worker_comes_line_by_line(serve_fake):
    """Ledger 1: output is not mixed with the frames."""
    server = serve_fake()
    with Client(server) as c, follow(server) as log:
        c.call("fake::prints", "one\ntwo\n", 1, 1)
        c.call("fake::prints", "three\n", 2, 1)
        records = [log.record() for _ in range(3)]
        assert [(r["seq"], r["stream"], r["text"]) for r in records if r["stream"] == "stdout"] == [
            (1, "stdout", "one"),
            (2, "stdout", "two"),
        ]
        assert records[2]["stream"] == "stderr" and records[2]["text"] == "three"
        assert all(r["time"] > 1_600_000_000_000 and "lost" not in r for r in records)


def test_the_backlog_and_since(serve_fake):
    server = serve_fake()
    with Client(server) as c:
        c.call("fake::prints", "line\n", 1, 20)
        with follow(server) as log:
            assert [log.record()["seq"] for _ in range(20)] == list(range(1, 21))
        with follow(server, since=15) as log:
            assert [log.record()["seq"] for _ in range(6)] == list(range(15, 21))
            c.call("fake::prints", "more\n", 1, 1)
            assert log.record()["text"] == "more"


def test_lines_that_are_gone_are_counted(serve_fake):
    server = serve_fake()
    with Client(server) as c:
        c.call("fake::prints", "x\n" * 1000, 1, 30)
        c.call("fake::prints", "last\n", 1, 1)
        wait_for(lambda: seen_last(server), "everything is captured")
        with follow(server) as log:
            first = log.record()
            assert first["lost"] == first["seq"] - 1 and first["seq"] >= 20_000
        with follow(server, since=10) as log:
            assert log.record()["lost"] == first["seq"] - 10


def seen_last(server):
    with follow(server, since=30_001) as log:
        return log.record()["text"] == "last"


def test_bytes_that_are_no_text_and_long_lines_arrive_as_valid_text(serve_fake):
    server = serve_fake()
    with Client(server) as c, follow(server) as log:
        c.call("fake::prints", b"\xff\x00\xfe\x1b[1m\n", 1, 1)
        assert log.record()["text"] == "\ufffd\x00\ufffd\x1b[1m"
        c.call("fake::prints", b"y" * 200_000 + b"\n", 1, 1)
        text = ""
        while len(text) < 200_000:
            text += log.record()["text"]
        assert text == "y" * 200_000


def test_a_line_of_10_mb_and_a_flood_do_not_stop_calls(serve_fake):
    """Ledger 1: more than a pipe holds, without a follower, and with one that does not read."""
    server = serve_fake()
    with Client(server) as c, follow(server) as deaf:
        before = rss_kib(server.pid)
        c.call("fake::prints", b"z" * 10_000_000 + b"\n", 2, 1)
        c.call("fake::prints", b"w" * 99 + b"\n", 1, 100_000)
        assert c.call("fake::echo", 1) == ("result", [1])
        assert_grows_less(server.pid, before, 24 << 10)
        last = 0
        while last < 90_000:
            record = deaf.record()
            assert record["seq"] > last
            last = record["seq"]


def test_fd_0_is_empty_and_frames_have_private_descriptors(serve_fake):
    """Ledger 2."""
    with Client(serve_fake()) as c:
        fds = c.call("fake::surroundings")[1]["fds"]
        assert fds["0"] == "/dev/null"
        assert fds["1"].startswith("pipe:") and fds["2"].startswith("pipe:")
        assert fds["3"].startswith("socket:") and fds["4"].startswith("socket:")
        assert set(fds) - {"0", "1", "2", "3", "4"} <= {"5", "6"}, "nothing of the server's is open"


def test_the_log_goes_on_over_the_death_of_the_worker(serve_fake):
    server = serve_fake()
    with Client(server) as c, follow(server) as log:
        c.call("fake::prints", "before\n", 1, 1)
        assert log.record()["text"] == "before"
        dead = server.kill_worker()
        wait_for(lambda: server.worker_pid() != dead, "another worker is there")
        c.call("fake::prints", "after\n", 1, 1)
        record = log.record()
        assert (record["seq"], record["text"]) == (2, "after")


def test_the_log_is_kept_in_a_file(serve_fake, tmp_path):
    directory = tmp_path / "logs"
    directory.mkdir()
    server = serve_fake(env={"AGENTIX_LOG_DIR": str(directory)})
    with Client(server) as c:
        c.call("fake::prints", "kept\n", 1, 3)
    path = directory / "worker.log"
    wait_for(lambda: path.exists() and path.read_text().count("kept") == 3, "the file has it")
    assert path.stat().st_mode & 0o077 == 0


def test_a_log_directory_that_is_not_there_is_an_error_at_start(serve_fake, tmp_path):
    server = serve_fake("--log-dir", tmp_path / "nowhere" / "x", wait=False)
    assert server.process.wait(60) == 1
    assert "nowhere" in server.log()


@pytest.mark.parametrize("packet", ["41/log,"])
def test_who_leaves_the_log_gets_no_more_of_it(serve_fake, packet):
    server = serve_fake()
    with Client(server) as c:
        c.connect(None, "log")
        c.call("fake::echo", 1)
        c.send(packet)
        c.call("fake::echo", 2)
        c.call("fake::prints", "x\n", 1, 1)
        assert c.call("fake::echo", 3) == ("result", [3])
