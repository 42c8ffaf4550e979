"""`tollgate catalogs show`: the prices behind a bill, of a stack or of the file at hand."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.functional.test_first_key import tables
from tests.functional.test_publish import ROUTING, done, file, reprice, run, stack
from tests.ministack import ministack_url
from tests.stores import an_entry
from tollgate.core.clock import SystemClock
from tollgate.core.routing.publication import Publication
from tollgate.routing.file.compile import compile_catalog
from tollgate.settings import Settings
from tollgate.wiring.stores import wire_stores

__all__ = ["file", "ministack_url", "stack", "tables"]

OVERRIDES = """\
        overrides:
          - when: { until: 2026-06-01 }
            price: { input: 9 }
          - when: { from: 2026-06-01, prompt_tokens_over: 100000 }
            price: { input: 4, output: "8.50" }
"""


def published(stack: Settings, *shas: str) -> None:
    """Publish catalogs that nobody kept."""

    async def move() -> None:
        stores = wire_stores(stack, SystemClock())
        try:
            for revision, sha in enumerate(shas, start=1):
                moved = Publication(live=sha, revision=revision, moved_s=1_790_000_000, by="me")
                await stores.publications.move(moved, an_entry())
        finally:
            await stores.aclose()

    asyncio.run(move())


def test_c66_a_bill_is_explained_by_the_prices_of_its_catalog(
    stack: Settings, file: Path, tmp_path: Path
) -> None:
    file.write_text(ROUTING.format(price="1.25") + OVERRIDES)
    first = compile_catalog(file).sha
    done("publish", str(file))
    reprice(file, "3")
    done("publish", str(file))

    head, period, columns, *rows = done("catalogs", "show", first[:7]).splitlines()
    assert head == f"Catalog {first}"
    assert "revision 1" in period
    cells = [dict(zip(columns.split("\t"), row.split("\t"), strict=True)) for row in rows]
    assert [(it["when"], it["input"], it["output"]) for it in cells] == [
        ("", "1.25", "2"),
        ("until 2026-06-01", "9", ""),
        ("from 2026-06-01, prompt over 100,000", "4", "8.5"),
    ]
    assert (cells[0]["model"], cells[0]["provider"]) == ("acme/small", "near")
    assert (cells[0]["checked"], cells[0]["upstream"]) == ("2026-11-21", "small-1")

    dated = done("catalogs", "show", first, "--at", "2026-11-21T14:02:11Z").splitlines()
    assert len(dated) == len(rows) + 2
    assert done("catalogs", "show", first, "--model", "other/*").count("acme") == 0

    told = json.loads(done("catalogs", "show", first, "--json"))
    assert told["sha"] == first
    [served] = told["served"]
    assert (served["percent"], served["revision"], served["until"] is None) == (100, 1, False)
    [offer] = told["endpoints"]
    assert offer["price"]["input"] == 1.25
    assert offer["overrides"][1] == {
        "when": {"from": "2026-06-01", "prompt_tokens_over": 100000},
        "price": {"input": 4, "output": 8.5},
    }


def test_c54_a_canary_is_a_share_of_the_keys(stack: Settings, file: Path, tmp_path: Path) -> None:
    done("publish", str(file))
    live = compile_catalog(file).sha
    candidate = reprice(file, "3")
    done("canary", candidate, "--percent", "5", "--file", str(file))
    nowhere = str(tmp_path / "nowhere.yaml")
    tried = json.loads(done("catalogs", "show", candidate, "--file", nowhere, "--json"))["served"]
    assert [(period["percent"], period["until"]) for period in tried] == [(5, None)]
    usual = json.loads(done("catalogs", "show", live, "--file", nowhere, "--json"))["served"]
    assert [period["percent"] for period in usual] == [95, 100]


def test_the_catalog_of_a_file_at_hand_needs_no_stack(file: Path) -> None:
    sha = compile_catalog(file).sha
    said = done("catalogs", "show", sha[:12], "--file", str(file))
    assert f"Catalog {sha}, of {file.as_posix()} here" in said
    assert "acme/small\tnear" in said


def test_a_sha_must_name_one_catalog(stack: Settings, tmp_path: Path) -> None:
    first, second = "a" * 63 + "1", "a" * 63 + "2"
    published(stack, first, second)
    several = run("catalogs", "show", "a" * 60)
    assert several.exit_code == 1
    assert f"names more than one catalog: {first}, {second}" in several.output
    assert f"Catalog {first} is missing" in run("catalogs", "show", first).output
    assert "names no published catalog" in run("catalogs", "show", "0123456789").output
    assert f"Catalog {'b' * 64} is missing" in run("catalogs", "show", "b" * 64).output
    assert run("catalogs", "show", "aaaaaa").exit_code == 2


@pytest.mark.parametrize("at", ["yesterday", "2026-13-01"])
def test_a_moment_that_cannot_be_read_is_refused(at: str) -> None:
    assert run("catalogs", "show", "0123456789", "--at", at).exit_code == 2


def test_options_may_stand_before_the_subcommand(stack: Settings) -> None:
    refused = run("catalogs", "--stack", "elsewhere", "show", "0123456789")
    assert "stack elsewhere" in refused.output
