"""Error replies and exceptions of Bedrock."""

from typing import Final

import msgspec
from msgspec import Struct, field

from tollgate.core.errors import UpstreamError
from tollgate.providers.ports.base import Frame, Target, UpstreamRefused
from tollgate.providers.shared.refusals import (
    UNREADABLE,
    ProviderRefusal,
    error_of_refusal,
    parse_retry_after_s,
)

# The status of each exception in the service model of bedrock-runtime. Exceptions inside a stream
# arrive without a status.
_STATUS: Final = {
    "accessdeniedexception": 403,
    "internalserverexception": 500,
    "modelerrorexception": 424,
    "modelnotreadyexception": 429,
    "modelstreamerrorexception": 424,
    "modeltimeoutexception": 408,
    "resourcenotfoundexception": 404,
    "servicequotaexceededexception": 400,
    "serviceunavailableexception": 503,
    "throttlingexception": 429,
    "validationexception": 400,
}

# Error codes for exception classes whose status (often 400) does not show what kind of error
# occurred.
_CODE: Final = {
    "expiredtokenexception": "invalid_api_key",
    "incompletesignatureexception": "invalid_api_key",
    "invalidclienttokenid": "invalid_api_key",
    "invalidsignatureexception": "invalid_api_key",
    "missingauthenticationtokenexception": "invalid_api_key",
    "unrecognizedclientexception": "invalid_api_key",
    "servicequotaexceededexception": "rate_limit_exceeded",
}


def aws_class(name: str) -> str:
    """Return the class in a name like `namespace#Class:http://host/path`, in lower case."""
    return name.partition(":")[0].rpartition("#")[2].strip().lower()


def code_of(class_: str) -> str:
    """Return the error code for an exception class; `refusals` decides by this code who is at
    fault.
    """
    return _CODE.get(class_, class_)


class _ErrorBody(Struct, frozen=True):
    """An error reply, or an exception in a stream."""

    message: str | None = None
    capital_message: str | None = field(default=None, name="Message")
    type: str | None = field(default=None, name="__type")


def error_of_bedrock_reply(reply: UpstreamRefused, target: Target) -> UpstreamError:
    """Return the error for a reply, with its class in `x-amzn-errortype` or in the body."""
    body = _body(reply.body)
    name = aws_class(reply.headers.get("x-amzn-errortype") or body.type or "")
    return error_of_refusal(
        ProviderRefusal(
            provider=target.provider,
            status=reply.status,
            message=_message(body),
            code=code_of(name),
            retry_after_s=parse_retry_after_s(reply.headers),
        )
    )


def error_in_bedrock_stream(frame: Frame, provider: str) -> UpstreamError:
    """Return the error for an exception in a stream."""
    name = aws_class(frame.exception or "")
    return error_of_refusal(
        ProviderRefusal(
            provider=provider,
            status=_STATUS.get(name),
            message=_message(_body(frame.data)),
            code=code_of(name),
        )
    )


def _body(data: bytes) -> _ErrorBody:
    try:
        return msgspec.json.decode(data, type=_ErrorBody)
    except UNREADABLE:
        # The body is empty or a proxy's HTML, so only the status and the class are known.
        return _ErrorBody()


def _message(body: _ErrorBody) -> str:
    return body.message or body.capital_message or ""
