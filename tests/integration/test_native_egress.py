"""Native sandboxes with an egress list."""

import pytest
from egress_cases import *  # noqa: F403
from egress_cases import NAMED, PORT, closed
from native_fixtures import *  # noqa: F403

pytestmark = pytest.mark.deadline(120)


def test_sandbox_asks_no_name_server_that_is_not_on_the_list(stage):
    one, two = closed(stage, f"{NAMED}:{PORT}"), closed(stage, f"{NAMED}:53")
    assert stage.runs(one, "grep", "-q", "^nameserver", "/etc/resolv.conf") == 1
    assert stage.runs(two, "grep", "-q", f"^nameserver {NAMED}$", "/etc/resolv.conf") == 0
    assert stage.runs(one, "timeout", "3", "nslookup", "secret.example.test") != 0
