"""Apply access.yaml to a running gateway.

Each change is one atomic request. If a run is interrupted, the next run compares again and makes
the remaining changes.
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

    def has_secret(self, name: str) -> bool:
        """Return whether a secret exists and has a value."""

    def keep_secret(self, name: str, value: str) -> None:
        """Store the value of a secret, which is created if needed."""


class TakenSecret(Exception):
    """Raised before any change if the secret for a new object already has a value."""


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
    """Make the changes of a plan, and yield each change once it is made.

    The secret of a new object goes to the store. If an earlier run created the object but was
    interrupted before it stored the secret, the object gets a new secret. Raises TakenSecret if a
    new object would replace a value in the store.
    """
    pending = dict(_secrets(file, live, plan))
    # If the store cannot be reached, the command fails before anything has changed.
    empty = [] if vault is None else [it for it in pending.values() if not vault.has_secret(it)]
    for (kind, name), secret_name in pending.items():
        if name not in live.of(kind) and secret_name not in empty:
            raise TakenSecret(
                f"The secret {secret_name} has a value already: name another for the {kind.noun} "
                f"{name}, or delete it."
            )
    for (kind, name), secret_name in pending.items():
        if vault is not None and name in live.of(kind) and secret_name in empty:
            reply = api.post(f"{kind.path}/{live.of(kind)[name]['id']}/rotate", {})
            vault.keep_secret(secret_name, _secret_of(reply))
            yield StoredSecret(kind=kind, name=name, secret_name=secret_name)
    for change in plan.changes:
        path = _path(change.kind, live)
        if change.id is not None:
            api.patch(f"{path}/{change.id}", change.body)
        else:
            reply = api.post(path, change.body)
            secret = pending.get((change.kind, change.name))
            if vault is not None and secret is not None:
                vault.keep_secret(secret, _secret_of(reply))
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


def _secret_of(reply: Any) -> str:
    """Return the secret in the reply that creates or rotates a key or a webhook."""
    return str(reply["key"] if "key" in reply else reply["data"]["secret"])


def _path(kind: Kind, live: LiveAccess) -> str:
    """Return the path of a kind; the role `owner` can only be set through the operator's path."""
    if kind is MEMBERS and live.operates:
        return f"/workspaces/{live.workspace_id}{kind.path}"
    return kind.path
