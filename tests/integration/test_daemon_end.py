"""agentixd and signals: shutdown, its limit of five seconds, and reopening of the log."""

import os
import signal
import socket
import threading
import time

import grpc
import pytest
from agxtest.control import Control, call, check_health, open_channel
from agxtest.daemon import TIMEOUT_S, Place, can_connect
from agxtest.server import held_up, wait_for
from grpc_health.v1 import health_pb2, health_pb2_grpc

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
# The limit is five; a busy machine gets more.
END_S = 20
SANITIZE = os.environ.get("SANITIZE", "none")


@pytest.fixture(name="place")
def fixture_place(deadline):
    place = Place()
    yield place
    place.close()


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_status_0_and_no_socket(place, signo):
    process = place.start()
    process.send_signal(signo)
    assert process.wait(TIMEOUT_S) == 0
    assert not place.socket.exists() and place.lock.exists()
    assert "daemon.stopping" in place.said()


def test_a_hundred_open_streams_do_not_hold_it_up(place):
    process = place.start()
    channels = [open_channel(place.socket) for _ in range(10)]
    streams = []
    for n in range(100):
        stub = health_pb2_grpc.HealthStub(channels[n % len(channels)])
        streams.append(stub.Watch(health_pb2.HealthCheckRequest()))
        next(streams[-1])
    start = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 0
    assert time.monotonic() - start < END_S
    said = set()
    for stream in streams:
        with pytest.raises(grpc.RpcError) as error:
            said.update(reply.status for reply in stream)
        assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    assert said <= {health_pb2.HealthCheckResponse.NOT_SERVING}
    for channel in channels:
        channel.close()


def test_subscribers_and_a_backend_that_hangs_do_not_hold_it_up(place):
    process = place.start()
    with Control(place.socket) as control:
        spec = {"image": "test", "labels": {"fake.create": "hang"}}
        service = "agbox.v1.SandboxService"
        control.call(f"{service}/CreateSandbox", sandbox_id="stuck", create_spec=spec)
        streams = [
            control.stream(f"{service}/SubscribeSandboxEvents", sandbox_id="stuck")
            for _ in range(100)
        ]
        for stream in streams:
            assert next(stream).sandbox_id == "stuck"
        start = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
        assert time.monotonic() - start < END_S
        for stream in streams:
            with pytest.raises(grpc.RpcError) as error:
                list(stream)
            assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    # The next daemon continues the create.
    place.start()
    found = call(place.socket, f"{service}/GetSandbox", sandbox_id="stuck")
    assert found.sandbox.sandbox_id == "stuck"


def test_clients_that_never_read_or_close_do_not_hold_it_up(place):
    process = place.start()
    clients = []
    for _ in range(20):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(place.socket))
        client.sendall(PREFACE)
        clients.append(client)
    half = socket.socket(socket.AF_UNIX)
    half.connect(str(place.socket))
    half.sendall(PREFACE[:5])
    start = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 0
    assert time.monotonic() - start < END_S
    for client in [*clients, half]:
        client.close()


def test_the_limit_ends_it_whatever_is_left_to_do(place):
    place.configure("shutdown: {grace: 0, limit: 1ms}\n")
    process = place.start()
    with open_channel(place.socket) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        next(watch)
        process.send_signal(signal.SIGTERM)
        # ThreadSanitizer reports threads that are left behind.
        assert process.wait(TIMEOUT_S) in ([0, 66] if SANITIZE == "thread" else [0])
        watch.cancel()
    # The next daemon starts despite the files that it left.
    assert place.call().returncode == 0


def test_it_takes_no_new_connections_while_it_ends(place):
    place.configure("shutdown: {grace: 3s}\n")
    process = place.start()
    with open_channel(place.socket) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        next(watch)
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: not can_connect(place.socket), "nobody is taken any more")
        assert process.wait(TIMEOUT_S) == 0
        watch.cancel()


def test_a_second_signal_ends_it_at_once(place):
    place.configure("shutdown: {grace: 3s}\n")
    process = place.start()
    # Both signals are pending when it continues, so it sees the second as soon as the first.
    with held_up(process.pid):
        os.kill(process.pid, signal.SIGTERM)
        os.kill(process.pid, signal.SIGINT)
    assert process.wait(TIMEOUT_S) in (128 + signal.SIGTERM, 128 + signal.SIGINT)
    # The next daemon starts despite the files that it left.
    assert place.call().returncode == 0


def test_the_lock_is_free_the_moment_it_is_gone(place):
    for _ in range(5):
        process = place.start()
        process.kill()
        process.wait()
    stop_me = place.start()
    stop_me.terminate()
    assert stop_me.wait(TIMEOUT_S) == 0
    assert place.call().returncode == 0


def test_its_log_is_rotated_by_size_and_kept(place):
    place.configure("log: {max_size: 1, keep: 2, check: 10ms}\n")
    assert place.call().returncode == 0
    pid = place.pid()
    older = [place.log.with_name(f"agentixd.log.{n}") for n in (1, 2, 3)]

    def lines():
        os.kill(pid, signal.SIGHUP)  # which makes one
        return older[1].exists() and "log.reopened" in older[1].read_text()

    wait_for(lines, "the log was put aside twice")
    assert not older[2].exists()


def test_sighup_makes_the_log_anew_after_it_was_moved(place):
    assert place.call().returncode == 0
    moved = place.log.with_name("moved")
    place.log.rename(moved)
    os.kill(place.pid(), signal.SIGHUP)
    wait_for(place.log.exists, "the log is there again")
    wait_for(lambda: "log.reopened" in place.log.read_text(), "and is written")
    assert "daemon.ready" in moved.read_text()
    assert check_health(place.socket) == health_pb2.HealthCheckResponse.SERVING


def test_sighup_in_the_foreground_does_no_harm(place):
    process = place.start()
    # ThreadSanitizer may lose a signal that arrives during the start.
    assert check_health(place.socket) == health_pb2.HealthCheckResponse.SERVING
    process.send_signal(signal.SIGHUP)
    ended = lambda: process.poll() is not None  # noqa: E731
    wait_for(lambda: "log.reopened" in place.said() or ended(), "it says so")
    assert not ended(), f"{process.returncode}: {place.said()}"
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0


def test_it_goes_on_when_its_log_cannot_be_moved_or_opened(place):
    place.configure("log: {max_size: 1, keep: 1, check: 10ms}\n")
    older = place.log.with_name("agentixd.log.1")
    (older / "in the way").mkdir(parents=True)
    place.data.chmod(0o700)
    assert place.call().returncode == 0
    moved = place.log.with_name("moved")
    with held_up(place.pid()):  # it looks every 10 ms, and would create the log again
        place.log.rename(moved)
        place.log.mkdir()
    os.kill(place.pid(), signal.SIGHUP)
    wait_for(lambda: "log.reopen_failed" in moved.read_text(), "the old file says so")
    assert check_health(place.socket) == health_pb2.HealthCheckResponse.SERVING


def test_calls_from_many_threads_during_the_end_all_get_an_answer(place):
    process = place.start()
    answers = []

    def call():
        with open_channel(place.socket) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            while True:
                try:
                    stub.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
                except grpc.RpcError as error:
                    answers.append(error.code())
                    return

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert answers == 8 * [grpc.StatusCode.UNAVAILABLE]
