import pytest

from tests.infra.translation import Stack, load_template, translate


@pytest.fixture(scope="session")
def stack() -> Stack:
    return translate(load_template())
