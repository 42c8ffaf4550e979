"""Packages for Node that tests use are pinned by their content, not by a registry's address."""

import json
from pathlib import Path

LOCK = Path(__file__).parents[1] / "node/package-lock.json"


def test_every_package_is_pinned_by_integrity_alone() -> None:
    packages = json.loads(LOCK.read_text(encoding="utf-8"))["packages"]
    pinned = {path: each for path, each in packages.items() if path}
    assert pinned
    assert all(each["integrity"].startswith("sha512-") for each in pinned.values())
    assert not any("resolved" in each for each in pinned.values())
