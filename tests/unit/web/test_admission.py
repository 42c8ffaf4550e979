"""A body is read once its caller is known, and no further than its route's limit.

Keeps C2, C8, C41, C91.
"""

from collections.abc import Iterator

import pytest
from starlette.types import ASGIApp, Message

from tests.asgi import Exchange, exchange
from tests.cells import cells
from tests.gateways import Always
from tests.unit.sign_in.signing_in import house
from tests.unit.web.browsing import Browser
from tests.unit.web.routes import MANAGEMENT_ROUTES, ROUTES
from tests.unit.web.served_api import LIMITS
from tests.unit.web.test_api_app import api
from tollgate.web.access import ACCESS
from tollgate.web.chat_app import chat_app
from tollgate.web.files.upload_routes import PART_FORM_BYTES_MAX
from tollgate.web.http.cors import WebLimits
from tollgate.web.http.paths import OPENAPI

LIMIT = 1_000_000
WITH_BODY = [route for route in ROUTES if route[0] in ("POST", "PATCH")]


async def send_unread(app: ASGIApp, sent: Exchange) -> None:
    """Send a request whose body must not be asked for."""

    async def receive() -> Message:
        raise AssertionError("the body was asked for")

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            sent.status = message["status"]
            sent.raw_headers = [(n.decode(), v.decode()) for n, v in message["headers"]]
        else:
            sent.body += message["body"]

    await app(sent.scope, receive, send)


@pytest.mark.parametrize("authorization", [None, "Bearer", "Bearer sk-tg-nobody", "Basic x"])
async def test_c2_c8_no_byte_of_a_body_is_read_without_a_good_key(
    authorization: str | None,
) -> None:
    app = (await api()).app
    headers = {} if authorization is None else {"authorization": authorization}
    for method, path, _ in ROUTES:
        sent = exchange(method, path, headers=headers)
        await send_unread(app, sent)
        assert (sent.status, sent.error["code"]) == (401, "invalid_api_key"), (method, path)


async def test_c8_c41_no_byte_of_a_body_is_read_of_a_key_of_another_role() -> None:
    call = await api()
    app, headers = call.app, {"authorization": f"Bearer {call.home.secret}"}
    for method, path, _ in MANAGEMENT_ROUTES:
        sent = exchange(method, path, headers=headers)
        await send_unread(app, sent)
        assert (sent.status, sent.error["code"]) == (403, "permission_denied"), (method, path)


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/nothing"), ("PUT", "/v1/keys"), ("POST", "/v1/models")]
)
async def test_c8_c41_no_byte_of_a_body_is_read_where_no_route_is(method: str, path: str) -> None:
    sent = exchange(method, path)
    await send_unread((await api()).app, sent)
    assert sent.status in (404, 405)


@pytest.mark.parametrize("secret", ["sk-tg-nobody", "management"])
async def test_c2_c8_the_metered_route_reads_no_body_of_a_key_that_may_not_generate(
    secret: str,
) -> None:
    call = await api()
    app = chat_app(call.home.front, Always(call.home.gateway), WebLimits())
    key = call.management if secret == "management" else secret
    sent = exchange("POST", "/v1/chat/completions", headers={"authorization": f"Bearer {key}"})
    await send_unread(app, sent)
    assert sent.status == (403 if secret == "management" else 401)
    assert call.home.journal.defects == []


@cells(("method", "path", "content"), WITH_BODY)
async def test_c8_a_body_over_the_limit_of_its_route_is_413_before_it_is_parsed(
    method: str, path: str, content: object
) -> None:
    call = await api()
    # A prompt that is counted may be as long as one that is answered.
    limit = 6_000_000 if path.startswith("/v1/messages") else LIMIT
    if path.startswith(("/v1/files", "/v1/messages/batches")):
        limit = LIMITS.body_bytes_max
    if path.endswith("/parts"):
        limit = PART_FORM_BYTES_MAX
    access = ACCESS.get((method, path))
    spends = access is not None and "management" not in access.roles
    key = call.home.secret if spends else call.management
    reply = await call(method, path, key=key, raw=b"{" * (limit + 1))
    assert (reply.status, reply.error["code"]) == (413, "payload_too_large")
    parsed = await call(method, path, key=key, raw=b"{" * limit)
    # These have no body, and no file can be stored here: what comes is not parsed.
    bodiless = ("/cancel", "/files", "/parts", "/redeliver", "/test")
    status = 404 if path.endswith(bodiless) else 201 if path.endswith("/playground") else 400
    assert parsed.status == status


async def test_c8_a_body_is_given_up_at_the_first_byte_above_the_limit() -> None:
    call = await api()
    taken = 0

    def pieces() -> Iterator[bytes]:
        nonlocal taken
        for _ in range(1_000):
            taken += 1
            yield b" " * (LIMIT // 4)

    headers = {"authorization": f"Bearer {call.management}"}
    reply = await exchange("POST", "/v1/keys", headers=headers, body=pieces()).run(call.app)
    assert reply.status == 413
    # The fifth piece is too much; the harness fetches one ahead.
    assert taken <= 6


async def test_c91_the_table_of_access_has_every_route_and_no_other() -> None:
    document = (await (await api())("GET", OPENAPI)).json
    served = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    sign_in = Browser(house()).app.routes
    served |= {(method, it.path) for it in sign_in for method in it.methods - {"HEAD"}}
    pages = {("GET", "/"), ("GET", "/console"), ("GET", "/console/{file}")}
    pages |= {("GET", "/docs"), ("GET", "/docs/{file}")}
    assert served | pages | {("GET", OPENAPI)} == set(ACCESS)
