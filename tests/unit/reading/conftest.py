"""These tests run on virtual time."""

from tests.virtual_time import VirtualTimeLoop, loop_factories


def pytest_asyncio_loop_factories() -> dict[str, type[VirtualTimeLoop]]:
    return loop_factories()
