"""A release that is older than the stored items refuses to serve and to sweep, in one sentence.

Keeps C96.
"""

import asyncio
import json
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.contract.conftest import stores_at
from tests.functional.test_first_key import tables
from tests.functional.test_publish import file, stack
from tests.local_server import ROOT, TOLLGATE
from tests.local_server import environment as plain
from tests.ministack import ministack_url
from tests.nightly import first
from tests.stores import REGION, DynamoStores
from tollgate.cli.main import main
from tollgate.core.clock import SystemClock
from tollgate.settings import Settings
from tollgate.stores.item_versions import READ, claim_item_version
from tollgate.wiring.stores import wire_stores

__all__ = ["file", "ministack_url", "stack", "tables"]


async def newer_store(url: str) -> dict[str, str]:
    """Return variables that name tables which a newer release has written."""
    async with stores_at(url) as stores:
        assert isinstance(stores, DynamoStores)
        tables = stores.tables
        await claim_item_version(stores.client, tables.core, written=READ + 1, read=READ + 1)
    return {
        "TOLLGATE_CORE_TABLE": tables.core,
        "TOLLGATE_LEDGER_TABLE": tables.ledger,
        "TOLLGATE_GENERATIONS_TABLE": tables.generations,
        "TOLLGATE_DYNAMODB_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
    }


@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("upkeep", "sweep")], ids="/".join)
def test_c96_a_downgrade_across_a_change_of_items_refuses(
    ministack_url: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    catalog = tmp_path / "catalog.json"
    catalog.write_text(json.dumps({"version": 1}))
    variables = asyncio.run(newer_store(ministack_url)) | {"TOLLGATE_CATALOG_FILE": str(catalog)}
    ended = subprocess.run(
        [str(TOLLGATE), *words],
        env=plain() | {"PYTHONPATH": str(ROOT / "functions")} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout
    said = f"A newer release has stored items of version {READ + 1}"
    assert said in ended.stdout
    assert "Traceback" not in ended.stdout


@pytest.mark.parametrize(
    ("function", "event"),
    first(
        1,
        [
            ("rollup", {}),
            ("sweeper", {}),
            ("sweeper", {"task": "webhooks"}),
            ("sweeper", {"task": "audit"}),
            ("batch", {"Records": [{"body": '{"workspace_id":"acme","batch_id":"b"}'}]}),
        ],
    ),
    ids=lambda it: it if isinstance(it, str) else None,
)
def test_c96_a_function_that_no_caller_waits_for_refuses_newer_items(
    ministack_url: str, function: str, event: dict[str, object]
) -> None:
    run = (
        f"import json, {function}\nclass Context:\n"
        "    def get_remaining_time_in_millis(self): return 900_000\n"
        f"{function}.handler(json.loads({json.dumps(event)!r}), Context())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", run],
        cwd=ROOT / "functions",
        env=plain() | asyncio.run(newer_store(ministack_url)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout
    refusal = ended.stderr.splitlines()[-1]
    assert refusal.startswith("tollgate.core.errors.NewerItems: A newer release has stored items")


def test_c96_a_deploy_of_an_older_release_refuses(stack: Settings, tmp_path: Path) -> None:
    config = tmp_path / "samconfig.toml"
    config.write_text('version = 0.1\n[default.deploy.parameters]\nstack_name = "tollgate"\n')
    words = ("deploy", "--config", str(config), "--region", "us-east-1", "--no-build")

    async def write_newer_items() -> None:
        async with aclosing(wire_stores(stack, SystemClock())) as stores:
            written = READ + 1
            await claim_item_version(stores.client, stack.core_table, written=written, read=written)

    asyncio.run(write_newer_items())
    ended = CliRunner().invoke(main, words)
    assert ended.exit_code == 1, ended.output
    assert f"A newer release has stored items of version {READ + 1}" in ended.output
    assert "region" not in config.read_text()
