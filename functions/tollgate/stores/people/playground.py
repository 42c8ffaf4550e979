"""Playground secrets in DynamoDB, each of which refers to the secret that opened it.

The item of a playground secret has no settings. Authentication reads the other secret's item each
time, so a playground secret ends with the session or key that opened it.
"""

from typing import Final

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.core.records.audit import Actor
from tollgate.stores.aws.items import SecretItem, SessionItem
from tollgate.stores.aws.tables import Tables, secret_key
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.keys.lookup import DynamoKeyDirectory
from tollgate.stores.keys.secret import new_secret, secret_hash
from tollgate.stores.ports.people import OpenedPlayground
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.rules.audit_entries import AuditedChange

PLAYGROUND_S: Final = 15 * 60


class DynamoPlaygroundStore:
    """Implements `stores.ports.people.PlaygroundStore`; drops closed secrets from `directory`."""

    def __init__(
        self,
        directory: DynamoKeyDirectory,
        client: AwsCaller,
        tables: Tables,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._directory = directory
        self._client = client
        self._tables = tables
        self._ids = ids
        self._clock = clock
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def open(self, opener: str, principal: Principal, *, by: Actor) -> OpenedPlayground:
        secret = new_secret(self._directory.prefix, self._ids.random_bytes)
        expires_s = int(self._clock.now_s()) + PLAYGROUND_S
        row: Item = {
            **secret_key(secret_hash(secret)),
            # A release that does not know playground secrets refuses this one as disabled.
            SecretItem.ENABLED: number(0),
            SessionItem.OPENER: string(secret_hash(opener)),
            SessionItem.EXPIRES: number(expires_s),
            SessionItem.DELETE_AT: number(expires_s),
        }
        change = AuditedChange(
            action="playground.open",
            target=principal.key_id,
            target_name=principal.label,
            workspace_id=principal.workspace_id,
        )
        actions = [put_if_absent(self._tables.core, row), *self._entries.puts(change, by)]
        with refusing_when_unavailable():
            await transact(self._client, self._ids, actions)
        return OpenedPlayground(secret=secret, expires_s=expires_s)

    async def close(self, secret: str) -> None:
        digest = secret_hash(secret)
        with refusing_when_unavailable():
            await self._client.call(
                "DeleteItem", {"TableName": self._tables.core, "Key": secret_key(digest)}
            )
        self._directory.forget(digest)
