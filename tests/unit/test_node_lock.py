"""Packages for Node that tests use are pinned by their content, not by a registry's address."""

import json
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
LOCKS = [TOP / "tests/node/package-lock.json", TOP / "bench/compare/package-lock.json"]


@pytest.mark.parametrize("lock", LOCKS, ids=["sdks", "portkey"])
def test_every_package_is_pinned_by_integrity_alone(lock: Path) -> None:
    packages = json.loads(lock.read_text(encoding="utf-8"))["packages"]
    pinned = {path: each for path, each in packages.items() if path}
    assert pinned
    assert all(each["integrity"].startswith("sha512-") for each in pinned.values())
    assert not any("resolved" in each for each in pinned.values())
