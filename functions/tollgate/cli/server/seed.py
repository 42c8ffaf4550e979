"""Initial content of a local state folder: credit, an inference key and a management key."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from tollgate.core.errors import AccessError
from tollgate.core.money.amounts import nano_usd
from tollgate.core.principal import KeyRole
from tollgate.core.records.audit import Actor
from tollgate.stores.ports.administration import KeyStore, NewKey
from tollgate.stores.ports.credit import CreditStore
from tollgate.stores.rules.key_names import choose_free_name

WORKSPACE_ID: Final = "default"
_GRANT_USD: Final = Decimal(100)
_BY: Final = Actor(kind="process", id="tollgate dev")


class LocalKeys(Struct, frozen=True, kw_only=True):
    """The secrets of the local keys."""

    inference: str
    management: str


async def seed(keys: KeyStore, money: CreditStore, state: Path) -> LocalKeys:
    """Grant credit once, replace keys that no longer work, and return the secrets."""
    await money.grant(WORKSPACE_ID, "local-start", nano_usd(_GRANT_USD), "tollgate dev", by=_BY)
    file = state / "keys.json"
    stored = json.loads(file.read_text()) if file.exists() else {}
    local = LocalKeys(
        inference=await _renew(keys, stored.get("inference"), "inference"),
        management=await _renew(keys, stored.get("management"), "management"),
    )
    # The file is renamed once it is complete, because a partial file would prevent later starts.
    written = file.with_suffix(".part")
    written.touch(mode=0o600)
    written.write_text(json.dumps(asdict(local)))
    written.replace(file)
    return local


async def _renew(keys: KeyStore, secret: str | None, role: KeyRole) -> str:
    """Return the stored secret if its key still works, or else the secret of a new key."""
    if secret is not None:
        try:
            await keys.authenticate(secret)
        except AccessError:
            secret = None
    if secret is None:
        # A disabled key, and a key whose secret is lost, still has its name.
        label = choose_free_name(await keys.names(WORKSPACE_ID), f"local {role}")
        new = NewKey(workspace_id=WORKSPACE_ID, label=label, role=role)
        secret = (await keys.create(new, by=_BY)).secret
    return secret
