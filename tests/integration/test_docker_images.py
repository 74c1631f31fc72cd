"""Images with any libc, or none, on a real Docker Engine; and the image's own configuration."""

from pathlib import Path

import pytest
from agxtest import images
from docker_fixtures import *  # noqa: F403

pytestmark = pytest.mark.deadline(60)


def printed(stage, box, *command, **fields):
    """The output of a command, which must succeed."""
    answer = stage.client.start(box, *command, **fields)
    ended = stage.client.ended(answer.exec_id)
    assert ended.exit_code == 0, ended
    return Path(answer.stdout_log_path).read_text()


def variant(engine, name, *changes):
    """The busybox image with these lines of a Dockerfile added."""
    engine.load(name, images.busybox().finish(), changes)
    return name


@pytest.mark.parametrize("name", ["scratch", "musl", "glibc"])
def test_image_needs_neither_libc_nor_shell(stage, engine, name):
    box = stage.ready(image=images.require(engine, name))
    said = printed(stage, box, "/prog", "id", cwd="/a/b")
    assert "uid=0 gid=0" in said
    assert "cwd=/a/b" in said
    assert stage.runs(box, "/prog", "exit", "9") == 9
    assert stage.runs(box, "/no/such/program") == 127
    assert printed(stage, box, "/prog", "attack") == "0 ways\n", "root gets at nothing of init"


def test_commands_have_user_directory_and_environment_of_the_image(stage, engine):
    changes = ("USER app", "WORKDIR /srv/app", "ENV OF_IMAGE=1")
    box = stage.ready(image=variant(engine, "agx-app:1", *changes))
    said = printed(stage, box, "sh", "-c", "id -u; id -G; pwd; echo $HOME $OF_IMAGE")
    assert said.splitlines() == ["1500", "1500 77", "/srv/app", "/home/app 1"]


def test_numeric_user_needs_no_name(stage, engine):
    box = stage.ready(image=variant(engine, "agx-number:1", "USER 4242:4343"))
    assert printed(stage, box, "sh", "-c", "id -u; id -g").split() == ["4242", "4343"]


def test_entrypoint_and_command_of_the_image_do_not_run_without_a_command(stage, engine):
    image = variant(engine, "agx-fails:1", 'ENTRYPOINT ["false"]', 'CMD ["no-such-program"]')
    box = stage.ready(image=image)
    assert stage.runs(box) == 0


def test_command_of_the_spec_goes_through_the_entrypoint(stage, engine):
    entrypoint = """ENTRYPOINT ["sh", "-c", "echo $0 $1 >/tmp/said; exec sleep 1000"]"""
    box = stage.ready(image=variant(engine, "agx-entry:1", entrypoint), command=["one", "two"])
    assert stage.runs(box, "sh", "-c", "while ! [ -s /tmp/said ]; do sleep 0.01; done") == 0
    assert printed(stage, box, "cat", "/tmp/said") == "one two\n"
