"""Files form no circle, and few imports stand within functions."""

from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

from tests.tidy.imports import DEFERRED_MAX, deferred_lines, files_form_no_circle
from tests.tidy.source import Finding, Source, sources_of


@pytest.fixture(scope="module")
def product() -> tuple[Source, ...]:
    return sources_of("functions")


def circles(files: Mapping[str, str]) -> list[Finding]:
    sources = [Source(PurePosixPath("functions", path), text) for path, text in files.items()]
    return list(files_form_no_circle(sources))


def test_the_files_of_the_product_form_no_circle(product: tuple[Source, ...]) -> None:
    found = [str(finding) for finding in files_form_no_circle(product)]
    assert not found, "\n" + "\n".join(found)


def test_imports_within_functions_are_few(product: tuple[Source, ...]) -> None:
    count = sum(len(deferred_lines(source)) for source in product)
    assert count <= DEFERRED_MAX, "name the object by DottedName, or import it at the top"
    assert count == DEFERRED_MAX, "lower DEFERRED_MAX of tests/tidy/imports.py"


@pytest.mark.parametrize(
    "back",
    [
        "from tollgate.a import A",
        "def f():\n    from tollgate.a import A",
        "if TYPE_CHECKING:\n    from tollgate import a",
        'A = DottedName("tollgate.a:A")',
        'A = DottedName[type[A]]("tollgate.a:A")',
    ],
)
def test_a_circle_is_found_once(back: str) -> None:
    files = {
        "tollgate/a.py": "import tollgate.b",
        "tollgate/b.py": "from tollgate import c",
        "tollgate/c.py": back,
        "tollgate/d.py": "import tollgate.a",
    }
    [finding] = circles(files)
    assert finding.path.name == "a.py"
    assert finding.rule == "a circle of imports with tollgate.b, tollgate.c"
    assert circles(files | {"tollgate/c.py": ""}) == []


def test_a_module_is_told_from_a_name_of_its_package() -> None:
    files = {
        "tollgate/p/__init__.py": "from tollgate.p.a import A",
        "tollgate/p/a.py": "from tollgate.p import b",
        "tollgate/p/b.py": "import json",
    }
    assert circles(files) == []
    assert len(circles(files | {"tollgate/p/b.py": "from tollgate.p import A"})) == 1
