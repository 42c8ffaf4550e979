"""What real AWS would refuse or garble, each rule with the title of the page that states it.

Pages were read on 2026-11-21. RIE is aws/aws-lambda-runtime-interface-emulator, AWS's own buffered
emulator: the public source for the status codes that the pages leave out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

RUNTIME_API = "Using the Lambda runtime API for custom runtimes"
CUSTOM_RUNTIME = "Building a custom runtime"
LAMBDA_QUOTAS = "Lambda quotas"
SNAP_START = "Implementing SnapStart hooks for container images"
STREAM = "Stream the integration response for your proxy integrations in API Gateway"
STREAM_FORMAT = "Set up a Lambda proxy integration with payload response streaming in API Gateway"
PROXY_FORMAT = "Lambda proxy integrations in API Gateway"
BINARY = "Return binary media from a Lambda proxy integration in API Gateway"
HTTP = "RFC 9112, HTTP/1.1"


class Rule(Enum):
    """One rule: what must hold, and the page that says so."""

    MALFORMED_HTTP = ("Runtime API requests are valid HTTP/1.1", HTTP)
    UNKNOWN_PATH = ("only the Runtime API's own paths and methods are called", RUNTIME_API)
    UNKNOWN_REQUEST_ID = ("a response names the request id that /next handed out", RUNTIME_API)
    SECOND_RESPONSE = ("an invocation is answered once, by /response or by /error", RUNTIME_API)
    INVOCATION_ID = ("an echoed Lambda-Runtime-Invocation-Id is the one of /next", RUNTIME_API)
    CONCURRENT_NEXT = ("as many /next at a time as AWS_LAMBDA_MAX_CONCURRENCY, or one", RUNTIME_API)
    NEXT_BEFORE_RESPONSE = ("/next comes after the invocation was answered", RUNTIME_API)
    NEXT_BEFORE_RESTORE = ("with SnapStart /next comes after /restore/next", SNAP_START)
    RESTORED_TWICE = ("an environment is restored once", SNAP_START)
    INIT_ERROR_AFTER_INIT = ("/init/error comes before the first /next", RUNTIME_API)
    ERROR_AFTER_START = ("/error is allowed only before the response begins", CUSTOM_RUNTIME)
    ERROR_DOCUMENT = ("an error is a JSON object with errorMessage and errorType", RUNTIME_API)
    RESPONSE_MODE = ("Lambda-Runtime-Function-Response-Mode is streaming or absent", CUSTOM_RUNTIME)
    NOT_CHUNKED = ("a streamed response uses Transfer-Encoding: chunked", CUSTOM_RUNTIME)
    CONNECTION_KEPT = ("the connection of a streamed response is closed after it", CUSTOM_RUNTIME)
    TRUNCATED = ("a response is sent to its end", CUSTOM_RUNTIME)
    TRAILER_UNANNOUNCED = ("trailers are announced in the Trailer header", CUSTOM_RUNTIME)
    TRAILER_UNKNOWN = ("the only trailers are Function-Error-Type and -Body", CUSTOM_RUNTIME)
    TRAILER_BODY = ("Function-Error-Body is base64 of a JSON error, beside a -Type", CUSTOM_RUNTIME)
    RESPONSE_TOO_LARGE = ("6 MB for a buffered response, 200 MB for a streamed one", LAMBDA_QUOTAS)
    EXIT_AFTER_RESPONSE = ("a runtime that has answered asks for the next event", CUSTOM_RUNTIME)
    OVERRUN_AFTER_RESPONSE = (
        "clean-up after the response ends before the deadline",
        CUSTOM_RUNTIME,
    )

    NOT_STREAMED = ("behind a STREAM method the function streams its response", STREAM)
    CONTENT_TYPE = ("the prelude form has its own content type", CUSTOM_RUNTIME)
    NO_DELIMITER = ("8 NUL bytes follow the metadata within the first 16 KB", STREAM_FORMAT)
    METADATA_JSON = ("the metadata is a valid JSON object", STREAM_FORMAT)
    METADATA_KEY = ("metadata keys: statusCode, headers, multiValueHeaders, cookies", STREAM_FORMAT)
    METADATA_VALUE = ("metadata values have the documented types", STREAM_FORMAT)
    HOP_BY_HOP = ("the gateway, not the function, owns the client connection", PROXY_FORMAT)
    CONTENT_LENGTH = ("the body is as long as the content-length supplied", STREAM_FORMAT)
    BODY_FORBIDDEN = ("204 and 304 have no body", HTTP)

    PRELUDE_ON_BUFFERED = ("behind a BUFFERED method a prelude loses its body", STREAM)
    MALFORMED_PROXY_RESPONSE = ("a proxy response has the documented JSON form", PROXY_FORMAT)
    BASE64_NOT_DECODED = ("base64 is decoded only if Accept is a binaryMediaType", BINARY)

    def __init__(self, text: str, page: str) -> None:
        self.text = text
        self.page = page


@dataclass(frozen=True)
class Violation:
    """A rule that a function broke; `detail` is what was seen."""

    rule: Rule
    detail: str
    function: str
    request_id: str | None = None

    def describe(self) -> str:
        """The rule, where it was broken, and the page that states it."""
        where = f"{self.function} {self.request_id or ''}".strip()
        return (
            f"{self.rule.name} [{where}] {self.detail}\n  rule: {self.rule.text} ({self.rule.page})"
        )


class RulesBroken(AssertionError):
    """Raised when the emulator is left with violations that no test took."""

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__(
            "\n".join(
                [
                    "AWS would refuse or garble this:",
                    *(violation.describe() for violation in violations),
                ]
            )
        )
        self.violations = violations
