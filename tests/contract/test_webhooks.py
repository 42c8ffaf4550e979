"""Webhooks: every change is an event that arrives, signed, at least once, and nothing else does.

Keeps C61, C71, C90.
"""

import asyncio
import base64
import hmac
import json
import ssl
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.receiver import Receiver, leading_to, receiver, tls
from tests.contract.test_alert_channels import verified
from tests.contract.test_workspaces import spend
from tests.stores import TESTER, DynamoStores, an_entry, disable, funded_key
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.aws.failures import StoreUnavailable
from tollgate.core.clock import DAY_S
from tollgate.core.errors import RequestError
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import AuditEntry, AuditFilter
from tollgate.core.webhooks import WEBHOOKS_MAX, DeliveryFailed, Webhook, WebhookSettings
from tollgate.stores.aws.transactions import transact
from tollgate.stores.money.budgets import Budgets
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.records.audit_log import entry_puts
from tollgate.stores.rules.reports import WebhookReport
from tollgate.stores.webhooks.endpoints import DynamoWebhookStore
from tollgate.stores.webhooks.posting import EventSender, post_event
from tollgate.stores.webhooks.rounds import WebhookRounds
from tollgate.stores.webhooks.sealing import PlainSecrets, SecretSealer

__all__ = ["receiver", "tls"]
OPERATORS = "platform"
Tls = tuple[ssl.SSLContext, ssl.SSLContext]


class Hooks:
    """The webhooks of some stores, whose events go to one receiver."""

    def __init__(self, dynamo: DynamoStores, receiver: Receiver, tls: Tls) -> None:
        self.dynamo = dynamo
        self.receiver = receiver
        self.egress = leading_to("127.0.0.1", tls=tls[1])
        self.encrypt_with(PlainSecrets())

    def encrypt_with(self, sealer: SecretSealer) -> None:
        """From now on, secrets are encrypted so."""
        self.sealer = sealer
        self.sender = EventSender(self.dynamo.clock, self.egress, sealer)
        self.store = self.store_over(self.dynamo.client)
        self.rounds = self.rounds_over(self.dynamo.client)

    def store_over(self, client: AwsCaller) -> DynamoWebhookStore:
        clock = self.dynamo.clock
        return DynamoWebhookStore(
            client, self.dynamo.tables, self.sender, self.sealer, ids=IdSource(clock), clock=clock
        )

    def rounds_over(self, client: AwsCaller) -> WebhookRounds:
        return WebhookRounds(
            client,
            self.dynamo.tables,
            self.store_over(client),
            self.sender,
            operator_workspace=OPERATORS,
            clock=self.dynamo.clock,
        )

    async def make(self, *events: str, workspace_id: str = "acme") -> Webhook:
        """A webhook, made a while after what came before."""
        await self.dynamo.workspaces.ensure(workspace_id, by=TESTER)
        self.dynamo.clock.now += 1_000
        settings = WebhookSettings(
            url=f"https://hooks.example:{self.receiver.port}/x?token=t", events=events or ("*",)
        )
        return await self.store.create(workspace_id, settings, by=TESTER)

    async def run(self, *, after_s: int = 300) -> WebhookReport:
        """A round, five minutes later or as told."""
        self.dynamo.clock.now += after_s
        return await self.rounds.run()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.receiver.received]

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


@pytest.fixture
def hooks(dynamo: DynamoStores, receiver: Receiver, tls: Tls) -> Hooks:
    return Hooks(dynamo, receiver, tls)


def standard(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Verify a signature as standardwebhooks.com describes it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = b"%s.%s.%s" % (
        headers["webhook-id"].encode(),
        headers["webhook-timestamp"].encode(),
        body,
    )
    expected = base64.b64encode(hmac.new(key, signed, "sha256").digest()).decode()
    return f"v1,{expected}" in headers["webhook-signature"].split(" ")


async def test_c90_each_change_arrives_once_signed_with_its_author(hooks: Hooks) -> None:
    webhook = await hooks.make("key.*", "credit.*", "workspace.*")
    _, principal = await funded_key(hooks.dynamo, 100)
    await disable(hooks.dynamo, principal.key_id)
    await hooks.dynamo.workspaces.set_locked("acme", locked=True, by=TESTER)
    assert await hooks.run() == WebhookReport(sent=4)
    assert sorted(hooks.types) == [
        "credit.granted",
        "key.created",
        "key.disabled",
        "workspace.locked",
    ]
    for headers, body in hooks.receiver.received:
        event = json.loads(body)
        assert event["id"] == headers["webhook-id"]
        assert event["workspace_id"] == "acme"
        author = {"type": "process", "id": "tests", "name": None, "member_id": None}
        assert event["data"]["actor"] == author
        assert standard(headers, body, webhook.secret)
        assert verified(headers, body, webhook.secret, hooks.dynamo.clock.now)
        assert not standard(headers, body, "whsec_b3RoZXI=")
    for _ in range(3):
        assert await hooks.run() == WebhookReport()
    shown = await hooks.store.get("acme", webhook.id)
    assert shown is not None
    assert shown.health.delivered_s is not None
    listed = await hooks.store.deliveries("acme", webhook.id)
    assert [it.status for it in listed or ()] == ["delivered"] * 4


async def test_c90_an_event_is_neither_lost_nor_made_up_where_processes_die(
    hooks: Hooks,
) -> None:
    """A round ends at every write that it makes, before and after it; the next one goes on."""

    class Dying:
        def __init__(self, client: AwsCaller, at: int, *, applied: bool) -> None:
            self.client, self.left, self.applied = client, at, applied

        async def call(
            self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
        ) -> AwsReply:
            if operation not in ("PutItem", "UpdateItem", "DeleteItem"):
                return await self.client.call(operation, payload, attempts_max=attempts_max)
            self.left -= 1
            if self.left == 0 and self.applied:
                await self.client.call(operation, payload)
            if self.left <= 0:
                raise StoreUnavailable("dead", maybe_applied=True)
            return await self.client.call(operation, payload, attempts_max=attempts_max)

    webhook = await hooks.make("key.*")
    made = set()
    for at in range(1, 8):
        for applied in (False, True):
            name = f"{at} {applied}"
            _, principal = await funded_key(hooks.dynamo, 100)
            made.add(principal.key_id)
            dying = Dying(hooks.dynamo.client, at, applied=applied)
            await hooks.rounds_over(dying).run()
            # A delivery that was claimed is due again four minutes later.
            await hooks.run()
            assert {event["data"]["target"] for event in hooks.events} == made, name
    ids = [event["id"] for event in hooks.events]
    assert len(set(ids)) == len(made)
    assert len(ids) <= len(made) + 5, "only a death between sending and noting it sends again"
    listed = await hooks.store.deliveries("acme", webhook.id)
    assert {it.status for it in listed or ()} == {"delivered"}


async def test_an_entry_that_lands_late_is_sent_too(hooks: Hooks) -> None:
    await hooks.make("key.*")
    await hooks.run()
    late = replace(an_entry(), workspace_id="acme", action="key.rotate", target="K")
    at_ms = int((hooks.dynamo.clock.now - 200) * 1_000)
    late = replace(late, id=f"{at_ms:013d}{late.id[13:]}", at_ms=at_ms)
    puts = entry_puts(hooks.dynamo.tables.core, late)
    await transact(hooks.dynamo.client, IdSource(hooks.dynamo.clock), puts)
    await hooks.run()
    assert hooks.types == ["key.rotated"]


async def test_two_rounds_at_once_send_each_event_once(hooks: Hooks) -> None:
    await hooks.make("key.*")
    for _ in range(5):
        await funded_key(hooks.dynamo, 100)
    hooks.dynamo.clock.now += 300
    reports = await asyncio.gather(hooks.rounds.run(), hooks.rounds.run(), hooks.rounds.run())
    assert sum(report.sent for report in reports) == len(hooks.events)
    assert len({event["id"] for event in hooks.events}) == 5


async def test_a_receiver_that_fails_is_tried_for_three_days_then_disabled(hooks: Hooks) -> None:
    webhook = await hooks.make("key.*")
    await funded_key(hooks.dynamo, 100)
    hooks.receiver.status = 500
    began = hooks.dynamo.clock.now
    waits, tried = [], 0
    while hooks.dynamo.clock.now < began + 4 * DAY_S:
        if (await hooks.run(after_s=1_800)).failed:
            waits.append(hooks.dynamo.clock.now - began)
            tried += 1
    assert 10 < tried < 25
    assert waits[-1] >= 3 * DAY_S
    assert len({event["id"] for event in hooks.events}) == 1, "the id stays the same"
    [delivery] = await hooks.store.deliveries("acme", webhook.id) or ()
    assert (delivery.status, delivery.answer, delivery.attempts) == ("failed", "HTTP 500", tried)
    shown = await hooks.store.get("acme", webhook.id)
    assert shown is not None
    assert not shown.webhook.enabled
    assert shown.webhook.disabled_reason == "It accepted no event for 3 days: HTTP 500."
    [entry] = await audited(hooks, "webhook.disable")
    assert (entry.actor.id, entry.target) == ("sweeper", webhook.id)
    assert entry.after == {"disabled": "true"}

    hooks.receiver.status, hooks.receiver.received = 204, []
    await funded_key(hooks.dynamo, 100)
    hooks.dynamo.clock.now += 1_000
    await hooks.store.change("acme", webhook.id, lambda it: replace(it, enabled=True), by=TESTER)
    await hooks.run()
    assert hooks.types == [], "what happened while it was disabled is not sent"
    assert await hooks.store.redeliver("acme", webhook.id, delivery.event_id) is not None
    await hooks.run()
    assert [event["id"] for event in hooks.events] == [delivery.event_id]


async def test_a_receiver_that_fails_gets_few_attempts_of_a_round_and_recovers(
    hooks: Hooks,
) -> None:
    await hooks.make("key.*")
    for _ in range(8):
        await funded_key(hooks.dynamo, 100)
    hooks.receiver.status = 503
    assert await hooks.run() == WebhookReport(failed=3)
    hooks.receiver.status = 200
    total = sum([(await hooks.run()).sent for _ in range(3)])
    assert total == 8


async def test_c61_a_workspaces_budget_and_the_operators_catalogs_are_events(
    hooks: Hooks,
) -> None:
    dynamo = hooks.dynamo
    await hooks.make("budget.*")
    await hooks.make("catalog.*", workspace_id=OPERATORS)
    _, principal = await funded_key(dynamo, 100)
    await spend(dynamo, principal, 9)
    await dynamo.workspaces.change("acme", lambda it: replace(it, budget_nano_usd=5), by=TESTER)
    ids = IdSource(dynamo.clock)
    budgets = Budgets(
        dynamo.client, dynamo.tables, dynamo.workspaces, (), ids=ids, clock=dynamo.clock
    )
    assert await budgets.check("acme") == 4
    entry = an_entry()
    at_ms = int(dynamo.clock.now * 1_000)
    entry = replace(entry, id=f"{at_ms:013d}{entry.id[13:]}", at_ms=at_ms)
    puts = entry_puts(dynamo.tables.core, entry)
    await transact(dynamo.client, IdSource(dynamo.clock), puts)
    assert await hooks.run() == WebhookReport(sent=5)
    assert await hooks.run() == WebhookReport()
    assert sorted(hooks.types) == ["budget.threshold_reached"] * 4 + ["catalog.published"]
    percents = {it["data"]["percent"] for it in hooks.events if it["workspace_id"] == "acme"}
    assert percents == {50, 75, 90, 100}


async def test_c90_the_operators_webhook_gets_nothing_of_other_workspaces(hooks: Hooks) -> None:
    """An entry of a catalog is read from among those of all workspaces."""
    await hooks.make("key.*", workspace_id=OPERATORS)
    await funded_key(hooks.dynamo, 100)
    _, own = await funded_key(hooks.dynamo, 100, NewKey(workspace_id=OPERATORS, label="own"))
    await hooks.run()
    assert [event["data"]["target"] for event in hooks.events] == [own.key_id]


async def test_a_rotated_secret_signs_beside_the_old_one_until_its_grace_ends(
    hooks: Hooks,
) -> None:
    old = await hooks.make("key.*")
    new = await hooks.store.rotate("acme", old.id, grace_s=3_600, by=TESTER)
    assert new is not None
    await funded_key(hooks.dynamo, 100)
    await hooks.run()
    hooks.dynamo.clock.now += 3_600
    await funded_key(hooks.dynamo, 100)
    await hooks.run()
    [(first, body), (second, later)] = hooks.receiver.received
    assert standard(first, body, new.secret)
    assert standard(first, body, old.secret)
    assert standard(second, later, new.secret)
    assert not standard(second, later, old.secret)


async def test_c90_webhooks_are_audited_without_secret_and_path(hooks: Hooks) -> None:
    webhook = await hooks.make()
    rotated = await hooks.store.rotate("acme", webhook.id, grace_s=60, by=TESTER)
    assert rotated is not None
    await hooks.store.change("acme", webhook.id, lambda it: replace(it, events=("a.*",)), by=TESTER)
    assert await hooks.store.delete("acme", webhook.id, by=TESTER)
    assert not await hooks.store.delete("acme", webhook.id, by=TESTER)
    entries = await audited(hooks, "webhook.")
    assert [entry.action for entry in entries] == [
        "webhook.create",
        "webhook.rotate",
        "webhook.change",
        "webhook.delete",
    ]
    assert entries[0].after["host"] == "hooks.example"
    for text in (webhook.secret[6:], rotated.secret[6:], "token=t"):
        assert text not in str(entries)


async def test_a_workspace_has_at_most_so_many_webhooks_also_at_once(hooks: Hooks) -> None:
    await hooks.make()
    made = await asyncio.gather(
        *(hooks.make() for _ in range(WEBHOOKS_MAX + 3)), return_exceptions=True
    )
    refused = [it for it in made if isinstance(it, BaseException)]
    assert len(await hooks.store.list("acme")) <= WEBHOOKS_MAX
    assert refused
    assert all(isinstance(it, RequestError) for it in refused)


async def test_a_test_is_sent_at_once_and_tells_the_status_alone(hooks: Hooks) -> None:
    webhook = await hooks.make("key.*")
    hooks.receiver.body = b"secret words of a service inside" * 10_000
    sent = await hooks.store.send_test("acme", webhook.id)
    assert sent is not None
    assert (sent.status, sent.answer, hooks.types) == ("delivered", "HTTP 204", ["webhook.test"])
    hooks.receiver.status = 302
    failed = await hooks.store.send_test("acme", webhook.id)
    assert failed is not None
    assert (failed.status, failed.answer) == ("failed", "HTTP 302")
    assert len(hooks.receiver.received) == 2, "a redirect is not followed"
    assert await hooks.store.send_test("other", webhook.id) is None


async def test_a_slow_receiver_is_given_up(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook = await hooks.make("key.*")
    hooks.receiver.release = asyncio.Event()
    monkeypatch.setattr("tollgate.stores.webhooks.posting._TIMEOUT_S", 0.1)
    failed = await hooks.store.send_test("acme", webhook.id)
    hooks.receiver.release.set()
    assert failed is not None
    assert (failed.status, failed.answer) == ("failed", "TimedOut")


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "168.63.129.16", "fd00:ec2::254"]
)
async def test_c71_a_name_that_leads_inwards_is_not_reached(address: str) -> None:
    with pytest.raises(DeliveryFailed, match="ForbiddenUrl"):
        await post_event("https://hooks.example/", b"{}", {}, leading_to(address))


async def audited(hooks: Hooks, action: str) -> list[AuditEntry]:
    """The entries of such actions, oldest first."""
    wanted = AuditFilter(since_s=0, until_s=int(hooks.dynamo.clock.now) + 1)
    page = await hooks.dynamo.audit_log.page("acme", wanted, limit=100)
    found = [entry for entry in page.found if entry.action.startswith(action)]
    order = ["create", "rotate", "change", "delete", "disable"]
    return sorted(found, key=lambda it: (it.at_ms, order.index(it.action.split(".")[1])))
