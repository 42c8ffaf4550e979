"""Notes in the report of a run (`--junit-xml`) which cell of the table of clients each test is."""

import pytest

from tests.live.agents.programs import version


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Add the cell of a test marked `client(package, format)`, and the version that is tried."""
    for mark in item.iter_markers("client"):
        package, format_ = mark.args
        cell = {"client": package, "format": format_, "version": version(package)}
        item.user_properties += cell.items()
