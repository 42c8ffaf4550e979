"""Work that is left to schedules, and the schedules."""

import sys
from collections.abc import Mapping
from contextlib import aclosing
from typing import Final

from tests.clocks import ShiftedClock
from tests.deployed_functions import FUNCTIONS
from tests.deployment import Deployment, environment, open_stores
from tests.stores import TESTER, an_entry, record_of
from tollgate.core.clock import DAY_S, SystemClock
from tollgate.core.ids import IdSource
from tollgate.core.routing.canary import FigureRead, Look, Terms
from tollgate.core.routing.publication import Signature, publish_canary
from tollgate.core.webhooks import WebhookSettings
from tollgate.http1.egress import Egress
from tollgate.settings import Settings
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S
from tollgate.stores.rules.webhook_events import TRIED_FOR_S
from tollgate.stores.webhooks.endpoints import DynamoWebhookStore
from tollgate.stores.webhooks.posting import EventSender
from tollgate.stores.webhooks.rounds import WebhookRounds
from tollgate.wiring.stores import Stores
from tollgate.wiring.webhook_secrets import wire_sealer

# More holds than one shard should have, so that maintenance adds shards.
CROWD: Final = 70


async def leave_work(deployment: Deployment) -> None:
    """Leave to schedules a hold, a crowded wallet, a budget, a day, an upload and a canary."""
    workspace, operator = await deployment.workspace(), await deployment.operator()
    settings = {"budget": 0.0001, "pause_at_budget": True}
    path = f"/v1/workspaces/{workspace.id}"
    answer = await deployment.ask("PATCH", path, operator, body=settings)
    assert answer.status == 200, answer.body
    yesterday = ShiftedClock(-2 * DAY_S)
    dead = ShiftedClock(-HOLD_LIFETIME_S - 60)
    async with (
        aclosing(open_stores(deployment.settings, yesterday)) as earlier,
        aclosing(open_stores(deployment.settings, dead)) as before,
    ):
        principal = await deployment.stores.keys.authenticate(workspace.inference.secret)
        hold = await earlier.ledger.hold(principal, 1_000_000)
        await earlier.ledger.settle(hold, record_of(hold, 500_000))
        await leave_an_event(earlier, deployment.settings, workspace.id)
        if earlier.objects is not None:
            late = IdSource(yesterday).new_id()
            await earlier.objects.put(f"uploads/{'0' * 32}/{late}", b"late")
        await before.ledger.hold(principal, 1_000_000)
        # One after the other: a busy machine would not confirm them all in time at once.
        for _ in range(CROWD):
            await deployment.stores.ledger.hold(principal, 1)
    await leave_a_broken_canary(deployment.stores)


async def leave_a_broken_canary(stores: Stores) -> None:
    """Leave a candidate that broke its terms at a look of a sweeper that died before it moved."""
    live = await stores.publications.publication()
    assert live is not None
    at_s = int(SystemClock().now_s()) - 640
    terms = Terms(worse_percent={"errors": 1}, false_alarms_percent=5)
    canary = publish_canary(live, "c" * 64, 1, Signature(by="test", at_s=at_s), terms=terms)
    await stores.publications.move(canary, an_entry())
    look = Look(
        revision=canary.revision,
        number=1,
        at_s=at_s,
        state="broken",
        requests=100,
        live_requests=100,
        keys=10,
        live_keys=10,
        figures={"errors": FigureRead(live=1, candidate=50, p=0.0001)},
        broken="errors",
    )
    assert await stores.publications.keep_look(look)


async def leave_an_event(stores: Stores, settings: Settings, workspace_id: str) -> None:
    """Leave an event that its webhook has not taken for as long as it is tried."""
    clock = ShiftedClock(-TRIED_FOR_S - 60)
    client, tables, ids = stores.client, stores.tables, IdSource(clock)
    sealer = wire_sealer(settings, stores.kms, ids)
    sender = EventSender(clock, Egress(), sealer)
    webhooks = DynamoWebhookStore(client, tables, sender, sealer, ids=ids, clock=clock)
    hook = WebhookSettings(url="https://hooks.invalid/")
    await webhooks.create(workspace_id, hook, by=TESTER)
    rounds = WebhookRounds(client, tables, webhooks, sender, operator_workspace="", clock=clock)
    assert (await rounds.run()).failed


async def store_an_answer(stores: Stores, workspace_id: str) -> None:
    """Store an answer that the workspace deletes."""
    assert stores.answer_cache is not None
    await stores.answer_cache.put(workspace_id, "0a1b", b"{}")


async def run_on_schedule(deployment: Deployment, scheduled: Mapping[str, str]) -> None:
    """Run the sweeper, webhooks, the roll-up and then the audit, as their schedules do."""
    variables = environment(deployment.settings, endpoint_url=deployment.proxy.url)
    for name, event in (
        ("sweeper", {}),
        ("sweeper", {"task": "webhooks"}),
        ("rollup", {}),
        ("sweeper", {"task": "audit"}),
    ):
        function = deployment.emulator.functions.get(name)
        if function is None:
            function = await deployment.emulator.start_function(
                name=name,
                command=[sys.executable, "-m", "awslambdaric", f"{name}.handler"],
                env={**variables, **scheduled},
                mode="BUFFERED",
                timeout_s=240,
                routes=[],
                task_root=FUNCTIONS,
            )
        invocation = function.invoke(event)
        await invocation.finished.wait()
        assert invocation.error is None, function.log
    assert (await deployment.stores.publications.history())[0].withdrawn
