"""Error replies of Bedrock, and exceptions in its streams."""

from typing import Final

from pydantic import ValidationError

from tollgate.core.errors import UpstreamError
from tollgate.providers.base import Frame, UpstreamRefused
from tollgate.providers.refusals import Refusal, refused, retry_after_s
from tollgate.wire.bedrock_converse import ErrorBody

# The statuses that the service model gives its exceptions, for those that come inside a stream.
_STATUS_OF_CLASS: Final = {
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

# Classes whose own status, often 400, does not say what they are.
_CODE_OF_CLASS: Final = {
    "expiredtokenexception": "invalid_api_key",
    "incompletesignatureexception": "invalid_api_key",
    "invalidclienttokenid": "invalid_api_key",
    "invalidsignatureexception": "invalid_api_key",
    "missingauthenticationtokenexception": "invalid_api_key",
    "unrecognizedclientexception": "invalid_api_key",
    "servicequotaexceededexception": "rate_limit_exceeded",
}


def error_of_reply(reply: UpstreamRefused, provider: str) -> UpstreamError:
    """The meaning of an error status, with its class from `x-amzn-errortype` or the body."""
    body = _body(reply.body)
    name = _class(reply.headers.get("x-amzn-errortype") or body.type or "")
    return refused(
        Refusal(
            provider=provider,
            status=reply.status,
            message=_message(body),
            code=_CODE_OF_CLASS.get(name, name),
            retry_after_s=retry_after_s(reply.headers),
        )
    )


def error_in_stream(frame: Frame, provider: str) -> UpstreamError:
    """The meaning of a message that is an exception."""
    name = _class(frame.exception or "")
    return refused(
        Refusal(
            provider=provider,
            status=_STATUS_OF_CLASS.get(name),
            message=_message(_body(frame.data)),
            code=_CODE_OF_CLASS.get(name, name),
        )
    )


def _class(name: str) -> str:
    """The bare class of `ns#Class:http://where/it/came/from`, in lower case."""
    return name.partition(":")[0].rpartition("#")[2].strip().lower()


def _body(data: bytes) -> ErrorBody:
    try:
        return ErrorBody.model_validate_json(data)
    except ValidationError:
        # A proxy's HTML or nothing at all: status and class decide.
        return ErrorBody()


def _message(body: ErrorBody) -> str:
    return body.message or body.capital_message or ""
