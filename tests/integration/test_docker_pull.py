"""Images that an engine lacks: it pulls them, with credentials, and reports its progress to all."""

import base64
import contextlib
import json
import os
import threading

import grpc
import pytest
from agxtest import images
from agxtest.agbox import Client
from agxtest.protos import agbox
from agxtest.registry import Registry
from agxtest.server import wait_for
from docker_fixtures import *  # noqa: F403

pytestmark = pytest.mark.deadline(60)

LAYER_BYTES = 2_000_000


@pytest.fixture(name="registry")
def fixture_registry():
    registry = Registry()
    yield registry
    registry.close()


def layer(name):
    """A layer with a file that cannot be compressed."""
    tree = images.Tree()
    tree.file(name, os.urandom(LAYER_BYTES))
    return tree.finish()


def add_image(registry, name="box"):
    """The busybox image in three layers that no engine has."""
    return registry.add(name, "1", images.busybox().finish(), layer("one"), layer("two"))


class Watch:
    """WatchEvents, read by a thread."""

    def __init__(self, stage):
        self.client = Client(stage.daemon.channel())
        self.stream = self.client.control.WatchEvents(from_now=True)
        self.messages = [next(self.stream)]
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        with contextlib.suppress(grpc.RpcError):  # close()
            self.messages.extend(self.stream)

    def close(self):
        self.stream.cancel()
        self.thread.join()
        self.client.close()

    def pulls(self):
        return [m.pull for m in list(self.messages) if m.HasField("pull")]

    def sequences(self, sandbox_id):
        """The sequence numbers of its events."""
        found = [m.event for m in list(self.messages) if m.HasField("event")]
        return [event.sequence for event in found if event.sandbox_id == sandbox_id]


@pytest.fixture(name="watch")
def fixture_watch(stage):
    watch = Watch(stage)
    yield watch
    watch.close()


def failed(stage, box):
    """The error message of a create, which must fail."""
    state = agbox().SANDBOX_STATE_FAILED
    wait_for(lambda: stage.state(box) == state, "the create fails")
    found = stage.client.get(box)
    assert found.error_code == "SANDBOX_CREATE_FAILED"
    return found.error_message


def test_pull_is_told_to_watchers_and_is_no_event(stage, registry, watch):
    registry.piece_seconds = 2  # the watch gets events of all layers before the pull ends
    image, box = add_image(registry), "told-1"
    stage.create(box, image=image)

    def heard():
        last = watch.pulls()[-1:]
        return last and last[0].layers_total == 3 and last[0].bytes_total > 2 * LAYER_BYTES

    wait_for(heard, "the watch has heard of all layers")
    registry.piece_seconds = 0
    stage.client.until(box, agbox().SANDBOX_READY)
    assert stage.runs(box) == 0
    wait_for(lambda: watch.sequences(box)[:3] == [1, 2, 3], "the watch has come to READY, too")
    pulls = watch.pulls()
    assert len(pulls) >= 2
    assert {(pull.sandbox_id, pull.image) for pull in pulls} == {(box, image)}
    assert pulls[-1].layers_total == 3
    assert pulls[-1].bytes_total > 2 * LAYER_BYTES
    done = [pull.bytes_done for pull in pulls]
    assert done == sorted(done) and done[-1] > done[0]
    for pull in pulls:
        assert pull.layers_done <= pull.layers_total and pull.bytes_done <= pull.bytes_total
    positions = [m.position for m in list(watch.messages)]
    assert positions == sorted(positions)


def test_image_that_is_there_is_not_pulled(stage, registry, watch):
    image = add_image(registry)
    stage.ready("first-1", image=image)
    registry.blobs.clear()
    registry.manifests.clear()
    stage.ready("second-1", image=image)
    assert {pull.sandbox_id for pull in watch.pulls()} <= {"first-1"}


def test_sandboxes_of_one_image_share_a_pull(stage, registry, watch):
    registry.piece_seconds = 2  # the pull ends when all have heard of it
    image = add_image(registry)
    names = [f"box-{n}" for n in range(4)]
    for name in names:
        stage.create(name, image=image)
    wait_for(lambda: {pull.sandbox_id for pull in watch.pulls()} == set(names), "all hear")
    registry.piece_seconds = 0
    ready = agbox().SANDBOX_STATE_READY
    for name in names:
        wait_for(lambda name=name: stage.state(name) == ready, "it is ready")


def test_credentials_come_from_dockers_configuration(stage, registry, engine):
    registry.user = ("me", "secret")
    image = add_image(registry)
    stage.create("none-1", image=image)
    message = failed(stage, "none-1")
    assert image in message and "secret" not in message
    config = engine.directory / "config" / "config.json"
    auth = base64.b64encode(b"me:secret").decode()
    config.write_text(json.dumps({"auths": {registry.host: {"auth": auth}}}))
    try:
        assert stage.runs(stage.ready("some-1", image=image)) == 0
    finally:
        config.unlink()


def test_image_that_there_is_not_fails_the_create_with_its_name(stage, registry):
    stage.create("none-1", image=f"{registry.host}/none:1")
    assert f"pull image '{registry.host}/none:1'" in failed(stage, "none-1")


def test_failure_in_the_stream_of_a_pull_fails_the_create(stage, registry):
    image = add_image(registry)
    registry.blobs.popitem()  # its last layer, which the engine lacks
    stage.create("half-1", image=image)
    assert f"pull image '{image}'" in failed(stage, "half-1")


def test_delete_ends_a_pull(stage, registry, engine):
    registry.piece_seconds = 600
    image = add_image(registry)
    before = registry.pieces
    stage.create("slow-1", image=image)
    wait_for(lambda: registry.pieces > before, "a layer is on its way")
    stage.client.box.DeleteSandbox(sandbox_id="slow-1")
    deleted = agbox().SANDBOX_STATE_DELETED
    wait_for(lambda: stage.state("slow-1") == deleted, "it is deleted")
    registry.piece_seconds = 0
    assert stage.runs(stage.ready("next-1", image=image)) == 0
