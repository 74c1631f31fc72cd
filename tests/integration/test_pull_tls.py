"""Registries on other machines are used with TLS, unless the configuration says otherwise.

Runs in a box of namespaces, which has its own address and its own /etc.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from agxtest import images
from agxtest.docker_registry import Certificate, DockerRegistry, TokenServer

pytestmark = pytest.mark.deadline(120)

DRIVER = os.environ["PULL_DRIVER"]
ADDRESS = "192.0.2.1"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
FAILED_PRECONDITION = 9  # of gRPC's codes


@pytest.fixture(autouse=True, scope="module")
def fixture_address():
    assert "AGX_BOX" in os.environ
    subprocess.run(["ip", "address", "add", f"{ADDRESS}/32", "dev", "lo"], check=True)


@pytest.fixture(name="trust")
def fixture_trust():
    """Makes a certificate one of the system's authorities."""
    before = AUTHORITIES.read_bytes() if AUTHORITIES.exists() else b""
    AUTHORITIES.parent.mkdir(parents=True, exist_ok=True)
    yield lambda certificate: AUTHORITIES.write_bytes(before + certificate.read_bytes())
    AUTHORITIES.write_bytes(before)


def push(registry):
    tree = images.Tree()
    tree.file("a", "text")
    registry.push("tool", "1", tree.finish())
    return f"{registry.host}/tool:1"


def pull(tmp_path, ref, **env):
    """Pulls and returns ("got", 0, line) or ("failed", code, line)."""
    command = [DRIVER, tmp_path / "store", tmp_path, ref]
    said = subprocess.run(
        command, env=os.environ | env, check=True, stdout=subprocess.PIPE, text=True
    )
    last = said.stdout.splitlines()[-1]
    words = last.split(" ")
    return words[0], int(words[2]) if words[0] == "failed" else 0, last


def test_a_registry_is_known_by_the_authorities_of_the_system(tmp_path, trust):
    certificate = Certificate(tmp_path, ADDRESS)
    registry = DockerRegistry(tmp_path, address=ADDRESS, tls=certificate)
    try:
        ref = push(registry)
        said, code, line = pull(tmp_path, ref)
        assert (said, code) == ("failed", FAILED_PRECONDITION), line
        assert "certificate" in line
        trust(certificate.certificate)
        said, _, line = pull(tmp_path, ref)
        assert said == "got", line
    finally:
        registry.close()


def test_a_registry_without_tls_must_be_named(tmp_path):
    registry = DockerRegistry(tmp_path, address=ADDRESS)
    try:
        ref = push(registry)
        said, _, line = pull(tmp_path, ref)
        assert said == "failed", line
        assert "https://" in line
        said, _, line = pull(tmp_path, ref, PULL_INSECURE="192.0.2.2:5000")
        assert said == "failed", line
        said, _, line = pull(tmp_path, ref, PULL_INSECURE=registry.host)
        assert said == "got", line
    finally:
        registry.close()


def test_a_registry_with_tls_cannot_send_us_to_a_server_of_tokens_without(tmp_path, trust):
    certificate = Certificate(tmp_path, ADDRESS)
    trust(certificate.certificate)
    (tmp_path / "tokens").mkdir()
    tokens = TokenServer(tmp_path / "tokens", anonymous=True)
    registry = DockerRegistry(tmp_path, address=ADDRESS, tls=certificate, tokens=tokens)
    try:
        ref = push(registry)
        auth = {"username": "me", "password": "secret"}
        (tmp_path / "config.json").write_text(json.dumps({"auths": {registry.host: auth}}))
        said, code, line = pull(tmp_path, ref)
        assert (said, code) == ("failed", FAILED_PRECONDITION), line
        assert "without TLS" in line
        assert not tokens.asked
    finally:
        registry.close()
        tokens.close()
