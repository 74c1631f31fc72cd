"""agentix.v1.ControlService: one stream for all sandboxes, output, input, pages, waits, figures."""

import itertools
import threading

import pytest
from agxtest.agbox import CALL_S, refused, state_name, unique
from agxtest.protos import agbox, agentix
from agxtest.server import wait_for
from agxtest.world import FOREVER, TRUE, says
from grpc_health.v1 import health_pb2, health_pb2_grpc

CAT = ("cat",)


@pytest.fixture(name="box", scope="module")
def fixture_box(shared):
    return shared.ready()


# -- WatchEvents


def watch(client, seconds=CALL_S, **fields):
    return client.control.WatchEvents(seconds=seconds, **fields)


def events_of(stream, count):
    """The next events, with their positions; messages without an event only move the position."""
    found = list(itertools.islice((m for m in stream if m.HasField("event")), count))
    stream.cancel()
    return found


def test_all_sandboxes_are_in_one_stream(start_daemon, connect):
    client = connect(start_daemon())
    one, two = client.ready(), client.ready()
    stream = watch(client)
    assert not next(stream).HasField("event"), "the first message says where the stream stands"
    found = events_of(stream, 6)
    positions = [m.position for m in found]
    assert positions == sorted(set(positions))
    for each in (one, two):
        mine = [m.event for m in found if m.event.sandbox_id == each]
        assert mine == client.history(each)


def test_a_watch_goes_on_where_another_ended_even_over_a_restart(start_daemon, connect):
    daemon = start_daemon()
    client = connect(daemon)
    client.ready("first")
    half = events_of(watch(client), 2)[-1].position
    daemon.restart()
    client = connect(daemon)
    client.ready("second")
    found = events_of(watch(client, after_position=half), 4)
    assert [(m.event.sandbox_id, m.event.sequence) for m in found] == [
        ("first", 3),
        ("second", 1),
        ("second", 2),
        ("second", 3),
    ]
    assert [m.position for m in found] == sorted({m.position for m in found})


def test_a_watch_may_begin_now(shared):
    shared.ready()
    stream = watch(shared, from_now=True)
    next(stream)
    made = shared.ready()
    assert {m.event.sandbox_id for m in events_of(stream, 3)} == {made}


def test_a_watch_may_be_narrowed(shared):
    label = {"watch": unique("w")}
    stream = watch(shared, from_now=True, label_selector=label)
    next(stream)
    shared.ready(labels={"watch": "other"})
    mine = shared.ready(labels=label)
    assert {m.event.sandbox_id for m in events_of(stream, 3)} == {mine}
    stream = watch(shared, sandbox_ids=[mine])
    found = [m.event for m in events_of(stream, 3)]
    assert found == shared.history(mine)


def test_a_watch_from_nowhere_is_refused(shared):
    found = refused(shared.control.WatchEvents, after_position=2**63)
    assert found.code == "OUT_OF_RANGE"
    found = refused(shared.control.WatchEvents, after_position=1, from_now=True)
    assert found.code == "INVALID_ARGUMENT"


# -- ReadExecOutput


OUT, ERR = agentix().OUTPUT_STREAM_STDOUT, agentix().OUTPUT_STREAM_STDERR


def output(client, exec_id, stream=OUT, **fields):
    """All that a read gives: offset of its first byte, and the bytes."""
    messages = list(
        client.control.ReadExecOutput(exec_id=exec_id, stream=stream, seconds=CALL_S, **fields)
    )
    if not messages:
        return None
    at = messages[0].offset
    for each in messages:
        assert each.offset == at + each.skipped
        at = each.offset + len(each.data)
    return messages[0].offset, b"".join(m.data for m in messages)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, (0, b"012345678\n")),
        ({"offset": 4}, (4, b"45678\n")),
        ({"offset": 4, "max_bytes": 3}, (4, b"456")),
        ({"max_bytes": 100}, (0, b"012345678\n")),
        ({"offset": 10}, None),
        ({"offset": 1000}, None),
        ({"follow": True}, (0, b"012345678\n")),
        ({"stream": ERR}, (0, b"oops: not found\n")),
    ],
)
def test_output_is_read_from_an_offset(shared, box, fields, found):
    exec_id = shared.run(box, *says("012345678", "oops")).exec_id
    assert output(shared, exec_id, **fields) == found


def begins(stream, wanted):
    """Whether a stream brings this next; in how many messages it comes is nobody's promise."""
    found = b""
    while len(found) < len(wanted):
        found += next(stream).data
    return found == wanted


def test_output_is_followed_to_the_end_of_the_command(shared, box):
    command = ("sh", "-c", "echo one; cat; echo two; exit 3")
    exec_id = shared.start(box, *command, stdin=True).exec_id
    stream = shared.control.ReadExecOutput(exec_id=exec_id, stream=OUT, follow=True, seconds=CALL_S)
    assert begins(stream, b"one\n")
    shared.control.WriteExecInput([{"exec_id": exec_id, "eof": True}])
    assert b"".join(m.data for m in stream) == b"two\n"
    assert shared.exec(exec_id).exit_code == 3, "who saw the end of the output finds the end"


def printed(size):
    """What the world's `print SIZE` prints."""
    return "".join(f"{i:063}\n" for i in range(size // 64)).encode()


def test_a_long_output_arrives_whole(shared, box):
    exec_id = shared.start(box, "print", str(1 << 20)).exec_id
    assert output(shared, exec_id, follow=True) == (0, printed(1 << 20))


def test_of_an_output_past_the_cap_head_and_tail_are_kept(start_daemon, connect):
    client = connect(start_daemon(config={"exec": {"log_head": 1000, "log_tail": 2000}}))
    exec_id = client.run(client.ready(), "print", str(1 << 20)).exec_id
    messages = list(client.control.ReadExecOutput(exec_id=exec_id, stream=OUT, seconds=CALL_S))
    whole = printed(1 << 20)
    for each in messages:
        assert each.data == whole[each.offset : each.offset + len(each.data)]
    assert messages[0].offset == 0
    assert messages[-1].offset + len(messages[-1].data) == len(whole)
    kept = sum(len(m.data) for m in messages)
    assert kept + sum(m.skipped for m in messages) == len(whole)
    assert 3000 <= kept <= 6000


def test_output_of_nothing_is_refused(shared, box):
    found = refused(shared.control.ReadExecOutput, exec_id="nothing-there", stream=OUT)
    assert (found.code, found.reason) == ("NOT_FOUND", "EXEC_NOT_FOUND")
    exec_id = shared.run(box, *TRUE).exec_id
    for stream in (0, 3):
        found = refused(shared.control.ReadExecOutput, exec_id=exec_id, stream=stream)
        assert found.code == "INVALID_ARGUMENT"


# -- WriteExecInput


def test_a_command_reads_what_is_written(shared, box):
    exec_id = shared.start(box, *CAT, stdin=True).exec_id
    parts = [
        {"exec_id": exec_id, "data": b"one "},
        {"data": b"two "},
        {"exec_id": exec_id, "data": b"three", "eof": True},
    ]
    assert shared.control.WriteExecInput(parts).bytes_written == 13
    assert output(shared, exec_id, follow=True) == (0, b"one two three")
    assert shared.exec(exec_id).state == agbox().EXEC_STATE_FINISHED


def test_input_stays_open_for_another_writer(shared, box):
    exec_id = shared.start(box, *CAT, stdin=True).exec_id
    assert shared.control.WriteExecInput([{"exec_id": exec_id, "data": b"a"}]).bytes_written == 1
    assert shared.exec(exec_id).state == agbox().EXEC_STATE_RUNNING
    last = [{"exec_id": exec_id, "data": b"b", "eof": True}]
    assert shared.control.WriteExecInput(last).bytes_written == 1
    assert output(shared, exec_id, follow=True) == (0, b"ab")


def test_a_megabyte_of_input_goes_through(shared, box):
    exec_id = shared.start(box, *CAT, stdin=True).exec_id
    blocks = [bytes([i]) * 65536 for i in range(16)]
    parts = [{"exec_id": exec_id, "data": b, "eof": b[0] == 15} for b in blocks]
    assert shared.control.WriteExecInput(parts).bytes_written == 1 << 20
    assert output(shared, exec_id, follow=True) == (0, b"".join(blocks))


def test_input_that_nobody_takes_is_refused(shared, box):
    found = refused(shared.control.WriteExecInput, [{"exec_id": "nothing-there", "data": b"x"}])
    assert (found.code, found.reason) == ("NOT_FOUND", "EXEC_NOT_FOUND")
    without = shared.start(box, *FOREVER).exec_id
    found = refused(shared.control.WriteExecInput, [{"exec_id": without, "data": b"x"}])
    assert found.code == "FAILED_PRECONDITION"
    shared.box.CancelExec(exec_id=without)
    found = refused(shared.control.WriteExecInput, [{"data": b"x"}])
    assert found.code == "INVALID_ARGUMENT"


def test_without_stdin_a_command_reads_nothing(shared, box):
    assert shared.run(box, *CAT).state == agbox().EXEC_STATE_FINISHED


# -- pages


def page_ids(client, **fields):
    """Ids of all pages, and how many each page had."""
    ids, sizes, token = [], [], ""
    while True:
        page = client.control.ListSandboxes(page_token=token, **fields)
        ids += [s.sandbox_id for s in page.sandboxes]
        sizes.append(len(page.sandboxes))
        token = page.next_page_token
        if not token:
            return ids, sizes


def test_pages_have_all_in_the_order_of_the_list(start_daemon, connect):
    client = connect(start_daemon())
    for i in range(7):
        client.create(f"page{i}")
    whole = [s.sandbox_id for s in client.box.ListSandboxes().sandboxes]
    assert page_ids(client, page_size=3) == (whole, [3, 3, 1])
    assert page_ids(client) == (whole, [7])


def test_what_is_made_between_pages_moves_nothing(start_daemon, connect):
    client = connect(start_daemon())
    for i in range(4):
        client.create(f"page{i}")
    whole = [s.sandbox_id for s in client.box.ListSandboxes().sandboxes]
    first = client.control.ListSandboxes(page_size=2)
    client.create("later")
    rest = client.control.ListSandboxes(page_size=10, page_token=first.next_page_token)
    found = [s.sandbox_id for s in (*first.sandboxes, *rest.sandboxes)]
    assert found == whole


def test_pages_may_be_narrowed(shared):
    label = {"page": unique("p")}
    ready, gone = shared.ready(labels=label), shared.deleted(labels=label)
    stopped = shared.stopped(labels=label)
    assert page_ids(shared, page_size=1, label_selector=label) == ([stopped, ready], [1, 1])
    states = [agbox().SANDBOX_STATE_STOPPED]
    assert page_ids(shared, label_selector=label, states=states) == ([stopped], [1])
    found = page_ids(shared, label_selector=label, include_deleted=True, page_size=2)
    assert found == ([stopped, gone, ready], [2, 1])


def test_a_page_token_of_nobody_is_refused(shared):
    for token in ("x", "!!!", "AAAA" * 100):
        found = refused(shared.control.ListSandboxes, page_token=token)
        assert found.code == "INVALID_ARGUMENT"


# -- waits


def test_a_wait_ends_when_the_state_is_reached(shared, shared_daemon):
    sandbox_id = unique("wait")
    hold = shared_daemon.world.hold("create", sandbox_id)
    shared.create(sandbox_id)
    early = shared.control.WaitSandbox(sandbox_id=sandbox_id, timeout={"nanos": 50_000_000})
    assert early.timed_out
    assert state_name(early.sandbox.state) == "PENDING"
    release = threading.Timer(0.05, hold.release)
    release.start()
    answer = shared.control.WaitSandbox(sandbox_id=sandbox_id)
    release.join()
    assert not answer.timed_out
    assert state_name(answer.sandbox.state) == "READY"
    at_once = shared.control.WaitSandbox(sandbox_id=sandbox_id, timeout={})
    assert not at_once.timed_out


def test_a_wait_for_what_was_just_requested(shared):
    sandbox_id = shared.ready()
    newest = shared.get(sandbox_id).last_event_sequence
    ready = {"sandbox_id": sandbox_id, "states": [agbox().SANDBOX_STATE_READY]}
    late = shared.control.WaitSandbox(**ready, after_sequence=newest, timeout={"nanos": 50_000_000})
    assert late.timed_out, "it was READY before"
    shared.box.StopSandbox(sandbox_id=sandbox_id)
    stopped = shared.control.WaitSandbox(sandbox_id=sandbox_id, after_sequence=newest)
    assert state_name(stopped.sandbox.state) == "STOPPED"


def test_a_wait_ends_with_the_calls_deadline(shared, shared_daemon):
    sandbox_id = unique("wait")
    hold = shared_daemon.world.hold("create", sandbox_id)
    shared.create(sandbox_id)
    found = refused(shared.control.WaitSandbox, sandbox_id=sandbox_id, seconds=0.2)
    assert found.code == "DEADLINE_EXCEEDED"
    hold.release()


def test_a_wait_for_nobody_is_refused(shared):
    found = refused(shared.control.WaitSandbox, sandbox_id="nobody-there")
    assert (found.code, found.reason) == ("NOT_FOUND", "SANDBOX_NOT_FOUND")
    found = refused(shared.control.WaitExec, exec_id="nothing-there")
    assert (found.code, found.reason) == ("NOT_FOUND", "EXEC_NOT_FOUND")
    found = refused(shared.control.WaitExec, exec_id="nothing-there", timeout={"seconds": -1})
    assert found.code == "INVALID_ARGUMENT"


def test_a_wait_for_a_command(shared, box):
    exec_id = shared.start(box, *FOREVER).exec_id
    early = shared.control.WaitExec(exec_id=exec_id, timeout={"nanos": 50_000_000})
    assert early.timed_out
    assert early.exec.state == agbox().EXEC_STATE_RUNNING
    shared.box.CancelExec(exec_id=exec_id)
    answer = shared.control.WaitExec(exec_id=exec_id)
    assert (answer.timed_out, answer.exec.state) == (False, agbox().EXEC_STATE_CANCELLED)
    assert shared.control.WaitExec(exec_id=exec_id).exec == answer.exec


# -- deadlines of commands


def test_a_command_past_its_deadline_is_killed(shared, box):
    exec_id = shared.start(box, *FOREVER, deadline={"nanos": 100_000_000}).exec_id
    ended = shared.ended(exec_id)
    assert (ended.state, ended.exit_code) == (agbox().EXEC_STATE_FAILED, 137)
    assert ended.error_code == "EXEC_DEADLINE_EXCEEDED"
    assert ended.error
    assert ended.deadline.nanos == 100_000_000
    assert ended.HasField("created_at")


def test_a_command_within_its_deadline_is_left_alone(shared, box):
    ended = shared.run(box, *TRUE, deadline={"seconds": 60})
    assert ended.state == agbox().EXEC_STATE_FINISHED


# -- figures


def test_the_daemon_counts(start_daemon, connect):
    daemon = start_daemon()
    client = connect(daemon)
    box = client.ready()
    client.deleted()
    client.start(box, *FOREVER)
    stream = client.follow(box)
    next(stream)
    # Those who waited for the sandboxes are gone in their own time.
    wait_for(lambda: client.control.GetStats().subscribers == 1, "there is one subscriber")
    stats = client.control.GetStats()
    assert stats.pid == daemon.process.pid
    assert stats.backend == "fake"
    assert stats.version == client.box.Ping().version
    assert {state_name(c.state): c.count for c in stats.sandboxes} == {"READY": 1, "DELETED": 1}
    assert stats.active_execs == 1
    assert stats.subscribers == 1
    assert stats.rss_bytes > 1 << 20
    assert stats.rpc.connections == 1
    assert stats.store.commits > 0
    assert stats.store.file_bytes > 0
    stream.cancel()
    wait_for(lambda: client.control.GetStats().subscribers == 0, "the subscriber is gone")


# -- what a sandbox uses


def test_a_sandbox_is_told_with_what_it_uses(shared):
    box = shared.ready(companion_containers=[{"name": "cache", "image": "fake:1"}])
    answer = shared.control.GetSandbox(sandbox_id=box)
    assert answer.sandbox.sandbox_id == box
    assert answer.use.memory_bytes > 0
    assert not answer.use.HasField("disk_limit_bytes")
    assert answer.use.io_written_bytes == 0 and answer.use.HasField("io_written_bytes")
    assert [c.name for c in answer.companions] == ["cache"]
    assert answer.companions[0].use.pids > 0
    assert answer.use_error == ""


def test_what_is_stopped_uses_its_disk_alone(shared):
    use = shared.control.GetSandbox(sandbox_id=shared.stopped()).use
    assert [field.name for field, _ in use.ListFields()] == ["disk_bytes"]


def test_what_is_deleted_uses_nothing(shared):
    answer = shared.control.GetSandbox(sandbox_id=shared.deleted())
    assert state_name(answer.sandbox.state) == "DELETED"
    assert not answer.HasField("use") and answer.use_error == ""


def test_a_use_that_cannot_be_had_is_said(shared):
    box = shared.ready(labels={"fake.use": "fail UNAVAILABLE the engine is away"})
    answer = shared.control.GetSandbox(sandbox_id=box)
    assert state_name(answer.sandbox.state) == "READY"
    assert not answer.HasField("use") and answer.use_error == "the engine is away"


def test_use_of_a_sandbox_that_nobody_has(shared):
    found = refused(shared.control.GetSandbox, sandbox_id="no-such-box")
    assert found.code == "NOT_FOUND"


# -- a copy of the store


def test_a_backup_restores(start_daemon, connect, tmp_path):
    daemon = start_daemon()
    client = connect(daemon)
    box = client.ready(labels={"kept": "yes"})
    client.run(box, *TRUE)
    history = client.history(box)
    stored = b"".join(m.data for m in client.control.Backup(seconds=CALL_S))
    later = client.ready()
    daemon.stop()
    (data,) = daemon.data.rglob("data.mdb")
    data.write_bytes(stored)
    daemon.start()
    client = connect(daemon)
    assert client.history(box)[: len(history)] == history
    assert dict(client.get(box).labels) == {"kept": "yes"}
    assert client.refused("GetSandbox", sandbox_id=later).reason == "SANDBOX_NOT_FOUND"


# -- what every gRPC client may expect


def test_health_is_told(shared):
    stub = health_pb2_grpc.HealthStub(shared.channel)
    for service in ("", "agbox.v1.SandboxService", "agentix.v1.ControlService"):
        answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=CALL_S)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    found = refused(stub.Check, health_pb2.HealthCheckRequest(service="nobody"), timeout=CALL_S)
    assert found.code == "NOT_FOUND"


def test_a_message_over_4_mib_is_refused(shared):
    labels = {"x": "y" * (4 << 20)}
    found = shared.refused("CreateSandbox", create_spec={"image": "image", "labels": labels})
    assert found.code == "RESOURCE_EXHAUSTED"
    assert shared.box.Ping().version
