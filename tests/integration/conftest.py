"""Fixtures for the tests here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support" / "py"))

from agxtest.fixtures import *  # noqa: F403 (the path comes first)


def pytest_configure(config):
    config.addinivalue_line("markers", "deadline(seconds): how long the test may take")
