"""Secrets that sign events: encrypted in the table, and read by no other webhook.

Keeps C90.
"""

import base64
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.receiver import Receiver, receiver, tls
from tests.contract.test_webhooks import Hooks, Tls, standard
from tests.stores import REGION, TESTER, DynamoStores, HandClock, aws_client, funded_key
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsReply
from tollgate.aws.failures import StoreUnavailable
from tollgate.core.errors import LedgerError
from tollgate.core.ids import IdSource
from tollgate.core.webhooks import Webhook, WebhookSettings
from tollgate.settings import Settings
from tollgate.stores.aws.decoding import read_text
from tollgate.stores.aws.items import WebhookItem
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import webhook_partition
from tollgate.stores.webhooks.local_secrets import LocalSecrets
from tollgate.stores.webhooks.rows import WEBHOOK_ROWS
from tollgate.stores.webhooks.sealing import (
    KmsSecrets,
    PlainSecrets,
    SecretSealer,
    SecretUnreadable,
)
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.stores import wire_stores
from tollgate.wiring.upkeep import wire_upkeep

__all__ = ["receiver", "tls"]
FIRST, SECOND = b"1" * 32, b"2" * 32
MOTO = pytest.param("moto", marks=pytest.mark.nightly)


@pytest.fixture
def hooks(dynamo: DynamoStores, receiver: Receiver, tls: Tls) -> Hooks:
    return Hooks(dynamo, receiver, tls)


@pytest.fixture(params=["ministack", MOTO, "local"])
async def sealer(request: pytest.FixtureRequest) -> AsyncIterator[SecretSealer]:
    """A key in KMS, or a key of the gateway itself."""
    if request.param == "local":
        yield local(FIRST)
        return
    kms = aws_client(request.getfixturevalue(f"{request.param}_url"), "kms", timeout_s=10.0)
    made = await kms.call("CreateKey", {})
    yield KmsSecrets(kms, made["KeyMetadata"]["Arn"])
    await kms.close()


def local(*keys: bytes) -> LocalSecrets:
    return LocalSecrets(keys, IdSource(HandClock()))


async def stored(hooks: Hooks, workspace_id: str = "acme") -> list[dict[str, Any]]:
    """The webhooks as the table has them."""
    rows = await all_rows(
        hooks.dynamo.client,
        hooks.dynamo.tables.core,
        webhook_partition(workspace_id),
        WEBHOOK_ROWS,
    )
    return [json.loads(read_text(row, WebhookItem.WEBHOOK)) for row in rows]


async def signatures(hooks: Hooks) -> list[tuple[Mapping[str, str], bytes]]:
    """What a new event has sent to the receiver."""
    hooks.receiver.received.clear()
    await funded_key(hooks.dynamo, 100)
    await hooks.run()
    return list(hooks.receiver.received)


async def test_c90_secrets_are_encrypted_in_the_table_and_sign(
    hooks: Hooks, sealer: SecretSealer
) -> None:
    hooks.encrypt_with(sealer)
    old = await hooks.make("key.*")
    new = await hooks.store.rotate("acme", old.id, grace_s=3_600, by=TESTER)
    assert new is not None
    [row] = await stored(hooks)
    for secret in (old.secret, new.secret):
        assert secret.startswith("whsec_")
        assert secret.removeprefix("whsec_") not in json.dumps(row)
    [(headers, body)] = await signatures(hooks)
    assert standard(headers, body, old.secret)
    assert standard(headers, body, new.secret)
    shown = await hooks.store.get("acme", new.id)
    assert shown is not None
    assert "whsec_" not in str(shown.webhook), "a list does not decrypt"


async def test_a_secret_of_an_earlier_version_signs_and_is_encrypted_at_the_next_write(
    hooks: Hooks, sealer: SecretSealer
) -> None:
    webhook = await hooks.make("key.*")
    [row] = await stored(hooks)
    assert row["secret"] == webhook.secret
    hooks.encrypt_with(sealer)
    [(headers, body)] = await signatures(hooks)
    assert standard(headers, body, webhook.secret)
    await hooks.store.change("acme", webhook.id, lambda same: same, by=TESTER)
    [row] = await stored(hooks)
    assert row["secret"].startswith(("kms.", "aes."))
    [(headers, body)] = await signatures(hooks)
    assert standard(headers, body, webhook.secret)
    # The version before this one carries such a secret on when it changes a webhook.
    hooks.encrypt_with(PlainSecrets())
    await hooks.store.change(
        "acme", webhook.id, lambda it: replace(it, description="from N-1"), by=TESTER
    )
    hooks.encrypt_with(sealer)
    [(headers, body)] = await signatures(hooks)
    assert standard(headers, body, webhook.secret)


@pytest.mark.parametrize("field", ["id", "workspace_id"])
async def test_c90_a_secret_copied_to_another_webhook_is_not_decrypted(
    sealer: SecretSealer, field: str
) -> None:
    webhook = Webhook(
        id="one", workspace_id="acme", url="https://x.example", events=(), created_s=0, secret=""
    )
    sealed = await sealer.seal("whsec_Zmlyc3Q=", webhook)
    assert await sealer.unseal(sealed, webhook) == "whsec_Zmlyc3Q="
    assert await sealer.seal(sealed, webhook) == sealed
    with pytest.raises(SecretUnreadable):
        await sealer.unseal(sealed, replace(webhook, **{field: "other"}))


async def test_a_key_of_the_gateway_is_replaced_at_the_next_write(hooks: Hooks) -> None:
    hooks.encrypt_with(local(FIRST))
    webhook = await hooks.make("key.*")
    [before] = await stored(hooks)
    hooks.encrypt_with(local(SECOND, FIRST))
    [(headers, body)] = await signatures(hooks)
    assert standard(headers, body, webhook.secret)
    await hooks.store.change("acme", webhook.id, lambda same: same, by=TESTER)
    [after] = await stored(hooks)
    assert after["secret"] != before["secret"]
    hooks.encrypt_with(local(SECOND))
    [(headers, body)] = await signatures(hooks)
    assert standard(headers, body, webhook.secret)


@pytest.mark.parametrize("other", [PlainSecrets(), local(SECOND)])
async def test_c90_without_its_key_a_webhook_sends_nothing_and_says_so(
    hooks: Hooks, other: SecretSealer
) -> None:
    hooks.encrypt_with(local(FIRST))
    webhook = await hooks.make("key.*")
    hooks.encrypt_with(other)
    assert await signatures(hooks) == []
    [delivery] = await hooks.store.deliveries("acme", webhook.id) or ()
    assert delivery.status == "pending"
    assert delivery.answer.startswith("the secret is encrypted")
    # Also a change of the settings leaves the secret, and a rotation makes another.
    await hooks.store.change("acme", webhook.id, lambda it: replace(it, url=it.url), by=TESTER)
    new = await hooks.store.rotate("acme", webhook.id, grace_s=0, by=TESTER)
    assert new is not None
    hooks.receiver.received.clear()
    await hooks.run()
    [(headers, body)] = hooks.receiver.received
    assert standard(headers, body, new.secret)


async def test_while_kms_fails_no_webhook_is_made_and_none_is_sent(hooks: Hooks) -> None:
    class Down:
        async def call(
            self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
        ) -> AwsReply:
            raise StoreUnavailable("down", maybe_applied=True)

    kms = KmsSecrets(Down(), "key")
    hooks.encrypt_with(kms)
    with pytest.raises(LedgerError):
        await hooks.make("key.*")
    assert await stored(hooks) == []
    webhook = Webhook(
        id="one",
        workspace_id="acme",
        url="https://x.example",
        events=(),
        created_s=0,
        secret=f"kms.{os.urandom(9).hex()}",
    )
    with pytest.raises(SecretUnreadable, match="StoreUnavailable"):
        await kms.unseal(webhook.secret, webhook)


@pytest.mark.parametrize("where", ["kms", "server", "nowhere"])
async def test_c90_a_gateway_encrypts_as_its_settings_say(ministack_url: str, where: str) -> None:
    clock, name = HandClock(), os.urandom(6).hex()
    kms = aws_client(ministack_url, "kms", timeout_s=10.0)
    made = await kms.call("CreateKey", {})
    await kms.close()
    settings = Settings(
        core_table=f"{name}-core",
        ledger_table=f"{name}-ledger",
        generations_table=f"{name}-generations",
        dynamodb_endpoint_url=ministack_url,
        kms_endpoint_url=ministack_url,
        aws_region=REGION,
        secrets_kms_key=made["KeyMetadata"]["Arn"] if where == "kms" else None,
        secrets_keys=(base64.b64encode(FIRST).decode(),) if where == "server" else (),
    )
    async with (
        aclosing(wire_stores(settings, clock, timeout_s=10.0)) as stores,
        aclosing(wire_upkeep(settings, stores, clock)) as upkeep,
    ):
        await stores.create_tables()
        webhooks = wire_administration(settings, stores, clock).webhooks
        new = WebhookSettings(url="https://hooks.invalid/")
        created = await webhooks.create("acme", new, by=TESTER)
        [row] = await all_rows(
            stores.client, stores.tables.core, webhook_partition("acme"), WEBHOOK_ROWS
        )
        secret = json.loads(read_text(row, WebhookItem.WEBHOOK))["secret"]
        prefixes = {"kms": "kms.", "server": "aes.", "nowhere": created.secret}
        assert secret.startswith(prefixes[where])
        # The secret is read before the name, which is found by nobody (RFC 6761).
        tried = await webhooks.send_test("acme", created.id)
        assert tried is not None
        assert "secret" not in tried.answer
        clock.now += 300
        assert (await upkeep.webhooks.run()).waiting == 0
