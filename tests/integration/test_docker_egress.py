"""Sandboxes with an egress list on a real Docker Engine."""

import pytest
from docker_fixtures import *  # noqa: F403
from egress_cases import *  # noqa: F403
from egress_cases import NAMED, PORT, closed

pytestmark = pytest.mark.deadline(120)


def test_engine_asks_no_name_server_that_is_not_on_the_list(stage):
    one, two = closed(stage, f"{NAMED}:{PORT}"), closed(stage, f"{NAMED}:53")
    assert stage.inspect(one)["HostConfig"]["Dns"] == ["192.0.2.53"]
    assert stage.inspect(two)["HostConfig"]["Dns"] == [NAMED]
    assert stage.runs(one, "timeout", "3", "nslookup", "secret.example.test") != 0
