"""Receivers that answer just before the time limit, and workspaces that never stop changing.

Keeps C90. A round has an end, and workspaces whose receivers are fast get their events in it.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from random import Random

from msgspec.structs import replace

from tests.capacity.engine import MemoryDynamo
from tests.capacity.partitions import Partitions
from tests.stores import an_entry
from tests.virtual_time import LoopClock, VirtualTimeLoop
from tollgate.aws.attributes import number, string
from tollgate.core.ids import IdSource
from tollgate.core.webhooks import DeliveryFailed, Webhook, WebhookEvent, iso_ms
from tollgate.http1.egress import Egress
from tollgate.stores.aws.items import WebhookItem
from tollgate.stores.aws.tables import Tables, create_tables, webhook_key, workspace_name_key
from tollgate.stores.records.audit_log import entry_puts
from tollgate.stores.rules.reports import WebhookReport
from tollgate.stores.webhooks.endpoints import DynamoWebhookStore
from tollgate.stores.webhooks.posting import EventSender
from tollgate.stores.webhooks.rounds import WebhookRounds
from tollgate.stores.webhooks.rows import encode_delivery, encode_webhook, new_delivery
from tollgate.stores.webhooks.sealing import PlainSecrets

TABLES = Tables(core="core", ledger="ledger", generations="generations")
# The timeout of the function that runs a round, and the time that most of it must leave over.
TIMEOUT_S = 240
ROUND_S = 120


class Receivers(EventSender):
    """Receivers that answer after `slow_s` if their workspace is hostile, else at once."""

    def __init__(self, clock: LoopClock, *, slow_s: float, refuses: bool = False) -> None:
        super().__init__(clock, Egress(), PlainSecrets())
        self.slow_s = slow_s
        self.refuses = refuses
        self.taken: Counter[str] = Counter()
        self.open: Counter[str] = Counter()
        self.open_max = 0

    async def send(self, webhook: Webhook, event_id: str, event: bytes) -> int:
        name = webhook.workspace_id
        is_hostile = name.startswith("hostile")
        self.open[name] += 1
        self.open_max = max(self.open_max, self.open[name])
        await asyncio.sleep(self.slow_s if is_hostile else 0.02)
        self.open[name] -= 1
        self.taken[name] += 1
        if is_hostile and self.refuses:
            raise DeliveryFailed("HTTP 500")
        return 204


class Gateway:
    """Webhooks of many workspaces, over a store in memory and in virtual time."""

    def __init__(self, *, slow_s: float = 4.6, refuses: bool = False) -> None:
        self.clock = LoopClock()
        partitions = Partitions(
            self.clock.monotonic_s, partitions=100, write_units=10**9, read_units=10**9
        )
        self.client = MemoryDynamo(partitions, Random(1))
        self.receivers = Receivers(self.clock, slow_s=slow_s, refuses=refuses)
        self.ids = IdSource(self.clock)
        endpoints = DynamoWebhookStore(
            self.client,
            TABLES,
            self.receivers,
            PlainSecrets(),
            ids=self.ids,
            clock=self.clock,
        )
        self.rounds = WebhookRounds(
            self.client,
            TABLES,
            endpoints,
            self.receivers,
            operator_workspace="platform",
            clock=self.clock,
        )

    async def add(self, workspace_id: str, *, webhooks: int = 1, events: int = 50) -> None:
        """Add a workspace whose webhooks have so many due deliveries each."""
        await self.client.call(
            "PutItem", {"TableName": "core", "Item": workspace_name_key(workspace_id)}
        )
        now_s = int(self.clock.now_s())
        for place in range(webhooks):
            webhook = Webhook(
                id=self.ids.new_id(),
                workspace_id=workspace_id,
                url="https://hooks.example/",
                events=("*",),
                created_s=now_s - 1_000,
                secret="whsec_",
            )
            item = {
                **webhook_key(workspace_id, place),
                WebhookItem.WEBHOOK: string(encode_webhook(webhook)),
                WebhookItem.REVISION: number(1),
                WebhookItem.CURSOR: number(now_s * 1_000),
            }
            rows = [item]
            for nth in range(events):
                event = WebhookEvent(
                    id=f"evt_{now_s}000.{nth:03d}",
                    type="key.created",
                    workspace_id=workspace_id,
                    created_at=iso_ms(now_s * 1_000),
                )
                rows.append(encode_delivery(webhook, new_delivery(event, now_s)))
            for row in rows:
                await self.client.call("PutItem", {"TableName": "core", "Item": row})

    async def change(self, workspace_id: str, times: int) -> None:
        """Write so many entries to a workspace's audit log."""
        at_ms = int((self.clock.now_s() - 10) * 1_000)
        for nth in range(times):
            entry = replace(an_entry(), workspace_id=workspace_id, action="key.create", target="K")
            entry = replace(entry, id=f"{at_ms + nth:013d}{entry.id[13:]}", at_ms=at_ms + nth)
            for put in entry_puts("core", entry):
                await self.client.call("PutItem", put["Put"])

    async def run(self) -> tuple[WebhookReport, float]:
        """Return the report of a round, and the seconds that it took."""
        begun_s = self.clock.monotonic_s()
        report = await self.rounds.run()
        return report, self.clock.monotonic_s() - begun_s


def test_c90_one_slow_receiver_with_fifty_events_does_not_fill_a_round() -> None:
    async def story() -> None:
        gateway = Gateway()
        await create_tables(gateway.client, TABLES)
        await gateway.add("hostile")
        report, took_s = await gateway.run()
        assert took_s < ROUND_S
        assert report.sent >= 30
        await asyncio.sleep(300)
        again, _ = await gateway.run()
        assert report.sent + again.sent == 50, "the rest comes with the next round"

    run(story())


def test_c90_slow_workspaces_do_not_take_the_places_of_others() -> None:
    async def story() -> None:
        gateway = Gateway()
        await create_tables(gateway.client, TABLES)
        for nth in range(20):
            await gateway.add(f"hostile-{nth}", webhooks=3, events=15)
        for nth in range(4):
            await gateway.add(f"quick-{nth}", events=6)
        _, took_s = await gateway.run()
        assert took_s < ROUND_S < TIMEOUT_S
        assert {gateway.receivers.taken[f"quick-{nth}"] for nth in range(4)} == {6}
        assert gateway.receivers.open_max <= 4

    run(story())


def test_a_receiver_that_fails_gets_three_attempts_of_a_round_also_at_once() -> None:
    async def story() -> None:
        gateway = Gateway(refuses=True)
        await create_tables(gateway.client, TABLES)
        await gateway.add("hostile")
        report, _ = await gateway.run()
        assert report == WebhookReport(failed=3)

    run(story())


def test_c90_events_that_do_not_fit_into_a_round_come_with_the_next_ones() -> None:
    async def story() -> None:
        gateway = Gateway(slow_s=0.02)
        await create_tables(gateway.client, TABLES)
        await gateway.add("hostile", events=0)
        await gateway.change("hostile", 240)
        gateway.client.latency_s = 1.0
        _, took_s = await gateway.run()
        assert took_s < TIMEOUT_S
        gateway.client.latency_s = 0.004
        for _ in range(6):
            await asyncio.sleep(300)
            await gateway.run()
        assert gateway.receivers.taken["hostile"] == 240

    run(story())


def run(story: Coroutine[None, None, None]) -> None:
    """Run a story in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(story)
