"""The metered route as clients meet it.

Keeps C1, C2, C4, C5, C8, C34, C36, C41, C43, C44, C52, C61, C62.
"""

import asyncio
import json
import math
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.asgi import Exchange, exchange, request
from tests.gateways import Always, House, house, request_body, store_is_away
from tests.memory.seal_keys import MemorySealKeys
from tests.scripted import FOREVER, Scripted, refuses, says
from tests.stores import TESTER, disable
from tollgate.core.clock import SystemClock
from tollgate.core.ids import IdSource, is_id
from tollgate.core.principal import KeyRole, Principal
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import DEADLINE_EXTENSION, chat_app
from tollgate.web.http.cors import WebLimits

PATH = "/v1/chat/completions"
LIMITS = WebLimits(allowed_origins=("https://app.example",), body_bytes_max=20_000)


SEALS = MemorySealKeys(IdSource(SystemClock()))


def app_of(home: House) -> ASGIApp:
    return chat_app(home.front, Always(home.gateway), LIMITS, seals=SEALS)


def bearer(secret: str, **headers: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}", **headers}


async def post(home: House, body: bytes, **headers: str) -> Exchange:
    return await request(
        app_of(home), "POST", PATH, headers=bearer(home.secret, **headers), body=body
    )


@pytest.mark.parametrize("prefix", ["", "/api", "/", "//api/"])
@pytest.mark.parametrize("suffix", ["", "/", "//"])
async def test_c1_every_spelling_of_the_path_is_the_same_route(prefix: str, suffix: str) -> None:
    home = await house()
    reply = await request(
        app_of(home),
        "POST",
        f"{prefix}{PATH}{suffix}",
        headers=bearer(home.secret),
        body=request_body(),
    )
    assert reply.status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
async def test_c41_another_method_is_405_in_the_envelope(method: str) -> None:
    reply = await request(app_of(await house()), method, PATH)
    assert reply.status == 405
    assert reply.error["code"] == "method_not_allowed"
    assert reply.headers["allow"] == "OPTIONS, POST"


async def test_c41_a_path_that_is_not_served_is_404_in_the_envelope() -> None:
    reply = await request(app_of(await house()), "POST", "/v1/elsewhere")
    assert (reply.status, reply.error["code"]) == (404, "not_found")


async def test_c2_every_bad_authorization_is_401_and_holds_nothing() -> None:
    home = await house()
    wrong = home.secret[:-1] + ("A" if home.secret[-1] != "A" else "B")
    expired = await home.stores.keys.create(
        NewKey(workspace_id="acme", label="x", expires_s=1), by=TESTER
    )
    disabled = await home.stores.keys.create(NewKey(workspace_id="acme", label="y"), by=TESTER)
    await disable(home.stores, disabled.summary.id)
    for authorization in (
        None,
        "",
        "Bearer",
        "Bearer ",
        home.secret,
        f"Basic {home.secret}",
        f"Bearer {home.secret} {home.secret}",
        f"Bearer {wrong}",
        "Bearer sk-tg-",
        "Bearer \xe9",
        f"Bearer {home.secret.upper()}",
        f"Bearer {expired.secret}",
        f"Bearer {disabled.secret}",
    ):
        headers = {} if authorization is None else {"authorization": authorization}
        reply = await request(app_of(home), "POST", PATH, headers=headers, body=request_body())
        assert (reply.status, reply.error["code"]) == (401, "invalid_api_key"), authorization
        assert reply.error["type"] == "authentication_error"
        assert reply.headers["www-authenticate"] == "Bearer"
        assert home.secret.encode() not in reply.body
    assert home.stores.books.records == {}
    assert home.held_nano_usd == 0


async def test_c2_of_a_header_that_is_repeated_the_first_is_read() -> None:
    home = await house()
    app = app_of(home)

    async def twice(scope: Scope, receive: Receive, send: Send) -> None:
        again = (b"authorization", b"Bearer sk-tg-other")
        await app({**scope, "headers": [*scope["headers"], again]}, receive, send)

    reply = await request(twice, "POST", PATH, headers=bearer(home.secret), body=request_body())
    assert reply.status == 200


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER   "])
async def test_c2_the_scheme_is_read_as_http_has_it(scheme: str) -> None:
    home = await house()
    headers = {"authorization": f"{scheme}{home.secret}"}
    assert (
        await request(app_of(home), "POST", PATH, headers=headers, body=request_body())
    ).status == 200


@pytest.mark.parametrize("role", ["management", "read"])
async def test_c41_c91_only_an_inference_key_may_generate(role: KeyRole) -> None:
    home = await house()
    new = NewKey(workspace_id="acme", label="m", role=role)
    secret = (await home.stores.keys.create(new, by=TESTER)).secret
    reply = await request(app_of(home), "POST", PATH, headers=bearer(secret), body=request_body())
    assert (reply.status, reply.error["code"]) == (403, "permission_denied")


@pytest.mark.parametrize("stream", [True, False])
async def test_c4_c5_a_reply_names_its_request_and_its_generation(stream: bool) -> None:
    home = await house()
    reply = await post(home, request_body(stream=stream))
    request_id = reply.headers["x-request-id"]
    assert is_id(request_id)
    assert reply.headers["x-generation-id"] == f"gen-{request_id}"
    first = reply.body.split(b"\n\n")[0].removeprefix(b"data: ") if stream else reply.body
    assert json.loads(first)["id"] == f"gen-{request_id}"
    assert home.record.id == request_id


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff", request_body("no/such"), request_body(stream="yes")],
)
async def test_c4_a_refusal_has_the_same_headers(body: bytes) -> None:
    home = await house()
    reply = await post(home, body, **{"x-request-id": "mine"})
    assert reply.status in (400, 404)
    assert reply.error["type"] in ("invalid_request_error", "not_found_error")
    assert reply.headers["x-generation-id"] == f"gen-{reply.headers['x-request-id']}"
    assert reply.headers["x-client-request-id"] == "mine"
    assert home.held_nano_usd == 0


@pytest.mark.parametrize(
    ("given", "echoed"),
    [
        ("mine", True),
        ("with spaces ~!", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        ("tab\there", False),
        ("caf\xe9", False),
        ("\x7f", False),
    ],
)
async def test_c4_the_clients_id_is_echoed_and_recorded_if_it_is_printable(
    given: str, echoed: bool
) -> None:
    home = await house()
    reply = await post(home, request_body(), **{"x-request-id": given})
    assert reply.headers.get("x-client-request-id") == (given if echoed else None)
    assert home.record.client_request_id == (given if echoed else None)
    assert reply.headers["x-request-id"] != given


async def test_c8_a_body_over_the_limit_is_413_before_it_is_read_whole() -> None:
    home = await house()
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b"{" * 5_000

    sent = exchange("POST", PATH, headers=bearer(home.secret), body=endless())
    reply = await sent.run(app_of(home))
    assert (reply.status, reply.error["code"]) == (413, "payload_too_large")
    assert "/v1/files" in reply.error["message"]
    assert read <= 6


async def test_c8_a_body_at_the_limit_in_pieces_is_read() -> None:
    home = await house()
    body = request_body().ljust(20_000)
    pieces = [body[start : start + 999] for start in range(0, len(body), 999)]
    reply = await request(app_of(home), "POST", PATH, headers=bearer(home.secret), body=pieces)
    assert reply.status == 200


@pytest.mark.parametrize(("depth", "status"), [(198, 200), (202, 400), (9_000, 400)])
async def test_c8_json_nested_deeper_than_200_is_400(depth: int, status: int) -> None:
    nested = b"[" * depth + b"]" * depth
    body = request_body()[:-1] + b', "elsewhere": ' + nested + b"}"
    reply = await post(await house(), body)
    assert reply.status == status


async def test_c44_a_client_that_leaves_before_its_request_is_complete_gets_nothing() -> None:
    home = await house()
    sent = exchange("POST", PATH, headers=bearer(home.secret), body=[])

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def never(_: object) -> None:
        raise AssertionError("nobody is there")

    await app_of(home)(sent.scope, gone, never)  # type: ignore[arg-type]
    assert home.stores.books.records == {}


@pytest.mark.parametrize("stream", [True, False])
async def test_c36_a_client_that_leaves_cancels_and_is_billed(stream: bool) -> None:
    home = await house(near=Scripted([*says("12345678"), FOREVER]))
    sent = exchange("POST", PATH, headers=bearer(home.secret), body=request_body(stream=stream))
    task = asyncio.create_task(sent.run(app_of(home)))
    await asyncio.sleep(1)
    sent.leave()
    await task
    assert home.record.outcome == "cancelled"
    assert home.spent_nano_usd > 0
    assert (sent.complete, home.journal.defects) == (False, [])


async def test_c36_a_server_that_refuses_writes_says_that_the_client_left() -> None:
    home = await house(near=Scripted([*says("12345678"), *says("more"), FOREVER]))
    sent = exchange("POST", PATH, headers=bearer(home.secret), body=request_body(stream=True))
    sent.refuses_writes = True
    await sent.run(app_of(home))
    assert home.record.outcome == "cancelled"
    assert home.journal.defects == []


async def test_a_server_that_stops_cancels_settles_and_is_obeyed() -> None:
    home = await house(near=Scripted([*says("12345678"), FOREVER]))
    home.ledger.settle_takes_s = 2
    sent = exchange("POST", PATH, headers=bearer(home.secret), body=request_body(stream=True))
    task = asyncio.create_task(sent.run(app_of(home)))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert home.record.outcome == "cancelled"


async def test_c34_the_platforms_deadline_leaves_time_to_settle() -> None:
    home = await house(near=Scripted([*says("Hel"), FOREVER]))
    now_s = home.gateway.clock.now_s()
    reply = await request(
        app_of(home),
        "POST",
        PATH,
        headers=bearer(home.secret),
        body=request_body(stream=True),
        extensions={DEADLINE_EXTENSION: {"epoch_ms": (now_s + 60) * 1000}},
    )
    assert b"provider_timeout" in reply.body
    assert home.record.duration_ms == 52_000


async def test_c34_a_deadline_that_has_passed_is_504() -> None:
    home = await house(near=Scripted([FOREVER]))
    reply = await request(
        app_of(home),
        "POST",
        PATH,
        headers=bearer(home.secret),
        body=request_body(stream=True),
        extensions={DEADLINE_EXTENSION: {"epoch_ms": 0}},
    )
    assert (reply.status, reply.error["code"]) == (504, "provider_timeout")
    assert (home.record.outcome, home.record.duration_ms) == ("error", 0)


async def test_c34_a_whole_answer_ends_before_the_connection_would() -> None:
    home = await house(
        near=Scripted([*says("Hel"), FOREVER]), defaults={"timeouts": {"idle_s": 900.0}}
    )
    reply = await post(home, request_body("acme/small"))
    assert (reply.status, reply.error["code"]) == (504, "provider_timeout")
    assert home.record.duration_ms == 285_000


async def test_c52_a_header_keeps_the_first_model() -> None:
    home = await house(near=Scripted(refuses(401)))
    reply = await post(home, request_body("smart"), **{"x-disable-fallback": "True"})
    assert reply.status == 502
    assert [attempt.model for attempt in home.record.attempts] == ["acme/small"]


@pytest.mark.parametrize("stream", [True, False])
async def test_c43_c61_too_many_requests_are_429_with_retry_after(stream: bool) -> None:
    new = NewKey(workspace_id="acme", label="test", requests_per_minute=6, burst=2)
    home = await house(key=new)
    for _ in range(2):
        assert (await post(home, request_body())).status == 200
    reply = await post(home, request_body(stream=stream))
    assert (reply.status, reply.error["code"]) == (429, "rate_limit_exceeded")
    assert reply.headers["retry-after"] == "10"
    names = ("limit", "remaining", "reset")
    said = {name: reply.headers[f"x-ratelimit-{name}-requests"] for name in names}
    assert said == {"limit": "2", "remaining": "0", "reset": "20.000s"}
    assert "x-ratelimit-limit-tokens" not in reply.headers


@pytest.mark.parametrize("stream", [True, False])
async def test_c43_c63_too_many_tokens_are_429_and_say_when_there_are_more(stream: bool) -> None:
    home = await house(key=NewKey(workspace_id="acme", label="test", tokens_per_minute=1))
    assert (await post(home, request_body())).status == 200
    reply = await post(home, request_body(stream=stream))
    assert (reply.status, reply.error["code"]) == (429, "rate_limit_exceeded")
    assert reply.headers["x-ratelimit-limit-tokens"] == "1"
    assert reply.headers["x-ratelimit-remaining-tokens"] == "0"
    reset_s = float(reply.headers["x-ratelimit-reset-tokens"].removesuffix("s"))
    assert int(reply.headers["retry-after"]) == math.ceil(reset_s)


async def test_c20_a_refusal_names_what_nobody_knows() -> None:
    for body in (request_body(novelty=1), request_body(novelty=1, model="acme/nothing")):
        home = await house()
        home.stores.books.wallets["acme"].available = 0
        reply = await post(home, body)
        assert reply.status in (402, 404)
        assert reply.headers["x-tollgate-adapted"] == "novelty"


async def test_c43_c61_without_credit_it_is_402_and_says_how_to_add_some() -> None:
    home = await house()
    home.stores.books.wallets["acme"].available = 0
    reply = await post(home, request_body())
    assert (reply.status, reply.error["code"]) == (402, "insufficient_credits")
    assert "tollgate credits add" in reply.error["message"]


async def test_c61_a_locked_workspace_is_refused_by_name() -> None:
    home = await house()
    home.stores.books.lock("acme")
    assert (await post(home, request_body())).error["code"] == "workspace_locked"


class Away:
    """A key store that cannot be reached."""

    async def authenticate(self, secret: str) -> Principal:
        raise store_is_away()


async def test_c62_a_store_that_is_away_refuses() -> None:
    home = await house()

    front = replace(home.front, keys=Away())  # type: ignore[arg-type]
    app = chat_app(front, Always(home.gateway), LIMITS)
    reply = await request(app, "POST", PATH, headers=bearer(home.secret), body=request_body())
    assert (reply.status, reply.error["code"]) == (503, "service_unavailable")
    assert reply.headers["retry-after"] == "5"


async def test_c41_a_defect_before_the_hold_is_500_without_details() -> None:
    home = await house()
    for key in home.stores.books.keys.values():
        key.settings = "the details"  # type: ignore[assignment]  # no store writes this
    reply = await post(home, request_body())
    assert (reply.status, reply.error["code"]) == (500, "internal_error")
    assert b"details" not in reply.body
    assert [request_id for _, request_id in home.journal.defects] == [reply.headers["x-request-id"]]


async def test_c21_a_chat_under_an_endpoints_own_id_is_served_and_unknown_ids_hold_nothing() -> (
    None
):
    home = await house()
    reply = await post(home, request_body(model="azure/large-1"))
    assert (reply.status, reply.json["model"]) == (200, "acme/large")
    assert reply.headers["x-model-used"] == "acme/large"
    refused = await post(home, request_body(model="azure/large-2"))
    assert (refused.status, refused.json["error"]["code"]) == (404, "model_not_found")
