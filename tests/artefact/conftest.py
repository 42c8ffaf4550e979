from pathlib import Path

import pytest

from infra.artefact.wheels import Target
from tests.artefact.building import python_3_13, sam_build


@pytest.fixture(scope="session")
def interpreter() -> str:
    """What runs the artefacts here, as Lambda's python3.13 does there."""
    python = python_3_13()
    if python is None:
        pytest.skip("no python3.13 runs here: PYTHON313=/path/to/python3.13 names one")
    return python


@pytest.fixture(scope="session")
def for_lambda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artefacts that are deployed."""
    return sam_build(tmp_path_factory.mktemp("lambda"), Target.LAMBDA)


@pytest.fixture(scope="session")
def for_host(interpreter: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with this machine's wheels."""
    return sam_build(tmp_path_factory.mktemp("host"), Target.HOST)
