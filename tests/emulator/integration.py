"""What API Gateway makes of a function's output: the streamed form and the buffered form.

Pure; each refusal is a `Refused` that names the rule.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass

from tests.emulator.http1 import HeaderList, header, valid_field
from tests.emulator.violations import Rule

# "Set up a Lambda proxy integration with payload response streaming": inside the first 16 KB.
DELIMITER = bytes(8)
PRELUDE_BYTES_MAX = 16 * 1024
PRELUDE_CONTENT_TYPE = "application/vnd.awslambda.http-integration-response"
_METADATA_KEYS = {"statusCode", "headers", "multiValueHeaders", "cookies"}
_PROXY_KEYS = {"statusCode", "headers", "multiValueHeaders", "body", "isBase64Encoded"}

_HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade"}
# "Amazon API Gateway important notes": remapped to x-amzn-Remapped-<name>. The hop-by-hop ones of
# its list are violations here, lengths and types are the gateway's own work.
_REMAPPED = {"authorization", "content-md5", "date", "expect", "host", "max-forwards"} | {
    "proxy-authenticate",
    "server",
    "user-agent",
    "www-authenticate",
}


class Refused(ValueError):
    """The gateway does not accept the function's output."""

    def __init__(self, rule: Rule, detail: str) -> None:
        super().__init__(detail)
        self.rule = rule
        self.detail = detail


@dataclass(frozen=True)
class Prelude:
    """Status and headers as the client gets them; of a stream, the metadata before the NULs."""

    status: int
    headers: tuple[tuple[str, str], ...]

    @property
    def content_length(self) -> int | None:
        """The length the function supplied."""
        value = header(list(self.headers), "content-length")
        return None if value is None else int(value)

    @property
    def bodiless(self) -> bool:
        """RFC 9112, 6.3: responses that end with their head."""
        return self.status in (204, 304)


@dataclass(frozen=True)
class ProxyResponse:
    """A whole buffered response."""

    head: Prelude
    body: bytes


class PreludeReader:
    """Collects the first bytes of a stream until the delimiter."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> tuple[Prelude, bytes] | None:
        """The prelude and the first body bytes, once the delimiter is there. Raises Refused."""
        self._buffer += data
        at = self._buffer.find(DELIMITER)
        if at < 0 or at + len(DELIMITER) > PRELUDE_BYTES_MAX:
            if len(self._buffer) >= PRELUDE_BYTES_MAX:
                raise Refused(Rule.NO_DELIMITER, f"not in the first {PRELUDE_BYTES_MAX} bytes")
            return None
        return parse_prelude(self._buffer[:at]), self._buffer[at + len(DELIMITER) :]

    def end(self) -> Refused:
        """The stream ended before the delimiter."""
        return Refused(Rule.NO_DELIMITER, f"the stream ended after {self._buffer[:80]!r}")


def parse_prelude(metadata: bytes) -> Prelude:
    """Raises Refused."""
    fields = _json_object(metadata, Rule.METADATA_JSON)
    if unknown := fields.keys() - _METADATA_KEYS:
        raise Refused(Rule.METADATA_KEY, f"unknown: {sorted(unknown)}")
    rule = Rule.METADATA_VALUE
    cookies = fields.get("cookies", [])
    if not isinstance(cookies, list) or not all(isinstance(cookie, str) for cookie in cookies):
        raise Refused(rule, f"cookies: {cookies!r}")
    headers = _headers(fields, rule)
    # "at least {}" is valid metadata: the status defaults to 200.
    return _head(
        fields.get("statusCode", 200), [*headers, *(("set-cookie", c) for c in cookies)], rule
    )


def parse_proxy_response(payload: bytes, *, decode_base64: bool) -> ProxyResponse:
    """A BUFFERED method's reply; another form is a 502 for the client. Raises Refused.

    "Lambda proxy integrations in API Gateway", section "Output format of a Lambda function".
    """
    rule = Rule.MALFORMED_PROXY_RESPONSE
    fields = _json_object(payload, rule)
    if unknown := fields.keys() - _PROXY_KEYS:
        raise Refused(rule, f"unknown keys: {sorted(unknown)}")
    body = fields.get("body")
    is_base64 = fields.get("isBase64Encoded", False)
    if not isinstance(body, str | None) or not isinstance(is_base64, bool):
        raise Refused(rule, f"body is a string, isBase64Encoded a boolean: {str(fields)[:200]}")
    headers = _headers(fields, rule)
    if not any(name.lower() == "content-type" for name, _ in headers):
        # "Set up a proxy integration with a proxy resource": the default content type.
        headers.append(("Content-Type", "application/json"))
    head = _head(fields.get("statusCode"), headers, rule)
    if not is_base64:
        return ProxyResponse(head, (body or "").encode())
    if not decode_base64:
        raise Refused(Rule.BASE64_NOT_DECODED, f"{len(body or '')} characters")
    try:
        return ProxyResponse(head, base64.b64decode(body or "", validate=True))
    except binascii.Error as error:
        raise Refused(rule, f"body is not base64: {error}") from error


def is_error_document(payload: bytes) -> bool:
    """Whether this is Lambda's error object."""
    try:
        fields = _json_object(payload, Rule.ERROR_DOCUMENT)
    except Refused:
        return False
    return {"errorMessage", "errorType"} <= fields.keys()


def _json_object(payload: bytes, rule: Rule) -> dict[str, object]:
    try:
        fields = json.loads(payload)
    except ValueError as error:
        raise Refused(rule, f"{error}: {payload[:80]!r}") from error
    if not isinstance(fields, dict):
        raise Refused(rule, f"not an object: {payload[:80]!r}")
    return fields


def _headers(fields: dict[str, object], rule: Rule) -> HeaderList:
    """`headers` and `multiValueHeaders` merged; of a pair in both, the latter's is kept."""
    single = fields.get("headers") or {}
    multi = fields.get("multiValueHeaders") or {}
    if not isinstance(single, dict) or not isinstance(multi, dict):
        raise Refused(rule, "headers and multiValueHeaders are objects")
    merged: HeaderList = []
    for name, values in multi.items():
        if not isinstance(values, list):
            raise Refused(rule, f"multiValueHeaders are lists: {name}")
        merged += [(name, value) for value in values]
    merged = [pair for pair in single.items() if pair not in merged] + merged
    if wrong := [pair for pair in merged if not isinstance(pair[1], str)]:
        raise Refused(rule, f"header values are strings: {wrong}")
    return merged


def _head(status: object, headers: Iterable[tuple[str, str]], rule: Rule) -> Prelude:
    if not isinstance(status, int) or isinstance(status, bool) or not 200 <= status <= 599:
        raise Refused(rule, f"statusCode: {status!r}")
    kept: HeaderList = []
    for name, value in headers:
        lower = name.lower()
        if not valid_field(name, value):
            raise Refused(rule, f"header {name!r}: {value!r}")
        if lower in _HOP_BY_HOP or (lower == "transfer-encoding" and value != "chunked"):
            raise Refused(Rule.HOP_BY_HOP, f"{name}: {value}")
        if lower == "content-length" and not value.isdecimal():
            raise Refused(rule, f"content-length: {value!r}")
        if lower != "transfer-encoding":
            kept.append((f"x-amzn-Remapped-{name}" if lower in _REMAPPED else name, value))
    return Prelude(status, tuple(kept))
