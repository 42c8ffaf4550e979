"""docs/architecture.md shows the tree and the events as they are."""

from pathlib import Path
from typing import get_args

import pytest

from tests.cells import cells
from tollgate.core.events import StreamEvent

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def folders(parent: Path) -> list[str]:
    return sorted(path.name for path in parent.iterdir() if (path / "__init__.py").exists())


@cells("name", folders(ROOT / "functions" / "tollgate") + folders(ROOT / "tests"))
def test_every_package_is_on_the_map(name: str) -> None:
    assert f" {name}/ " in PAGE.replace("\n", " ")


@pytest.mark.parametrize("parent", ["routing", "stores", "tools"])
def test_their_packages_are_on_the_map_too(parent: str) -> None:
    words = PAGE.split()
    assert [
        name
        for name in folders(ROOT / "functions" / "tollgate" / parent)
        if f"{name}/" not in words
    ] == []


def test_every_event_of_the_middle_is_named() -> None:
    listed = ", ".join(event.__name__ for event in get_args(StreamEvent))
    assert f"`{listed}`" in PAGE.replace("\n", " ")
