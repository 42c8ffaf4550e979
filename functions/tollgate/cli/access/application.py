"""Apply access.yaml to a running gateway.

Each change is one request, which the gateway carries out as a whole. A run that ends in the middle
is completed by the next one, which compares again.
"""

from collections.abc import Iterator
from typing import Any, Protocol

from msgspec import Struct

from tollgate.cli.access.access_file import (
    ACCESS_KINDS,
    MEMBERS,
    AccessFile,
    Kind,
    SecretEntry,
    entries_of,
)
from tollgate.cli.access.differences import AccessPlan, ObjectChange
from tollgate.cli.access.live import LiveAccess
from tollgate.cli.gateway.http import Api


class SecretVault(Protocol):
    """A store of secrets, such as Secrets Manager."""

    def secret_note(self, name: str) -> str | None:
        """Return the description of a secret; None without a secret of this name."""

    def keep_secret(self, name: str, value: str, *, note: str) -> None:
        """Store a secret and its description together."""


class StoredSecret(Struct, frozen=True, kw_only=True):
    """A new secret of an object whose first secret was not stored."""

    kind: Kind
    name: str
    secret_name: str


def has_secrets(file: AccessFile, live: LiveAccess, plan: AccessPlan) -> bool:
    """Return True if `apply` needs the store of secrets."""
    return any(_secrets(file, live, plan))


def apply_changes(
    api: Api, file: AccessFile, live: LiveAccess, plan: AccessPlan, *, vault: SecretVault | None
) -> Iterator[ObjectChange | StoredSecret]:
    """Make the changes of a plan, and yield each one that is made.

    The secret of a new object goes to the store. If an earlier run created the object but was ended
    before its secret was stored, the object gets a new secret.
    """
    pending = dict(_secrets(file, live, plan))
    if vault is not None:
        # A store that cannot be reached ends the command before anything has changed.
        notes = {name: vault.secret_note(name) for name in pending.values()}
        for (kind, name), secret_name in pending.items():
            found = live.of(kind).get(name)
            if found is not None and _note(kind, found["id"]) != notes[secret_name]:
                reply = api.post(f"{kind.path}/{found['id']}/rotate", {})
                _keep(vault, kind, secret_name, reply)
                yield StoredSecret(kind=kind, name=name, secret_name=secret_name)
    for change in plan.changes:
        path = _path(change.kind, live)
        if change.id is not None:
            api.patch(f"{path}/{change.id}", change.body)
        else:
            reply = api.post(path, change.body)
            secret = pending.get((change.kind, change.name))
            if vault is not None and secret is not None:
                _keep(vault, change.kind, secret, reply)
        yield change


def _secrets(
    file: AccessFile, live: LiveAccess, plan: AccessPlan
) -> Iterator[tuple[tuple[Kind, str], str]]:
    """Yield the names of the secrets of new objects, and of objects that were never used."""
    created = {(change.kind, change.name) for change in plan.changes if change.id is None}
    for kind in ACCESS_KINDS:
        for name, entry in (entries_of(file, kind) or {}).items():
            if not isinstance(entry, SecretEntry) or entry.secret_name is None:
                continue
            found = live.of(kind).get(name)
            unused = found is not None and kind.used_at is not None and not found[kind.used_at]
            if (kind, name) in created or unused:
                yield (kind, name), entry.secret_name


def _keep(vault: SecretVault, kind: Kind, secret_name: str, reply: Any) -> None:
    secret = reply["key"] if "key" in reply else reply["data"]["secret"]
    vault.keep_secret(secret_name, secret, note=_note(kind, reply["data"]["id"]))


def _note(kind: Kind, id_: str) -> str:
    """Return the description of a secret, which shows that the secret is stored."""
    return f"Tollgate {kind.noun} {id_}"


def _path(kind: Kind, live: LiveAccess) -> str:
    """Return the path of a kind; only the operator's path of members gives the role `owner`."""
    if kind is MEMBERS and live.operates:
        return f"/workspaces/{live.workspace_id}{kind.path}"
    return kind.path
