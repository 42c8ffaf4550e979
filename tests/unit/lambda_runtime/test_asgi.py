"""REST events become ASGI scopes, ASGI responses become what API Gateway streams on.

Keeps C1.
"""

import asyncio
import base64
import json
from typing import Any

import pytest
from mangum import Mangum
from starlette.types import Scope

from tests.unit.lambda_runtime.serving import EVENT
from tollgate.core.clock import DEADLINE_EXTENSION
from tollgate.core.tracing import PLATFORM_IDS_EXTENSION, PlatformIds
from tollgate.lambda_runtime.asgi import (
    PRELUDE_BYTES_MAX,
    EventError,
    PreludeTooLong,
    encode_prelude,
    read_http_request,
)
from tollgate.lambda_runtime.runtime_api import Invocation


def request(event: object) -> tuple[Scope, bytes]:
    invocation = Invocation(
        request_id="r", deadline_ms=1_700_000_000_123, event_bytes=json.dumps(event).encode()
    )
    understood = read_http_request(invocation)
    assert understood is not None
    return understood


def test_c1_the_path_is_the_one_without_the_stage() -> None:
    scope, _ = request(EVENT)
    assert (scope["path"], scope["root_path"]) == ("/v1/chat/completions", "")


def test_a_rest_event_becomes_a_scope() -> None:
    scope, body = request(EVENT)
    assert scope["method"] == "POST"
    assert scope["query_string"] == b"a=1&a=2&q=%C3%A4+b%26c"
    assert dict(map(tuple, scope["headers"]))[b"accept"] == b"text/plain, text/html"
    assert scope["client"] == ("203.0.113.7", 0)
    assert scope["server"] == ("abc.execute-api.eu-west-1.amazonaws.com", 443)
    assert body == '{"model":"ä"}'.encode()


def test_the_deadline_is_in_the_extensions_under_the_name_that_the_web_layer_reads() -> None:
    scope, _ = request(EVENT)
    assert scope["extensions"][DEADLINE_EXTENSION] == {"epoch_ms": 1_700_000_000_123}


@pytest.mark.parametrize(
    ("context", "gateway_id"),
    [({"requestId": "41b45ea3"}, "41b45ea3"), ({"requestId": 41}, None), ({}, None)],
)
def test_the_ids_of_both_platforms_are_in_the_extensions(
    context: dict[str, object], gateway_id: str | None
) -> None:
    scope, _ = request(EVENT | {"requestContext": EVENT["requestContext"] | context})
    assert PlatformIds(**scope["extensions"][PLATFORM_IDS_EXTENSION]) == PlatformIds(
        api_gateway_request_id=gateway_id, lambda_request_id="r"
    )


def test_nothing_of_aws_is_in_the_scope() -> None:
    scope, _ = request(EVENT)
    assert not [key for key in scope if key.startswith("aws.")]


def test_a_percent_encoded_path_is_decoded() -> None:
    scope, _ = request({**EVENT, "path": "/v1/models/a%20b/%C3%A9ndpoints"})
    assert scope["path"] == "/v1/models/a b/éndpoints"


def test_a_base64_body_is_decoded() -> None:
    encoded = base64.b64encode(b"\x00\xff").decode()
    assert request({**EVENT, "body": encoded, "isBase64Encoded": True})[1] == b"\x00\xff"


@pytest.mark.parametrize(
    "sparse",
    [
        {"multiValueHeaders": None},
        {"headers": None, "multiValueHeaders": None},
        {"queryStringParameters": None, "multiValueQueryStringParameters": None},
        {"body": None},
        {"requestContext": {}},
    ],
)
def test_an_event_with_nulls_is_understood(sparse: dict[str, Any]) -> None:
    scope, _ = request({**EVENT, **sparse})
    assert scope["path"] == "/v1/chat/completions"


@pytest.mark.parametrize("changes", [{}, {"path": "/v1/%C3%A9"}, {"multiValueHeaders": None}])
def test_the_buffered_function_sees_the_same_scope(changes: dict[str, Any]) -> None:
    event = {**EVENT, **changes}
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        seen.append(dict(scope))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)  # mangum runs on the current one
    Mangum(app, lifespan="off")(event, None)  # type: ignore[arg-type]  # the context is not read
    loop.close()
    asyncio.set_event_loop(None)
    own = {"extensions"}
    theirs = {"aws.event", "aws.context", "state"}
    assert {key: value for key, value in seen[0].items() if key not in theirs} == {
        key: value for key, value in request(event)[0].items() if key not in own
    }


@pytest.mark.parametrize("event", [{"invokeCompletionStatus": "Success"}, [], "ping", None, 1])
def test_an_event_that_is_no_request_is_told_apart(event: object) -> None:
    raw = json.dumps(event).encode()
    assert read_http_request(Invocation(request_id="r", deadline_ms=1, event_bytes=raw)) is None


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe", b"not json", b"[" * 100_000])
def test_an_event_that_is_not_json_is_refused(raw: bytes) -> None:
    with pytest.raises(EventError):
        read_http_request(Invocation(request_id="r", deadline_ms=1, event_bytes=raw))


@pytest.mark.parametrize(
    "event",
    [
        {"httpMethod": "GET"},
        {**EVENT, "path": 7},
        {**EVENT, "headers": "x", "multiValueHeaders": None},
        {**EVENT, "isBase64Encoded": True, "body": "A"},
        {**EVENT, "multiValueHeaders": {"X-Forwarded-Port": ["https"]}},
    ],
)
def test_an_event_that_is_no_rest_request_is_refused_without_quoting_it(event: Any) -> None:
    with pytest.raises(EventError, match=r"^the event is not a REST request: \w+$"):
        request(event)


def opened(status: int, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    text, delimiter, rest = encode_prelude(status, headers).partition(bytes(8))
    assert (delimiter, rest) == (bytes(8), b"")
    decoded: dict[str, Any] = json.loads(text)
    assert set(decoded) <= {"statusCode", "headers", "multiValueHeaders", "cookies"}
    return decoded


def test_the_prelude_is_status_and_headers_and_eight_nuls() -> None:
    assert opened(404, [(b"Content-Type", b"application/json"), (b"x-y", b"\xe9")]) == {
        "statusCode": 404,
        "headers": {"content-type": "application/json", "x-y": "é"},
        "multiValueHeaders": {},
        "cookies": [],
    }


def test_every_cookie_keeps_its_own_line() -> None:
    cookies = [(b"set-cookie", b"a=1; Path=/"), (b"Set-Cookie", b"b=2, c")]
    assert opened(200, cookies)["cookies"] == ["a=1; Path=/", "b=2, c"]
    assert opened(200, cookies)["headers"] == {}


def test_repeated_headers_are_multi_value() -> None:
    described = opened(200, [(b"vary", b"origin"), (b"x", b"1"), (b"Vary", b"accept")])
    assert described["headers"] == {"x": "1"}
    assert described["multiValueHeaders"] == {"vary": ["origin", "accept"]}


@pytest.mark.parametrize(
    "name",
    [b"Connection", b"Keep-Alive", b"Transfer-Encoding", b"Content-Length", b"Upgrade", b"TE"],
)
def test_headers_of_the_connection_are_not_forwarded(name: bytes) -> None:
    assert opened(200, [(name, b"1"), (b"x", b"y")])["headers"] == {"x": "y"}


def test_the_delimiter_ends_within_the_first_16_kb_or_the_prelude_is_refused() -> None:
    bare = len(encode_prelude(200, [(b"x", b"")]))
    longest = PRELUDE_BYTES_MAX - bare
    assert len(encode_prelude(200, [(b"x", b"y" * longest)])) == 16_384
    with pytest.raises(PreludeTooLong):
        encode_prelude(200, [(b"x", b"y" * (longest + 1))])
