"""What holds for every test."""

import gc

import pytest
from hypothesis import settings

from tests.examples import EXAMPLES

# A deadline is an assertion about time, which a busy machine breaks and no code does.
for _name, _examples in EXAMPLES.items():
    settings.register_profile(_name, deadline=None, max_examples=_examples)
settings.load_profile("pull_request")
# Built artefacts; a browser with its server; commands with theirs; parsed files of the project.
TOGETHER = (
    "tests/artefact/",
    "tests/browser/",
    "tests/functional/test_cli",
    "tests/unit/test_tidy",
)

# Characters or bytes of a value that are shown in the id of a test.
_SHOWN_MAX = 100


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long value by its argument.

    Whole values made 289 MB of ids, which each process of a run keeps, compares and sends.
    """
    return argname if isinstance(val, bytes | str) and len(val) > _SHOWN_MAX else None


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exempt the collected tests, which live until the end, from garbage collection.

    Searching them again and again took a seventh of the unit suite's time. What tests leave behind
    is searched for cycles more seldom than by default (700, 10, 10).
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of a file in one process, and those of a folder that share what is dear."""
    if not config.pluginmanager.hasplugin("xdist.plugin"):
        return
    for item in items:
        file = item.nodeid.partition("::")[0]
        shared = next(filter(file.startswith, TOGETHER), file)
        item.add_marker(pytest.mark.xdist_group(shared))
