"""Write an item of every kind, and return the names and secrets by which another release finds
them.
"""

import json
from typing import Any, Final

from tests.asgi import request
from tests.side_by_side.release import OPERATOR, Release
from tests.stores import NOON_S, TESTER, an_entry, record_of
from tollgate.core.clock import DAY_S
from tollgate.core.limits import SessionLimit
from tollgate.core.routing.canary import Terms
from tollgate.core.routing.endpoint_status import AnswerTime
from tollgate.core.routing.publication import Signature, publish_canary, publish_to_all
from tollgate.stores.ports.administration import NewKey
from tollgate.wiring.exports import seal_audit_log

Left = dict[str, Any]
WRITTEN_S: Final = NOON_S
ACME: Final = "acme"
ECHO: Final = {
    "model": "test/echo",
    "messages": [{"role": "user", "content": "Hello"}],
    "max_tokens": 16,
}
ENDPOINT: Final = "test/echo@simulator/echo"
SUBJECT: Final = "https://issuer.example acme-1"
LIMITS: Final = {"day": 50, "week": 60, "month": 70, "total": 80}


async def write_everything(release: Release) -> Left:
    """Leave items of two days: what people do, what a request leaves, and work for schedules."""
    release.clock.now = WRITTEN_S - 2 * DAY_S
    left: Left = {}
    await _open_workspace(release, left)
    await _make_people(release, left)
    labelled = {"x-case": "7"}
    await release.ask("POST", "/v1/chat/completions", left["inference"], ECHO, headers=labelled)
    release.clock.now = WRITTEN_S
    # The first day is closed: its sums and the seal of its audit log are written.
    assert await release.administration.activity.close_due() > 0
    assert await seal_audit_log(release.settings, release.stores, release.clock) > 0
    await _generate(release, left)
    await _upload(release, left)
    await _batch(release, left)
    await _publish(release)
    await _leave_work(release, left)
    return left


async def _open_workspace(release: Release, left: Left) -> None:
    new = NewKey(workspace_id=OPERATOR, label="operator", role="management")
    left["operator"] = (await release.administration.keys.create(new, by=TESTER)).secret
    settings = {
        "id": ACME,
        "budget": 0.0001,
        "response_days": 7,
        "file_days": 30,
        "allowed_ips": "127.0.0.0/8",
        "key_days": 300,
        "usage_on": "frame",
        "admission": "covered",
    }
    await release.ask("POST", "/v1/workspaces", left["operator"], settings, status=201)
    for name, ends in (("lasting", None), ("expiring", "2026-12-31T00:00:00Z")):
        grant = {"id": name, "amount": 10, "workspace_id": ACME, "expires_at": ends}
        await release.ask("POST", "/v1/credits/grants", left["operator"], grant)
    lent = {"credit_limit": 5}
    await release.ask("PATCH", f"/v1/workspaces/{ACME}", left["operator"], lent)
    made = await release.ask(
        "POST",
        f"/v1/workspaces/{ACME}/keys",
        left["operator"],
        {"name": "management", "role": "management"},
        status=201,
    )
    left["management"] = made.json["key"]


async def _make_people(release: Release, left: Left) -> None:
    manager = left["management"]
    for team in ("research", "gone"):
        body = {"id": team, "limits": LIMITS, "requests_per_minute": 600}
        await release.ask("POST", "/v1/teams", manager, body, status=201)
    await release.ask("DELETE", "/v1/teams/gone", manager)
    person = {"id": "ana", "team_id": "research", "role": "developer", "limits": LIMITS}
    await release.ask("POST", "/v1/members", manager, person, status=201)
    scim = {"userName": "ben", "externalId": "b-1"}
    await release.ask("POST", "/v1/scim/v2/Users", manager, scim, status=201)
    settings = {
        "name": "inference",
        "member_id": "ana",
        "limits": LIMITS,
        "labels": {"environment": "x"},
        "models": ["test/*"],
        "content_days": 7,
        "response_days": 7,
        "allowed_ips": "127.0.0.0/8",
        "usage_on": "frame",
        "expires_at": "2099-01-01T00:00:00Z",
        "tokens_per_minute": 100_000,
        "concurrency": 50,
    }
    made = await release.ask("POST", "/v1/keys", manager, settings, status=201)
    left["key_id"] = made.json["data"]["id"]
    rotated = await release.ask(
        "POST", f"/v1/keys/{left['key_id']}/rotate", manager, {"grace_s": 10 * DAY_S}
    )
    left |= {"old_secret": made.json["key"], "inference": rotated.json["key"]}
    deleted = await release.ask("POST", "/v1/keys", manager, {"name": "deleted"}, status=201)
    await release.ask("DELETE", f"/v1/keys/{deleted.json['data']['id']}", manager)


async def _generate(release: Release, left: Left) -> None:
    members, cooldowns = release.administration.members, release.stores.cooldowns
    assert await members.link(ACME, "ana", SUBJECT, by=TESTER)
    cooldowns.add_answer(ENDPOINT, AnswerTime(first_token_ms=9, output_tokens=9, output_ms=90))
    await cooldowns.write_speed(ENDPOINT)
    opened = await release.administration.sessions.open(
        ACME, "ana", lifetime_s=3600, by=TESTER, renewable_s=30 * DAY_S
    )
    assert opened is not None
    left["session"] = opened.secret
    key = left["inference"]
    chat = await release.ask(
        "POST",
        "/v1/chat/completions",
        key,
        ECHO | {"user": "eve"},
        headers={"idempotency-key": "once", "x-case": "7"},
    )
    left["generation_id"] = chat.headers["x-generation-id"]
    for _ in range(2):
        await release.ask(
            "POST", "/v1/chat/completions", key, ECHO | {"model": "test/echo:529"}, status=529
        )
    said = {"model": "test/echo", "input": "Hello"}
    stored = [await release.ask("POST", "/v1/responses", key, said) for _ in range(2)]
    left["response_id"], deleted = (each.json["id"] for each in stored)
    await release.ask("DELETE", f"/v1/responses/{deleted}", key)
    # One waits for its worker, and one is cancelled, of which webhooks get an event.
    waiting = [
        await release.ask("POST", "/v1/responses", key, said | {"background": True})
        for _ in range(2)
    ]
    left["background_id"], cancelled = (each.json["id"] for each in waiting)
    await release.ask("POST", f"/v1/responses/{cancelled}/cancel", key)
    compacted = await release.ask("POST", "/v1/responses/compact", key, said)
    left["compacted"] = compacted.json["output"]


async def _upload(release: Release, left: Left) -> None:
    key = left["management"]
    form = (
        b'--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n'
        b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n'
        b"content-type: text/plain\r\n\r\nHello\r\n--b--\r\n"
    )
    headers = {"authorization": f"Bearer {key}", "content-type": "multipart/form-data; boundary=b"}
    left["file_id"] = (await _post_form(release, "/v1/files", headers, form))["id"]
    announced = {"filename": "b.txt", "purpose": "user_data", "bytes": 5}
    await release.ask("POST", "/v1/files/presigned", key, announced)
    typed = announced | {"mime_type": "text/plain"}
    upload = await release.ask("POST", "/v1/uploads", key, typed)
    left["upload_id"] = upload.json["id"]
    head = b'--b\r\ncontent-disposition: form-data; name="data"; filename="p"\r\n\r\n'
    path = f"/v1/uploads/{left['upload_id']}/parts"
    left["part_id"] = (await _post_form(release, path, headers, head + b"Hello\r\n--b--\r\n"))["id"]


async def _batch(release: Release, left: Left) -> None:
    """Leave a batch of one line that no worker has begun."""
    key = left["inference"]
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": ECHO}
    form = (
        b'--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n'
        + json.dumps(line).encode()
        + b"\r\n--b--\r\n"
    )
    headers = {"authorization": f"Bearer {key}", "content-type": "multipart/form-data; boundary=b"}
    file_id = (await _post_form(release, "/v1/files", headers, form))["id"]
    body = {
        "input_file_id": file_id,
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }
    made = await release.ask("POST", "/v1/batches", key, body)
    left["batch_id"] = made.json["id"]


async def _post_form(release: Release, path: str, headers: dict[str, str], form: bytes) -> Any:
    answer = await request(release.app, "POST", path, headers=headers, body=form)
    assert answer.status == 200, answer.body
    return answer.json


async def _publish(release: Release) -> None:
    publications = release.stores.publications
    sha = await publications.keep(release.catalog)
    signature = Signature(by="test", at_s=int(release.clock.now), commit="0" * 40)
    live = publish_to_all(None, sha, signature)
    await publications.move(live, an_entry())
    terms = Terms(worse_percent={"errors": 1}, false_alarms_percent=5)
    canary = publish_canary(live, "c" * 64, 1, signature, terms=terms)
    await publications.move(canary, an_entry())
    release.clock.now += 600
    assert await release.upkeep.canary.run() is not None
    release.clock.now -= 600


async def _leave_work(release: Release, left: Left) -> None:
    """Leave a hook with a failing delivery, a budget alert, an erasure, and a dead hold."""
    manager = left["management"]
    hook = {"url": "https://hooks.invalid/"}
    made = await release.ask("POST", "/v1/webhooks", manager, hook, status=201)
    left["webhook_id"] = made.json["data"]["id"]
    await release.upkeep.maintenance.run({})
    release.clock.now += 60
    await release.upkeep.webhooks.run()
    held = {"kind": "user", "id": "eve", "reason": "case 7"}
    left["hold_id"] = (await release.ask("POST", "/v1/holds", manager, held, status=201)).json[
        "data"
    ]["id"]
    erased = {"kind": "user", "id": "mallory"}
    await release.ask("POST", "/v1/erasures", manager, erased, status=201)
    principal = await release.stores.keys.authenticate(left["inference"])
    session = SessionLimit(id="0123456789abcdef", nano_usd=1_000_000_000)
    lost = await release.stores.ledger.hold(principal, 1_000_000, session=session)
    left["lost_id"] = lost.id
    billed = await release.stores.ledger.hold(principal, 2_000_000)
    await release.stores.ledger.settle(billed, record_of(billed, 500_000))
    left["billed_id"] = billed.id
