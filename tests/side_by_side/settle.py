"""Read, change and settle what another release wrote."""

from tests.side_by_side.release import Release
from tests.side_by_side.write import ACME, ECHO, ENDPOINT, SUBJECT, WRITTEN_S, Left
from tollgate.core.clock import DAY_S
from tollgate.core.records.activity import GenerationFilter
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S


async def settle_everything(release: Release, left: Left) -> None:
    """Use everything by its names and secrets; afterwards nothing is held and the books agree."""
    release.clock.now = WRITTEN_S + 600
    await _use_keys(release, left)
    await _use_people(release, left)
    await _use_records(release, left)
    await _use_files(release, left)
    await _use_money(release, left)
    await _run_schedules(release, left)


async def _use_keys(release: Release, left: Left) -> None:
    manager, key_id = left["management"], left["key_id"]
    for secret in (left["inference"], left["old_secret"]):
        await release.ask("POST", "/v1/chat/completions", secret, ECHO)
    shown = (await release.ask("GET", f"/v1/keys/{key_id}", manager)).json["data"]
    assert (shown["name"], shown["models"], shown["limits"]["day"]) == ("inference", ["test/*"], 50)
    changed = {"limits": {"day": 40}, "name": "renamed"}
    await release.ask("PATCH", f"/v1/keys/{key_id}", manager, changed)
    await release.ask("POST", f"/v1/keys/{key_id}/rotate", manager, {"grace_s": DAY_S})
    await release.ask("POST", "/v1/chat/completions", left["inference"], ECHO)
    names = {it["name"] for it in (await release.ask("GET", "/v1/keys", manager)).json["data"]}
    assert "renamed" in names


async def _use_people(release: Release, left: Left) -> None:
    manager = left["management"]
    for path in ("/v1/teams/research", "/v1/members/ana"):
        await release.ask("PATCH", path, manager, {"limits": {"day": 45}})
        assert (await release.ask("GET", path, manager)).json["data"]["limits"]["day"] == 45
    await release.ask("GET", "/v1/keys", left["session"])
    sessions = await release.ask("GET", "/v1/members/ana/sessions", manager)
    assert len(sessions.json["data"]) == 1
    await release.ask("DELETE", "/v1/members/ana/sessions", manager)
    found = await release.administration.members.find_by_subject(ACME, SUBJECT)
    assert found is not None
    assert found.id == "ana"
    assert set(await release.stores.cooldowns.find_speeds([ENDPOINT])) == {ENDPOINT}
    users = await release.ask("GET", "/v1/scim/v2/Users", manager)
    assert "ben" in {user["userName"] for user in users.json["Resources"]}


async def _use_records(release: Release, left: Left) -> None:
    key, manager = left["inference"], left["management"]
    record = await release.ask("GET", f"/v1/generation?id={left['generation_id']}", key)
    assert record.json["data"]["total_cost"] > 0
    await release.ask("GET", f"/v1/generation/content?id={left['generation_id']}", manager)
    again = await release.ask(
        "POST",
        "/v1/chat/completions",
        key,
        ECHO | {"user": "eve"},
        headers={"idempotency-key": "once", "x-case": "7"},
    )
    assert again.headers["x-generation-id"] == left["generation_id"]
    await release.ask("GET", f"/v1/responses/{left['response_id']}", key)
    waiting = f"/v1/responses/{left['background_id']}"
    assert (await release.ask("GET", waiting, key)).json["status"] == "queued"
    await release.ask("POST", f"{waiting}/cancel", key)
    following = {"model": "test/echo", "input": "More"}
    continued = following | {"previous_response_id": left["response_id"]}
    await release.ask("POST", "/v1/responses", key, continued)
    unsealed = following | {"input": [*left["compacted"], {"role": "user", "content": "More"}]}
    await release.ask("POST", "/v1/responses", key, unsealed)
    sums = await release.ask("GET", "/v1/activity?from=2026-11-18&to=2026-11-20", manager)
    assert sums.json["data"]
    assert (await release.ask("GET", "/v1/audit", manager)).json["data"]
    assert (await release.ask("GET", "/v1/audit/days", left["operator"])).json["data"]


async def _use_files(release: Release, left: Left) -> None:
    batch = f"/v1/batches/{left['batch_id']}"
    shown = (await release.ask("GET", batch, left["inference"])).json
    assert (shown["status"], shown["endpoint"]) == ("validating", "/v1/chat/completions")
    await release.ask("POST", f"{batch}/cancel", left["inference"])
    manager = left["management"]
    content = await release.ask("GET", f"/v1/files/{left['file_id']}/content", manager)
    assert content.body == b"Hello"
    parts = {"part_ids": [left["part_id"]]}
    await release.ask("POST", f"/v1/uploads/{left['upload_id']}/complete", manager, parts)
    await release.ask("DELETE", f"/v1/files/{left['file_id']}", manager)


async def _use_money(release: Release, left: Left) -> None:
    operator = left["operator"]
    ledger = await release.ask("GET", "/v1/credits/ledger", left["management"])
    assert {entry["id"] for entry in ledger.json["data"]} >= {"lasting", "expiring"}
    again = {"id": "lasting", "amount": 10, "workspace_id": ACME}
    await release.ask("POST", "/v1/credits/grants", operator, again)
    refund = {"generation_id": f"gen-{left['billed_id']}"}
    await release.ask("POST", "/v1/credits/refunds", operator, refund | {"workspace_id": ACME})
    await release.ask("PATCH", f"/v1/workspaces/{ACME}", operator, {"budget": 1, "key_days": 200})
    assert await release.stores.publications.publication() is not None
    assert await release.stores.publications.history()


async def _run_schedules(release: Release, left: Left) -> None:
    """Let holds of the dead end, and run what a stack runs on a schedule."""
    manager = left["management"]
    release.clock.now += HOLD_LIFETIME_S
    swept = await release.upkeep.sweeper.run()
    assert swept.settled == 1
    lost = await release.ask("GET", f"/v1/generation?id=gen-{left['lost_id']}", manager)
    assert lost.json["data"]["total_cost"] == 0
    maintained = await release.upkeep.maintenance.run(swept.crowded)
    assert maintained.failed == 0
    await release.upkeep.webhooks.run()
    path = f"/v1/webhooks/{left['webhook_id']}"
    assert (await release.ask("GET", f"{path}/deliveries", manager)).json["data"]
    await release.ask("PATCH", path, manager, {"enabled": False})
    await release.ask("DELETE", f"/v1/holds/{left['hold_id']}", manager)
    assert len((await release.ask("GET", "/v1/erasures", manager)).json["data"]) == 1
    release.clock.now += DAY_S
    assert await release.administration.activity.close_due() > 0
    differences = await release.upkeep.audit.run()
    assert not differences, differences
    # Bills are read where records may have expired.
    release.clock.now += 40 * DAY_S
    first_day = GenerationFilter(since_s=int(WRITTEN_S) - 3 * DAY_S, until_s=int(WRITTEN_S) - DAY_S)
    page = await release.stores.generations.page(ACME, first_day, limit=9)
    assert page.found
    assert not page.unreadable
