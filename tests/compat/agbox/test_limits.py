"""The grammar of resource limits in CreateSandbox."""

import pytest
from agxtest.agbox import unique

FIELDS = ("memory_limit", "disk_limit")

GOOD_CPU = [*["2", "0.5", "0.001", ".5", "1.", "1e1", "1E-2", "+1", "0x1p-2", "0X1P1"]]
BAD_CPU = [
    *["x", "0", "-1", "0.0009", "1e-4", "inf", "-Inf", "NaN", "1,5", "2c", "0x", "1_0"],
    "1 ",
    " 1",
]
GOOD_SIZE = [
    *["4g", "512m", "1k", "1024", "7b", "1K", "1kb", "1KiB", "1.5g", "1t", "1p", ".5k", "1e3k"],
    "1 k",
    "1.5 GiB",
    "0x1p4 k",
]
BAD_SIZE = [*["1x", "abc", "-1g", "0", "0g", "g", "1gg", "1..5g", "0.5", "1bb"], "1 kibb", "1  k"]


def accepted(client, **limits):
    return client.create(unique("limit"), **limits)


def refused(client, field, value):
    request = {"create_spec": {"image": "image", field: value}}
    found = client.refused("CreateSandbox", **request)
    assert (found.code, found.reason) == ("INVALID_ARGUMENT", "")
    assert found.message.startswith(f"{field}: "), found
    assert f'"{value}"' in found.message


@pytest.mark.parametrize("value", GOOD_CPU)
def test_a_number_of_cpus_is_accepted(shared, value):
    accepted(shared, cpu_limit=value)


@pytest.mark.parametrize("value", BAD_CPU)
def test_what_is_no_number_of_cpus_is_refused(shared, value):
    refused(shared, "cpu_limit", value)


@pytest.mark.parametrize("value", GOOD_SIZE)
@pytest.mark.parametrize("field", FIELDS)
def test_a_size_is_accepted(shared, field, value):
    accepted(shared, **{field: value})


@pytest.mark.parametrize("value", BAD_SIZE)
@pytest.mark.parametrize("field", FIELDS)
def test_what_is_no_size_is_refused(shared, field, value):
    refused(shared, field, value)


def test_an_empty_limit_is_none(shared):
    accepted(shared, cpu_limit="", memory_limit="", disk_limit="")
