"""config_yaml: its allowed content, and how create_spec overrides it."""

import pytest
from agxtest.agbox import refused, unique
from agxtest.protos import agbox


def create(client, text, **spec):
    request = {"config_yaml": text.encode(), "sandbox_id": unique("yaml")}
    if spec:
        request["create_spec"] = agbox().CreateSpec(**spec)
    return client.box.CreateSandbox(**request).sandbox


def attempt(client, text, **spec):
    request = {"config_yaml": text.encode()}
    if spec:
        request["create_spec"] = agbox().CreateSpec(**spec)
    found = refused(client.box.CreateSandbox, **request)
    assert (found.code, found.reason) == ("INVALID_ARGUMENT", ""), found
    return found.message


# -- what is no configuration


@pytest.mark.parametrize(
    "text",
    [
        "nonsense: 1",
        "image: a\nentrypoint: [x]",
        "image: a\nsandbox_id: abcd",
        "image: a\nimage: b",
        "image: a\nlabels: {x: 1, x: 2}",
        "image: a\nmounts: [{source: /usr, target: /t, mode: rw}]",
        "image: a\ncompanion_containers: {db: {image: b, ports: []}}",
        "image: a\ncompanion_containers: [{name: db, image: b}]",
        "image: a\ncompanion_containers: {db: {image: b}, db: {image: c}}",
        "- image",
        "image",
        "# nothing but a comment",
        "\n\n",
        "image: [a",
        "image: a\ncommand: sleep",
        "image: a\ncommand: []",
        "image: a\ncommand: [a, '']",
        "image: a\nbuiltin_tools: uv",
        "image: a\nidle_ttl: 5",
        "image: a\nidle_ttl: soon",
        "image: a\nports: [{container_port: -1, host_port: 1}]",
        "image: a\nports: [{container_port: 1, host_port: 4294967296}]",
        "image: a\nports: [{container_port: x, host_port: 1}]",
        "image: a\nports: [{container_port: 1, host_port: 1, protocol: icmp}]",
        "image: a\nmounts: [{source: /usr, target: /t, writable: maybe}]",
        "image: a\ncompanion_containers: {db: {image: b, healthcheck: {interval: 5}}}",
    ],
)
def test_yaml_is_refused(shared, text):
    message = attempt(shared, text)
    assert message.startswith("invalid config_yaml: "), message
    assert len(message) > len("invalid config_yaml: ")


def test_an_unknown_key_is_named_with_its_line(shared):
    message = attempt(shared, "image: a\n\nnonsense: 1\n")
    assert "nonsense" in message
    assert "3" in message


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("image: a\ncommand: []", "empty array is not allowed"),
        ("image: a\ncommand: [a, b, '']", "2"),
        (
            "image: a\ncompanion_containers: {db: {image: b, command: []}}",
            "companion_containers[db].command",
        ),
        (
            "image: a\ncompanion_containers: {db: {image: b, command: [x, '']}}",
            "companion_containers[db].command",
        ),
    ],
)
def test_a_command_that_is_none_is_named(shared, text, named):
    assert named in attempt(shared, text)


# -- what is one


@pytest.mark.parametrize(
    "text",
    [
        "image: a",
        "image: a\n---\nnonsense: 1",
        "image: a\nlabels: null\nenvs: ~\ncommand:\n",
        "image: a\ncpu_limit: 2\nmemory_limit: 1048576\nidle_ttl: 0",
        "image: a\nidle_ttl: ''",
        "image: a\nidle_ttl: 1h30m0.5s",
        "image: a\nmounts: [{source: /usr, target: /t, writable: yes}]",
        "image: a\nmounts: [{source: /usr, target: /t, writable: OFF}]",
        "image: a\nports: [{container_port: 80, host_port: 80, protocol: ' UDP '}]",
        "image: a\nports: [{container_port: 80.9, host_port: 80}]",
        "image: a\nbuiltin_tools: [uv, npm, uv]",
        "image: a\nlabels: &l {k: v}\nenvs: *l\n",
        "image: a\nlabels: &l {k: v}\nenvs: {<<: *l, m: w}\n",
    ],
)
def test_yaml_is_accepted(shared, text):
    assert create(shared, text).image == "a"


def test_scalars_are_their_text(shared):
    labels = create(
        shared, "image: 1.50\nlabels: {a: 007, b: true, c: 1e3, d: null, e: '', f: 0x10}"
    )
    assert labels.image == "1.50"
    want = {"a": "007", "b": "true", "c": "1e3", "d": "", "e": "", "f": "0x10"}
    assert dict(labels.labels) == want


def test_companions_are_sorted_by_name(shared):
    text = "image: a\ncompanion_containers: {zz: {image: z}, aa: {image: a}, mm: {image: m}}"
    made = create(shared, text)
    assert [c.name for c in made.companion_containers] == ["aa", "mm", "zz"]


def test_a_companion_has_all_its_fields(shared, shared_daemon):
    made = create(
        shared,
        """
image: a
companion_containers:
  db:
    image: postgres
    envs: {PASSWORD: 1}
    command: [postgres, -F]
    cpu_limit: 0.5
    memory_limit: 64m
    disk_limit: 1g
    post_start_on_primary: [echo hi]
    healthcheck:
      test: [CMD, pg_isready]
      interval: 1500ms
      timeout: 2s
      retries: 3
      start_period: 1m
      start_interval: 1s
""",
    )
    (db,) = made.companion_containers
    assert (db.name, db.image, list(db.command)) == ("db", "postgres", ["postgres", "-F"])
    assert (db.cpu_limit, db.memory_limit, db.disk_limit) == ("0.5", "64m", "1g")
    assert list(db.post_start_on_primary) == ["echo hi"]
    h = db.healthcheck
    assert list(h.test) == ["CMD", "pg_isready"]
    assert (h.interval.seconds, h.interval.nanos) == (1, 500_000_000)
    assert (h.timeout.seconds, h.retries) == (2, 3)
    assert (h.start_period.seconds, h.start_interval.seconds) == (60, 1)
    assert dict(db.envs) == ({"PASSWORD": "1"} if shared_daemon.mode == "agbox" else {})


# -- create_spec is laid over it


def test_an_image_replaces_that_of_the_yaml(shared):
    assert create(shared, "image: a", image="b").image == "b"
    assert create(shared, "image: a", labels={"x": "y"}).image == "a"


def test_an_image_may_come_of_either(shared):
    assert create(shared, "labels: {x: y}", image="b").image == "b"
    assert attempt(shared, "labels: {x: y}") == "create_spec.image is required"


def test_labels_join_and_those_of_the_spec_win(shared):
    made = create(shared, "image: a\nlabels: {x: yaml, y: yaml}", labels={"y": "spec", "z": "spec"})
    assert dict(made.labels) == {"x": "yaml", "y": "spec", "z": "spec"}


def test_companions_are_appended(shared):
    text = "image: a\ncompanion_containers: {zz: {image: z}, aa: {image: a}}"
    made = create(shared, text, companion_containers=[{"name": "mm", "image": "m"}])
    assert [c.name for c in made.companion_containers] == ["aa", "zz", "mm"]
    again = attempt(shared, text, companion_containers=[{"name": "zz", "image": "m"}])
    assert "zz" in again


@pytest.mark.parametrize(
    ("text", "spec", "message"),
    [
        (
            "image: a\nports: [{container_port: 1, host_port: 5}]",
            {"ports": [{"container_port": 2, "host_port": 5}]},
            "duplicate host_port 5 with protocol tcp",
        ),
        (
            "image: a\nmounts: [{source: /usr, target: /t}]",
            {"mounts": [{"source": "/usr", "target": "/t"}]},
            "conflicting target /t between mount and mount",
        ),
        (
            "image: a\ncopies: [{source: /bin/../etc/hostname, target: /t}]",
            {"mounts": [{"source": "/usr", "target": "/t"}]},
            "conflicting target /t between mount and copy",
        ),
    ],
)
def test_lists_are_appended_and_clashes_are_refused(shared, text, spec, message):
    assert attempt(shared, text, **spec) == message


def test_tools_are_joined_without_duplicates(shared):
    create(shared, "image: a\nbuiltin_tools: [uv, uv]", builtin_tools=["npm", "uv"])
    create(shared, "image: a", builtin_tools=["uv", "uv"])
    found = attempt(shared, "image: a\nbuiltin_tools: [zz]", builtin_tools=["uv"])
    assert found == 'unknown builtin resource "zz"'


def test_an_idle_time_is_replaced_even_by_zero(shared):
    text = "image: a\nidle_ttl: -5s"
    assert attempt(shared, text) == "idle_ttl must not be negative"
    create(shared, text, idle_ttl={"seconds": 0})
    assert attempt(shared, "image: a", idle_ttl={"seconds": -1}) == "idle_ttl must not be negative"


@pytest.mark.parametrize(
    ("key", "bad", "good"),
    [
        ("cpu_limit", "x", "1"),
        ("memory_limit", "x", "1g"),
        ("disk_limit", "x", "1g"),
        ("gpus", "two", "all"),
    ],
)
def test_what_is_set_in_the_spec_replaces(shared, key, bad, good):
    text = f"image: a\n{key}: {bad}"
    assert attempt(shared, text).startswith(key)
    assert attempt(shared, text, labels={"x": "y"}).startswith(key)
    create(shared, text, **{key: good})
    assert attempt(shared, f"image: a\n{key}: {good}", **{key: bad}).startswith(key)


def test_a_command_replaces_the_whole_of_the_yamls(shared):
    create(shared, "image: a\ncommand: [a, b]", command=["c"])
    found = attempt(shared, "image: a\ncommand: [a, b]", command=["c", ""])
    assert found.startswith("command[1]: ")
