"""The proxy event, payload format 1.0, of a REST API.

"Lambda proxy integrations in API Gateway", section "Input format of a Lambda function".
"""

from __future__ import annotations

import base64
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from tests.emulator.http1 import HeaderList, header
from tests.emulator.routes import Match

ACCOUNT_ID = "123456789012"
API_ID = "emulated00"
REGION = "us-east-1"

# The gateway ends the client's connection: what belongs to that connection is not in the event.
_NOT_FORWARDED = {"connection", "content-length", "expect", "keep-alive", "te", "trailer"} | {
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
}


@dataclass(frozen=True)
class Incoming:
    """A client's request with its body, as the gateway holds it before it invokes."""

    method: str
    path: str
    query: str
    headers: HeaderList
    body: bytes
    source_ip: str


def proxy_event(
    incoming: Incoming, matched: Match, *, stage: str, binary_media_types: tuple[str, ...]
) -> dict[str, Any]:
    """The event of one request; `incoming.path` is without the stage."""
    headers = _headers(incoming)
    multi_query: dict[str, list[str]] = {}
    for name, value in parse_qsl(incoming.query, keep_blank_values=True):
        multi_query.setdefault(name, []).append(value)
    is_binary = is_binary_type(header(incoming.headers, "content-type"), binary_media_types)
    return {
        "resource": matched.resource,
        # Still percent-encoded: live captures in hotsock/voker#8; only HTTP APIs decode it.
        "path": incoming.path,
        "httpMethod": incoming.method,
        "headers": dict(headers) or None,
        "multiValueHeaders": _multi(headers) or None,
        # "null when none": seen in every recorded REST event; the page shows the populated form.
        "queryStringParameters": {name: values[-1] for name, values in multi_query.items()} or None,
        "multiValueQueryStringParameters": multi_query or None,
        "pathParameters": matched.parameters or None,
        "stageVariables": None,
        "requestContext": _context(incoming, matched, stage),
        "body": _body(incoming.body, is_binary=is_binary),
        "isBase64Encoded": bool(incoming.body) and is_binary,
    }


def is_binary_type(media_type: str | None, binary_media_types: tuple[str, ...]) -> bool:
    """Whether a Content-Type or the first type of an Accept header is a binaryMediaType.

    "Content type conversions in API Gateway": without a header, application/json is assumed.
    """
    first = (media_type or "application/json").split(",")[0].split(";")[0].strip().lower()
    wanted = {"*/*", first, first.split("/")[0] + "/*"}
    return any(candidate.lower() in wanted for candidate in binary_media_types)


def _body(body: bytes, *, is_binary: bool) -> str | None:
    if not body:
        return None
    if is_binary:
        return base64.b64encode(body).decode()
    # Bytes that are not UTF-8 arrive broken where no binaryMediaType claims them.
    return body.decode("utf-8", errors="replace")


def _headers(incoming: Incoming) -> HeaderList:
    trace = f"Root=1-{uuid.uuid4().hex[:8]}-{uuid.uuid4().hex[:24]}"
    forwarded = [item for item in incoming.headers if item[0].lower() not in _NOT_FORWARDED]
    client = header(incoming.headers, "x-forwarded-for")
    chain = ", ".join(address for address in (client, incoming.source_ip) if address)
    ours = {"X-Amzn-Trace-Id": trace, "X-Forwarded-For": chain}
    ours |= {"X-Forwarded-Port": "443", "X-Forwarded-Proto": "https"}
    replaced = {name.lower() for name in ours}
    return [item for item in forwarded if item[0].lower() not in replaced] + list(ours.items())


def _multi(headers: HeaderList) -> dict[str, list[str]]:
    multi: dict[str, list[str]] = {}
    for name, value in headers:
        multi.setdefault(name, []).append(value)
    return multi


def _context(incoming: Incoming, matched: Match, stage: str) -> dict[str, Any]:
    now = datetime.now(UTC)
    host = header(incoming.headers, "host") or ""
    identity = dict.fromkeys(
        [
            "accessKey",
            "accountId",
            "caller",
            "cognitoAuthenticationProvider",
            "cognitoAuthenticationType",
            "cognitoIdentityId",
            "cognitoIdentityPoolId",
            "principalOrgId",
            "user",
            "userArn",
        ]
    )
    return {
        "accountId": ACCOUNT_ID,
        "apiId": API_ID,
        "domainName": host,
        "domainPrefix": host.split(".")[0],
        "extendedRequestId": uuid.uuid4().hex[:15] + "=",
        "httpMethod": incoming.method,
        "identity": {
            **identity,
            "sourceIp": incoming.source_ip,
            "userAgent": header(incoming.headers, "user-agent"),
        },
        "path": f"/{stage}{incoming.path}",
        "protocol": "HTTP/1.1",
        "requestId": str(uuid.uuid4()),
        "requestTime": now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "requestTimeEpoch": int(now.timestamp() * 1000),
        "resourceId": "r" + matched.resource.encode().hex()[:5],
        "resourcePath": matched.resource,
        "stage": stage,
    }
