"""CreateSandbox: refusals, their messages, and their order."""

import json
import os
import socket

import pytest
from agxtest.agbox import IMAGE, refused, state_name, unique
from agxtest.protos import agbox

RESERVED = "AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS"


@pytest.fixture(name="paths", scope="module")
def fixture_paths(tmp_path_factory):
    """Sources of mounts and copies, by the names that the cases below use."""
    root = tmp_path_factory.mktemp("paths")
    (root / "dir").mkdir()
    (root / "file").write_text("x")
    (root / "link").symlink_to(root / "file")
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(root / "sock"))
    return root


def seconds(n):
    """A duration as the request's fields take it."""
    return {"seconds": n}


def health(*test):
    return {"test": test}


def companion(name="db", image=IMAGE, **fields):
    return {"name": name, "image": image, **fields}


def at(value, paths):
    """Replaces `@name` by that path, in all of a spec."""
    if isinstance(value, str):
        return str(paths / value[1:]) if value.startswith("@") else value
    if isinstance(value, dict):
        return {k: at(v, paths) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [at(v, paths) for v in value]
    return value


def attempt(client, spec, sandbox_id="", config_yaml=b""):
    spec = agbox().CreateSpec(**({"image": IMAGE} | spec))
    return refused(
        client.box.CreateSandbox, create_spec=spec, sandbox_id=sandbox_id, config_yaml=config_yaml
    )


def mount(source="@file", target="/t"):
    return {"source": source, "target": target}


# Message of each refusal: the whole text, or with an ellipsis its beginning.
REFUSALS = [
    ({"image": ""}, "create_spec.image is required"),
    ({"idle_ttl": seconds(-1)}, "idle_ttl must not be negative"),
    ({"envs": {RESERVED: "1"}}, f"envs.{RESERVED} is reserved..."),
    # mounts
    ({"mounts": [mount("")]}, "mount source is required"),
    ({"mounts": [mount("~other/x")]}, "~username syntax is not supported: ..."),
    ({"mounts": [mount("@file", "~other/x")]}, "~username syntax is not supported: ..."),
    ({"mounts": [mount("x/y")]}, "mount source must be absolute: ..."),
    ({"mounts": [mount("@missing")]}, "mount source path is invalid: lstat ..."),
    ({"mounts": [mount("@link")]}, "mount source must not be a symlink: ..."),
    (
        {"mounts": [mount("@fifo")]},
        "mount source must be a file, directory, or unix socket: ...",
    ),
    ({"mounts": [mount("@file", "")]}, "mount target is required"),
    ({"mounts": [mount("@file", "t")]}, "mount target must be absolute: ..."),
    (
        {"mounts": [mount(), mount("@dir")]},
        "conflicting target /t between mount and mount",
    ),
    # copies
    ({"copies": [mount("")]}, "copy source is required"),
    ({"copies": [mount("~other/x")]}, "~username syntax is not supported: ..."),
    ({"copies": [mount("@file", "~other/x")]}, "~username syntax is not supported: ..."),
    ({"copies": [mount("x/y")]}, "copy source must be absolute: ..."),
    ({"copies": [mount("@missing")]}, "copy source path is invalid: lstat ..."),
    ({"copies": [mount("@link")]}, "copy source must not be a symlink: ..."),
    (
        {"copies": [mount("@fifo")]},
        "copy source must be a file, directory, or unix socket: ...",
    ),
    ({"copies": [mount("/")]}, "copy source must not be the root directory"),
    ({"copies": [mount("/..//.", "")]}, "copy source must not be the root directory"),
    ({"copies": [mount("@file", "")]}, "copy target is required"),
    ({"copies": [mount("@file", "t")]}, "copy target must be absolute: ..."),
    (
        {"mounts": [mount()], "copies": [mount("@dir")]},
        "conflicting target /t between mount and copy",
    ),
    # ports
    (
        {"ports": [{"container_port": 0, "host_port": 1}]},
        "port container_port must be between 1 and 65535, got 0",
    ),
    (
        {"ports": [{"container_port": 65536, "host_port": 0}]},
        "port container_port must be between 1 and 65535, got 65536",
    ),
    (
        {"ports": [{"container_port": 1, "host_port": 70000, "protocol": 9}]},
        "port host_port must be between 1 and 65535, got 70000",
    ),
    (
        {"ports": [{"container_port": 1, "host_port": 1, "protocol": 3}]},
        "port protocol must be TCP, UDP, or SCTP, got 3",
    ),
    (
        {"ports": [{"container_port": n, "host_port": 5} for n in (1, 2)]},
        "duplicate host_port 5 with protocol tcp",
    ),
    (
        {"ports": [{"container_port": n, "host_port": 5, "protocol": 1} for n in (1, 2)]},
        "duplicate host_port 5 with protocol udp",
    ),
    # companions and commands
    (
        {"companion_containers": [companion(command=["a", ""])]},
        "companion_containers[db].command[1]: empty string entry is not allowed",
    ),
    ({"command": ["a", ""]}, "command[1]: ..."),
    # limits: the path of the field comes first
    ({"cpu_limit": "x"}, "cpu_limit: ..."),
    ({"memory_limit": "x"}, "memory_limit: ..."),
    ({"disk_limit": "x"}, "disk_limit: ..."),
    (
        {"companion_containers": [companion(memory_limit="x")]},
        "companion_containers[db].memory_limit: ...",
    ),
    # builtin tools
    ({"builtin_tools": ["uv", "npm", "uv"]}, 'duplicate builtin resource "uv"'),
    ({"builtin_tools": ["zz"]}, 'unknown builtin resource "zz"'),
]


def same(message, expected):
    """Whether the message is the expected one; `...` stands for whatever follows."""
    if expected.endswith("..."):
        return message.startswith(expected[:-3]) and len(message) > len(expected) - 3
    return message == expected


@pytest.mark.parametrize(("spec", "expected"), REFUSALS)
def test_a_spec_is_refused(shared, paths, spec, expected):
    found = attempt(shared, at(spec, paths))
    assert same(found.message.replace(str(paths), "@"), expected), found
    assert (found.code, found.reason) == ("INVALID_ARGUMENT", "")


@pytest.mark.parametrize(
    "spec",
    [
        [companion(name="")],
        [companion(image="")],
        [companion(), companion()],
        [companion(post_start_on_primary=["true"])],
        [companion(healthcheck=health())],
        [companion(healthcheck=health("true"))],
        [companion(healthcheck=health("NONE", "true"))],
        [companion(healthcheck=health("CMD"))],
        [companion(healthcheck=health("CMD-SHELL"))],
    ],
    ids=[
        "no name",
        "no image",
        "name twice",
        "hooks without a healthcheck",
        "empty test",
        "unknown test",
        "NONE with more",
        "CMD alone",
        "CMD-SHELL alone",
    ],
)
def test_a_companion_is_refused(shared, spec):
    found = attempt(shared, {"companion_containers": spec})
    assert (found.code, found.reason) == ("INVALID_ARGUMENT", ""), found
    assert found.message


def exists(client, sandbox_id):
    return sandbox_id in [each.sandbox_id for each in client.box.ListSandboxes().sandboxes]


@pytest.mark.parametrize("name", ["a\n10.0.0.1 example.org", "a b", "a#b", "a\t"])
def test_a_companion_s_name_that_breaks_a_hosts_file_is_refused(shared, name):
    sandbox_id = unique()
    spec = {"companion_containers": [companion(), companion(name)]}
    found = attempt(shared, spec, sandbox_id)
    assert (found.code, found.reason) == ("INVALID_ARGUMENT", "")
    rule = "must not contain blanks, control characters or '#'"
    assert found.message == f"companion_containers[1].name '{name}' {rule}"
    text = f"image: a\ncompanion_containers: {{{json.dumps(name)}: {{image: b}}}}\n"
    found = attempt(shared, {}, sandbox_id, text.encode())
    assert found.message == f"companion_containers[0].name '{name}' {rule}"
    assert not exists(shared, sandbox_id)


@pytest.mark.parametrize("name", ["my_db", "db.local", "x" * 64])
def test_a_companion_s_name_is_a_dns_label_except_with_compat(shared, shared_daemon, name):
    sandbox_id = unique()
    companions = [companion(name)]
    if shared_daemon.mode == "agbox":
        assert shared.ready(sandbox_id, companion_containers=companions)
        return
    found = attempt(shared, {"companion_containers": companions}, sandbox_id)
    assert (found.code, found.reason) == ("INVALID_ARGUMENT", "")
    assert found.message.startswith(f"companion_containers[0].name '{name}' must be 1 to 63 ")
    assert not exists(shared, sandbox_id)


def test_a_refusal_of_gpus_names_the_value_and_what_is_allowed(shared):
    found = attempt(shared, {"gpus": "two"})
    assert found.code == "INVALID_ARGUMENT"
    for part in ("gpus", "two", '""', "all"):
        assert part in found.message, found


def test_without_spec_and_yaml_it_is_refused(shared):
    found = refused(shared.box.CreateSandbox)
    assert (found.code, found.message) == ("INVALID_ARGUMENT", "create_spec is required")
    found = refused(shared.box.CreateSandbox, sandbox_id="x")
    assert found.message == "create_spec is required"


# One spec that breaks each check, in the order of the checks: the first that fails is told.
ORDER = [
    ({"image": ""}, "create_spec.image is required"),
    ({"idle_ttl": seconds(-1)}, "idle_ttl must not be negative"),
    ({"gpus": "two"}, "gpus ..."),
    ({"envs": {RESERVED: "1"}}, f"envs.{RESERVED} is reserved..."),
    ({"mounts": [mount("")]}, "mount source is required"),
    ({"copies": [mount("")]}, "copy source is required"),
    (
        {"ports": [{"container_port": 0}]},
        "port container_port must be between 1 and 65535, got 0",
    ),
    ({"companion_containers": [companion(command=[""])]}, "companion_containers[db].command[0]..."),
    ({"command": [""]}, "command[0]: ..."),
    ({"cpu_limit": "x"}, "cpu_limit: ..."),
    ({"memory_limit": "x"}, "memory_limit: ..."),
    ({"disk_limit": "x"}, "disk_limit: ..."),
    ({"builtin_tools": ["zz"]}, 'unknown builtin resource "zz"'),
]


@pytest.mark.parametrize("first", range(len(ORDER)), ids=[str(s) for s, _ in ORDER])
def test_the_first_check_that_fails_is_told(shared, paths, first):
    spec = {}
    for broken, _ in ORDER[first:]:
        spec |= broken
    found = attempt(shared, at(spec, paths), sandbox_id="x")
    assert same(found.message, ORDER[first][1]), found
    found = attempt(shared, at(spec, paths), sandbox_id="x", config_yaml=b"nonsense: 1\n")
    assert same(found.message, "invalid config_yaml: ..."), found


def test_companions_limits_come_behind_those_of_the_sandbox(shared):
    companions = [companion("a", cpu_limit="x"), companion("b", cpu_limit="y")]
    spec = {"companion_containers": companions, "disk_limit": "z"}
    assert attempt(shared, spec).message.startswith("disk_limit: ")
    found = attempt(shared, {"companion_containers": companions})
    assert found.message.startswith("companion_containers[a].cpu_limit: ")


@pytest.mark.parametrize(
    "bad", ["abc!", "-abc", "abc-", "_abc", "abc_", "a b c", "a.bc", "abcé", "a" * 201, "a/bc"]
)
def test_an_id_of_other_characters_is_refused(shared, bad):
    found = attempt(shared, {}, sandbox_id=bad)
    assert (found.code, found.reason) == ("INVALID_ARGUMENT", ""), found
    assert "sandbox_id" in found.message


@pytest.mark.parametrize("short", ["a", "abc"])
def test_a_short_id_is_refused(shared, short):
    found = attempt(shared, {}, sandbox_id=short)
    assert found.message == "sandbox_id must be at least 4 characters"


def test_ids_of_4_and_of_200_characters_are_taken(shared, shared_daemon):
    four = {"agentix": "4abc", "agbox": "A-_9"}[shared_daemon.mode]
    assert shared.create(four).sandbox_id == four
    long = unique("long").ljust(200, "x")
    assert shared.create(long).sandbox_id == long


def test_without_an_id_it_gets_a_uuid(shared):
    made = shared.create()
    parts = made.sandbox_id.split("-")
    assert [len(p) for p in parts] == [8, 4, 4, 4, 12]
    assert parts[2][0] == "4"
    assert parts[3][0] in "89ab"
    assert made.sandbox_id == made.sandbox_id.lower()


def test_an_id_is_taken_for_ever(shared):
    sandbox_id = shared.deleted()
    found = attempt(shared, {}, sandbox_id=sandbox_id)
    assert found.code == "ALREADY_EXISTS"
    assert found.reason == "SANDBOX_ID_ALREADY_EXISTS"
    assert found.metadata == {"sandbox_id": sandbox_id}
    assert found.message == f"sandbox_id {sandbox_id} already exists"


def test_a_refused_request_leaves_the_id_free(shared):
    sandbox_id = unique("free")
    attempt(shared, {"gpus": "two"}, sandbox_id=sandbox_id)
    assert shared.create(sandbox_id).sandbox_id == sandbox_id


def test_a_whole_spec_is_accepted_and_its_handle_is_full(shared, shared_daemon, paths):
    spec = {
        "mounts": [mount("@file", "/m1"), mount("@dir", "/m2"), mount("@sock", "~/m3")],
        "copies": [{**mount("@dir", "/c1"), "exclude_patterns": ["*.o", "[", ""]}],
        "ports": [
            {"container_port": 80, "host_port": 8080},
            {"container_port": 80, "host_port": 8080, "protocol": 1},
            {"container_port": 65535, "host_port": 65535, "protocol": 2},
        ],
        "builtin_tools": ["npm", "uv"],
        "labels": {"a": "1", "": "", "ü": "ö"},
        "envs": {"E": "1"},
        "idle_ttl": seconds(0),
        "command": ["sleep", "600"],
        "cpu_limit": "0.5",
        "memory_limit": "64m",
        "disk_limit": "1g",
        "companion_containers": [
            companion(
                "zz",
                envs={"SECRET": "s"},
                healthcheck={
                    "test": ["CMD-SHELL", "true"],
                    "interval": seconds(3),
                    "timeout": seconds(2),
                    "retries": 4,
                    "start_period": seconds(1),
                },
                post_start_on_primary=["echo hi"],
                command=["run"],
                cpu_limit="1",
                memory_limit="32m",
                disk_limit="1g",
            ),
            companion("aa", healthcheck=health("NONE")),
        ],
    }
    made = shared.create(unique("full"), **at(spec, paths))
    assert state_name(made.state) == "PENDING"
    assert made.last_event_sequence == 1
    assert made.image == IMAGE
    assert dict(made.labels) == spec["labels"]
    assert (made.error_code, made.error_message) == ("", "")
    assert made.HasField("created_at")
    assert made.HasField("state_changed_at")
    zz, aa = made.companion_containers
    assert (zz.name, aa.name) == ("zz", "aa")
    assert (zz.cpu_limit, zz.memory_limit, zz.disk_limit) == ("1", "32m", "1g")
    assert list(zz.healthcheck.test) == ["CMD-SHELL", "true"]
    assert zz.healthcheck.interval.seconds == 3
    assert zz.healthcheck.retries == 4
    assert not zz.healthcheck.HasField("start_interval")
    assert list(zz.post_start_on_primary) == ["echo hi"]
    assert list(zz.command) == ["run"]
    assert list(aa.healthcheck.test) == ["NONE"]
    # Values of the environment are secrets that only the peer's clients expect to see again.
    assert dict(zz.envs) == ({"SECRET": "s"} if shared_daemon.mode == "agbox" else {})


def test_an_empty_command_is_none(shared):
    assert shared.create(unique("cmd"), command=[]).last_event_sequence == 1
