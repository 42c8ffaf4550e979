import pytest

from tests.infra.translation import Stack, load_template, translate


@pytest.fixture(scope="session")
def any_stack() -> Stack:
    """Every stack that the template can make."""
    return translate(load_template())


@pytest.fixture(scope="session")
def stack(any_stack: Stack) -> Stack:
    """The stack of the defaults."""
    return any_stack.given()
