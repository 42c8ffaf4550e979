"""What a new local state starts with: credit, an inference key and a management key."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from tollgate.core.errors import AccessError
from tollgate.core.money import nano_usd
from tollgate.core.principal import KeyRole
from tollgate.stores.administration import CreditStore, KeyStore, NewKey

WORKSPACE_ID: Final = "default"
_GRANT_USD: Final = Decimal(100)


class LocalKeys(Struct, frozen=True, kw_only=True):
    """The secrets of the local keys."""

    inference: str
    management: str


async def seed(keys: KeyStore, money: CreditStore, state: Path) -> LocalKeys:
    """Make sure that there is credit and that both keys work; repeating it changes nothing."""
    await money.grant(WORKSPACE_ID, "local-start", nano_usd(_GRANT_USD), "tollgate dev")
    kept = state / "keys.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    local = LocalKeys(
        inference=await _working(keys, known.get("inference"), "inference"),
        management=await _working(keys, known.get("management"), "management"),
    )
    # Whole or not at all: half a file would keep the server from ever starting again.
    written = kept.with_suffix(".part")
    written.touch(mode=0o600)
    written.write_text(json.dumps(asdict(local)))
    written.replace(kept)
    return local


async def _working(keys: KeyStore, secret: str | None, role: KeyRole) -> str:
    """The secret kept from last time if its key still works, or that of a new key."""
    if secret is not None:
        try:
            await keys.authenticate(secret)
        except AccessError:
            secret = None
    if secret is None:
        new = NewKey(workspace_id=WORKSPACE_ID, label=f"local {role}", role=role)
        secret = (await keys.create(new)).secret
    return secret
