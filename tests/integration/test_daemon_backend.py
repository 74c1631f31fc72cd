"""The backends of agentixd, and the reasons why it does not start with one of them."""

import re
import socket

import grpc
import pytest
from agxtest.control import call
from agxtest.daemon import Place


class ProductPlace(Place):
    def backend(self):
        """The backend of the test, or the default."""
        return []


@pytest.fixture(name="place")
def fixture_place(deadline):
    place = ProductPlace()
    yield place
    place.close()


@pytest.mark.parametrize("choice", ["nonsense", "fake:/x"])
def test_a_backend_that_there_is_not_is_told_with_those_that_there_are(place, choice):
    done = place.call("--backend", choice)
    assert done.returncode == 1
    assert done.stderr == (
        f"agentixd: there is no backend '{choice}'; there are: native, docker[:HOST]\n"
    )


# The daemon may not make packet filters, even if root runs the tests.
UNPRIVILEGED = ("setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin")


@pytest.mark.parametrize("options", [("--foreground",), ()], ids=["foreground", "background"])
def test_docker_without_the_right_to_make_rules_does_not_start_and_says_what_helps(place, options):
    done = place.call("--backend", "docker", *options, prefix=UNPRIVILEGED)
    assert done.returncode == 1 and not place.run.exists()
    assert re.fullmatch(
        r"agentixd: .*CAP_NET_ADMIN.*: run it as root, or once 'sudo setcap cap_net_admin\+ep"
        r" /.*/agentixd'\n",
        done.stderr,
    )


@pytest.mark.parametrize("choice", ["", "native"])
def test_native_where_it_cannot_run_says_what_helps_and_what_else_there_is(place, choice):
    done = place.call("--backend", choice, prefix=UNPRIVILEGED)
    assert done.returncode == 1 and not place.run.exists()
    assert re.fullmatch(
        r"agentixd: the backend 'native' cannot run here \('agentixd --backend docker' takes a"
        r" Docker Engine instead\): .*run it as root.*\n",
        done.stderr,
    )


def test_docker_without_agentix_init_does_not_start(place):
    place.configure("docker: {isolation: off, init: /nonexistent/agentix-init}\n")
    done = place.call("--foreground", "--backend", "docker")
    assert done.returncode == 1 and not place.run.exists()
    assert done.stderr == "agentixd: '/nonexistent/agentix-init' is not a program\n"


def test_docker_host_that_is_none_is_refused(place):
    done = place.call("--foreground", "--backend", "docker:ssh://elsewhere")
    assert done.returncode == 2 and "ssh://" in done.stderr


def test_docker_is_served_before_any_engine_answers(place):
    place.start("--backend", f"docker:unix://{place.top}/none.sock")
    assert call(place.socket, "agentix.v1.ControlService/GetStats").backend == "docker"
    made = call(
        place.socket,
        "agbox.v1.SandboxService/CreateSandbox",
        sandbox_id="one-1",
        create_spec={"image": "test"},
    )
    assert made.sandbox.sandbox_id == "one-1"


def test_the_socket_of_its_engine_is_not_given_to_sandboxes(place):
    path = place.top / "engine.sock"
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(path))
        place.start("--backend", f"docker:unix://{path}")
        with pytest.raises(grpc.RpcError) as refused:
            call(
                place.socket,
                "agbox.v1.SandboxService/CreateSandbox",
                create_spec={"image": "i", "mounts": [{"source": str(path), "target": "/x"}]},
            )
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "is not given to sandboxes" in refused.value.details()
