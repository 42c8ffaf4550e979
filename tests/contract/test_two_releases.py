"""Two releases on one store: each reads, changes and settles what the other wrote.

Keeps C96. `tests/released/items.json` has what the last release wrote. `python -m
tests.side_by_side golden` writes the file again for a release, and its difference is reviewed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.local_server import ROOT, environment
from tests.side_by_side.__main__ import GOLDEN
from tests.side_by_side.release import running_release
from tests.side_by_side.settle import settle_everything
from tests.side_by_side.tables import KINDS, TABLES, dump, load, shapes
from tests.side_by_side.write import WRITTEN_S, write_everything
from tollgate.stores.aws import items, record_items
from tollgate.stores.item_versions import READ

RELEASED: Final[dict[str, Any]] = json.loads(GOLDEN.read_text())


def fresh_names() -> dict[str, str]:
    name = os.urandom(6).hex()
    return {table: f"{name}-{table}" for table in TABLES}


async def test_c96_this_release_settles_what_the_last_one_wrote(
    ministack_url: str, tmp_path: Path
) -> None:
    names = fresh_names()
    async with running_release(ministack_url, names, tmp_path, WRITTEN_S) as release:
        await load(release.stores.client, names, tmp_path, RELEASED)
        await settle_everything(release, RELEASED["left"])


@pytest.mark.nightly
async def test_c96_the_last_release_finds_all_that_it_reads(
    ministack_url: str, tmp_path: Path
) -> None:
    names = fresh_names()
    async with running_release(ministack_url, names, tmp_path, WRITTEN_S) as release:
        await write_everything(release)
        written = shapes(await dump(release.stores.client, names, tmp_path))
    lacking = {
        kind: sorted(paths - written.get(kind, set()))
        for kind, paths in shapes(RELEASED).items()
        if paths - written.get(kind, set())
    }
    assert not lacking, "the last release reads these, which this one no longer writes"


def test_every_kind_of_item_is_written_for_the_next_release() -> None:
    classes = {
        kind
        for module in (items, record_items)
        for kind in vars(module).values()
        if isinstance(kind, type) and not kind.__subclasses__()
    }
    assert classes | {items.AnyItem} == set(KINDS)
    released = set("/".join(shapes(RELEASED)).split("/"))
    assert released == {kind.__name__ for kind, keys in KINDS.items() if keys}


def test_this_release_may_read_the_last_ones_items() -> None:
    (version,) = [it["iv"] for it in RELEASED["tables"]["core"] if it["pk"]["S"] == "ITEMS"]
    assert int(version["N"]) in (READ, READ - 1)


def tree_before(folder: Path) -> Path:
    """Return the tree of the newest tag of a release; this tree if there is none yet."""

    def git(*words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)

    described = git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    if described.returncode:
        return ROOT
    archived = git("archive", described.stdout.decode().strip())
    subprocess.run(["tar", "-x"], cwd=folder, input=archived.stdout, check=True)
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize("writer", ["before", "now"])
def test_c96_a_release_and_the_one_before_settle_each_others_items(
    ministack_url: str, tmp_path: Path, writer: str
) -> None:
    archive, objects, file = (tmp_path / it for it in ("tree", "objects", "store.json"))
    archive.mkdir()
    objects.mkdir()
    trees = {"before": tree_before(archive), "now": ROOT}
    store = {"url": ministack_url, "tables": fresh_names(), "objects": str(objects)}
    file.write_text(json.dumps(store))
    (settler,) = trees.keys() - {writer}
    for command, tree in (("write", trees[writer]), ("settle", trees[settler])):
        ended = subprocess.run(
            [sys.executable, "-m", "tests.side_by_side", command, str(file)],
            cwd=tree,
            env=environment() | {"PYTHONPATH": os.pathsep.join([f"{tree}/functions", str(tree)])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, (command, tree, ended.stderr)
