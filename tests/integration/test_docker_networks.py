"""Networks that are prepared in advance (docker.networks_ready), on a real Docker Engine."""

import socket

import pytest
from agxtest import nft
from agxtest.agbox import unique
from agxtest.protos import agbox
from agxtest.server import wait_for
from docker_fixtures import *  # noqa: F403

pytestmark = pytest.mark.deadline(120)
READY = 2


def spare(stage):
    """The prepared networks that no container uses."""
    used = {c["HostConfig"]["NetworkMode"] for c in stage.engine.containers()}
    found = {n["Name"] for n in stage.engine.networks()}
    return {name for name in found - used if name.startswith("agentix.ready-")}


def filled(stage):
    return wait_for(lambda: len(spare(stage)) == READY and spare(stage), "all are there", 60)


def network_of(stage, sandbox_id):
    return stage.inspect(sandbox_id)["HostConfig"]["NetworkMode"]


@pytest.fixture(name="stage")
def fixture_stage(start_stage):
    """At the end a daemon with `networks_ready: 0` removes the networks that are left."""
    stage = start_stage(config={"docker": {"networks_ready": READY}})
    yield stage
    stage.daemon.kill()
    stage.engine.settle()  # so that the next daemon also sees networks that were made late
    config = stage.daemon.options[1]
    kept, none = f"networks_ready: {READY}", "networks_ready: 0"
    assert kept in config.read_text()
    config.write_text(config.read_text().replace(kept, none))
    stage.start()
    wait_for(lambda: not spare(stage), "none is left", 60)


def test_create_takes_one_and_another_is_made(stage):
    before = filled(stage)
    box = stage.ready()
    assert network_of(stage, box) in before
    assert stage.runs(box) == 0
    filled(stage)
    assert len(stage.engine.networks()) == READY + 1


def test_its_network_goes_with_the_sandbox_and_is_not_used_again(stage):
    filled(stage)
    box = stage.ready()
    network = network_of(stage, box)
    bridge = network.removeprefix("agentix.ready-")
    assert bridge in nft.run("list ruleset")
    stage.client.deleted(box)
    filled(stage)
    assert network not in {n["Name"] for n in stage.engine.networks()}
    wait_for(lambda: bridge not in nft.run("list ruleset"), "its rules are gone")


def test_restart_keeps_those_in_use_and_makes_the_others_anew(stage):
    filled(stage)
    runs, stands = stage.ready(), stage.client.stopped(image=stage.image)
    kept = {network_of(stage, runs), network_of(stage, stands)}
    before = filled(stage)
    stage.daemon.kill()
    stage.engine.settle()
    stage.start()
    wait_for(lambda: spare(stage) and not spare(stage) & before, "others are there", 60)
    filled(stage)
    assert kept <= {n["Name"] for n in stage.engine.networks()}
    assert all(name.removeprefix("agentix.ready-") in nft.run("list ruleset") for name in kept)
    assert stage.runs(runs) == 0
    stage.client.box.ResumeSandbox(sandbox_id=stands)
    wait_for(lambda: stage.state(stands) == agbox().SANDBOX_STATE_READY, "it runs again", 60)
    assert stage.runs(stands) == 0


def test_create_that_fails_leaves_no_network(stage):
    filled(stage)
    box = unique("box")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        stage.create(box, ports=[{"container_port": 80, "host_port": taken.getsockname()[1]}])
        wait_for(lambda: stage.state(box) == agbox().SANDBOX_STATE_FAILED, "it has failed", 60)
    filled(stage)
    assert len(stage.engine.networks()) == READY
