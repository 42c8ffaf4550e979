"""What a local state starts with, however often it starts."""

import asyncio
from pathlib import Path

import pytest

from tests.stores import disable, memory_stores
from tests.unit.ingress.samples import record
from tollgate.cli.server.dev_journal import TerminalJournal
from tollgate.cli.server.seed import WORKSPACE_ID, seed


async def test_seeding_again_changes_nothing(tmp_path: Path) -> None:
    stores = memory_stores()
    first = await seed(stores.keys, stores.credits, tmp_path)
    assert await seed(stores.keys, stores.credits, tmp_path) == first
    assert len((await stores.keys.list(WORKSPACE_ID)).found) == 2
    assert (await stores.credits.balance(WORKSPACE_ID)).granted_nano_usd == 100 * 10**9
    for secret, role in ((first.inference, "inference"), (first.management, "management")):
        assert (await stores.keys.authenticate(secret)).role == role


async def test_a_key_that_no_longer_works_is_replaced(tmp_path: Path) -> None:
    stores = memory_stores()
    first = await seed(stores.keys, stores.credits, tmp_path)
    principal = await stores.keys.authenticate(first.inference)
    await disable(stores, principal.key_id, WORKSPACE_ID)
    second = await seed(stores.keys, stores.credits, tmp_path)
    assert second.inference != first.inference
    assert second.management == first.management
    fresh = memory_stores()
    assert await seed(fresh.keys, fresh.credits, tmp_path) != second


def test_the_keys_are_for_this_user_alone(tmp_path: Path) -> None:
    stores = memory_stores()
    asyncio.run(seed(stores.keys, stores.credits, tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["keys.json"]
    assert (tmp_path / "keys.json").stat().st_mode & 0o777 == 0o600


def test_the_terminal_shows_a_generation_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    TerminalJournal().settled(record())
    told = capsys.readouterr().out
    assert told.count("\n") == 1
    assert f"gen-{record().id}" in told
    assert "$1.234567891" in told


def test_the_terminal_names_a_failure_that_has_no_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    TerminalJournal().unsettled(record(), TimeoutError())
    assert capsys.readouterr().out.endswith(": TimeoutError\n")
