"""ListSandboxes and DeleteSandboxes: order, selectors, omitted sandboxes. And Ping."""

import pytest
from agxtest.agbox import state_name, unique
from agxtest.protos import agbox


def listed(client, **fields):
    return [s.sandbox_id for s in client.box.ListSandboxes(**fields).sandboxes]


def test_ping_tells_who_answers(shared, shared_daemon):
    answer = shared.box.Ping()
    assert answer.daemon == {"agentix": "agentixd", "agbox": "agboxd"}[shared_daemon.mode]
    assert answer.version


def test_in_compatibility_mode_both_sockets_serve(start_daemon, connect):
    daemon = start_daemon("agbox")
    sandbox_id = connect(daemon).ready()
    daemon.mode = "agentix"
    assert connect(daemon).get(sandbox_id).sandbox_id == sandbox_id


def test_the_newest_come_first(start_daemon, mode, connect):
    client = connect(start_daemon(mode))
    assert listed(client) == []
    made = [client.create(f"n{i:03}") for i in (5, 1, 9, 3)]
    order = sorted(made, key=lambda s: s.sandbox_id)
    order.sort(key=lambda s: s.created_at.ToNanoseconds(), reverse=True)
    assert listed(client) == [s.sandbox_id for s in order]


@pytest.fixture(name="labelled", scope="module")
def fixture_labelled(shared):
    """Three sandboxes by their labels; the group is nobody else's."""
    group = unique("group")
    for name, more in (("a", {"x": "1"}), ("b", {"x": "1", "y": ""}), ("c", {})):
        shared.ready(f"{group}-{name}", labels={"group": group} | more)
    return group


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ({}, "abc"),
        ({"x": "1"}, "ab"),
        ({"x": "1", "y": ""}, "b"),
        ({"y": ""}, "b"),
        ({"x": ""}, ""),
        ({"x": "2"}, ""),
        ({"z": ""}, ""),
    ],
)
def test_all_labels_must_match(shared, labelled, selector, found):
    ids = listed(shared, label_selector=selector | {"group": labelled})
    assert sorted(ids) == [f"{labelled}-{c}" for c in found]


def test_deleted_sandboxes_are_listed_on_request(shared, shared_daemon):
    group = {"group": unique("gone")}
    gone, going = shared.deleted(labels=group), shared.ready(labels=group)
    hold = shared_daemon.world.hold("delete", going)
    shared.box.DeleteSandbox(sandbox_id=going)
    assert listed(shared, label_selector=group) == [going]
    assert sorted(listed(shared, label_selector=group, include_deleted=True)) == sorted(
        [gone, going]
    )
    hold.release()
    shared.until(going, agbox().SANDBOX_DELETED)
    assert listed(shared, label_selector=group) == []


def test_delete_by_labels(shared, shared_daemon):
    group = unique("group")
    labels = {"group": group}
    ids = [shared.ready(f"{group}-{c}", labels=labels) for c in "cab"]
    other = shared.ready(labels={"group": "other"})
    gone = shared.deleted(labels=labels)
    going = shared.ready(labels=labels)
    hold = shared_daemon.world.hold("delete", going)
    shared.box.DeleteSandbox(sandbox_id=going)
    answer = shared.box.DeleteSandboxes(label_selector=labels)
    hold.release()
    assert list(answer.deleted_sandbox_ids) == sorted(ids)
    assert answer.deleted_count == 3
    for each in (*ids, going):
        shared.until(each, agbox().SANDBOX_DELETED)
    assert state_name(shared.get(other).state) == "READY"
    assert state_name(shared.get(gone).state) == "DELETED"
    again = shared.box.DeleteSandboxes(label_selector=labels)
    assert (list(again.deleted_sandbox_ids), again.deleted_count) == ([], 0)


def test_a_delete_of_everything_is_refused(shared):
    found = shared.refused("DeleteSandboxes")
    assert (found.code, found.reason) == ("INVALID_ARGUMENT", "")
    assert found.message == "label_selector must not be empty"
