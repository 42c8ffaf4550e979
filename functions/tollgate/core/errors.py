"""Errors that callers can get, raised where a fault is found and mapped to replies in one place.

GatewayError
├── RequestError    the request is malformed, or names something that does not exist
├── AccessError     the key has no permission, or has reached a limit
├── UpstreamError   a provider failed or refused
├── LedgerError     the ledger refuses, or cannot be reached
│   ├── OutcomeUnknown   an answer was produced and may be billed
│   └── NewerItems       a newer release has written the store
└── InternalError   a defect of Tollgate
"""

from enum import StrEnum, unique
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.json_value import JsonValue
from tollgate.core.limits import RateLimit, ReachedLimit
from tollgate.core.secret import CredentialPlace


@unique
class ErrorCode(StrEnum):
    """The public names of errors; `ingress.errors` maps them to statuses and types."""

    INVALID_REQUEST = "invalid_request"
    AUDIO_NOT_SUPPORTED = "audio_not_supported_by_model"
    IMAGE_NOT_SUPPORTED = "image_not_supported_by_model"
    FILE_NOT_SUPPORTED = "file_not_supported_by_model"
    FILE_NOT_FOUND = "file_not_found"
    FILE_TOO_LARGE = "file_too_large"
    FILE_COUNT_QUOTA_EXCEEDED = "file_count_quota_exceeded"
    STORAGE_QUOTA_EXCEEDED = "storage_quota_exceeded"
    UNSUPPORTED_FILE_TYPE = "unsupported_file_type"
    MIME_MISMATCH = "mime_mismatch"
    DOCUMENT_UNREADABLE = "document_unreadable"
    DOCUMENT_TOO_LARGE = "document_too_large"
    PREVIOUS_RESPONSE_NOT_FOUND = "previous_response_not_found"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    UNSUPPORTED_ENCODING = "unsupported_encoding"
    MODEL_NOT_FOUND = "model_not_found"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    WEBSOCKET_NOT_SERVED = "websocket_not_served"
    INVALID_API_KEY = "invalid_api_key"
    PERMISSION_DENIED = "permission_denied"
    MODEL_NOT_ALLOWED = "model_not_allowed"
    WORKSPACE_LOCKED = "workspace_locked"
    RATE_LIMIT_EXCEEDED = "rate_limit_exceeded"
    KEY_LIMIT_EXCEEDED = "key_limit_exceeded"
    INSUFFICIENT_CREDITS = "insufficient_credits"
    SERVICE_UNAVAILABLE = "service_unavailable"
    PROVIDER_AUTH = "provider_auth"
    PROVIDER_RATE_LIMIT = "provider_rate_limit"
    PROVIDER_OVERLOADED = "provider_overloaded"
    PROVIDER_TIMEOUT = "provider_timeout"
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    IDEMPOTENCY_MISMATCH = "idempotency_mismatch"
    TEAM_IN_USE = "team_in_use"
    CONTENT_FILTER = "content_filter"
    ANSWER_TOO_LARGE = "answer_too_large"
    INTERNAL_ERROR = "internal_error"


class Overlength(Struct, frozen=True, kw_only=True):
    """The length of a prompt that is too long, and the model's limit, in tokens."""

    tokens: int
    tokens_max: int


class GatewayError(Exception):
    """An error with a public code; its message is safe to show to the caller.

    `param` names the invalid field of the request; `retry_after_s` is the number of seconds after
    which a retry may succeed.
    """

    request_id: str | None = None
    """The id of the hold that was refused, if there was one."""
    rate_limit: RateLimit | None = None
    """The state of the key's limit on requests per minute, if it was read for the refusal."""
    token_limit: RateLimit | None = None
    """The state of the key's limit on tokens per minute, if it was read for the refusal."""
    overlength: Overlength | None = None
    """The length of a prompt that is too long, if it is known."""
    resets_s: int | None = None
    """The Unix second at which an exhausted limit resets."""
    limit: ReachedLimit | None = None
    """The limit of a key, member or team that caused the refusal; None for other refusals."""
    provider_body: JsonValue = None
    """The provider's own error body for the caller, without secrets and parts of the prompt."""
    may_repeat: bool = True
    """False if a client must not retry the request automatically."""
    is_general: bool = False
    """True if any other request of the key would now be refused for the same reason."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s

    def again(self, after_s: float) -> Self:
        """Return this refusal for a request that arrives this much later: waits are shorter."""
        wait_s = None if self.retry_after_s is None else self.retry_after_s - after_s
        repeated = type(self)(self.code, self.message, param=self.param, retry_after_s=wait_s)
        repeated.rate_limit = _passed(self.rate_limit, after_s)
        repeated.token_limit = _passed(self.token_limit, after_s)
        repeated.resets_s, repeated.limit = self.resets_s, self.limit
        return repeated


def _passed(limit: RateLimit | None, after_s: float) -> RateLimit | None:
    return limit and replace(limit, reset_s=max(0.0, limit.reset_s - after_s))


class RequestError(GatewayError):
    """The request is malformed, or names something that does not exist."""


def invalid_request(message: str, param: str | None = None) -> RequestError:
    """Return the refusal for an invalid field, or for the whole request."""
    return RequestError(ErrorCode.INVALID_REQUEST, message, param=param)


def not_found(message: str, param: str | None = None) -> RequestError:
    """Return the refusal for an object that does not exist."""
    return RequestError(ErrorCode.NOT_FOUND, message, param=param)


class MethodNotAllowed(RequestError):
    """The path does not support the method; `allowed` has the methods that the path supports."""

    def __init__(self, message: str, allowed: tuple[str, ...]) -> None:
        super().__init__(ErrorCode.METHOD_NOT_ALLOWED, message)
        self.allowed = allowed


class AccessError(GatewayError):
    """The key has no permission, or has reached a limit."""


def permission_denied(message: str, param: str | None = None) -> AccessError:
    """Return the refusal for a caller without the necessary rights."""
    return AccessError(ErrorCode.PERMISSION_DENIED, message, param=param)


class LedgerError(GatewayError):
    """The ledger refused the request or cannot be reached; nothing is held."""


class OutcomeUnknown(LedgerError):
    """An answer was produced, but it is unknown whether its record was written."""

    may_repeat = False

    def __init__(self, generation_id: str) -> None:
        super().__init__(
            ErrorCode.SERVICE_UNAVAILABLE,
            "The outcome is unknown: an answer was made, but its record could not be confirmed. "
            f"Within half an hour GET /generation?id={generation_id} says whether it is billed. "
            "A request that is sent again is billed separately.",
        )


class NewerItems(LedgerError):
    """The store has items of a newer release, which this release would misread."""


class InternalError(GatewayError):
    """A defect of Tollgate, reported to the caller without its details."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.INTERNAL_ERROR, "Something went wrong on our side.")


class UpstreamError(GatewayError):
    """A provider failed or refused.

    `status` is the provider's HTTP status, or None without a reply. The code is one of
    `provider_*`, `context_length_exceeded`, `content_filter` or `answer_too_large`, or
    `invalid_request` if the provider reports that the caller's own request is at fault.
    `provider_words` is the provider's own message without secrets, which may quote parts of the
    prompt; `quoted` is the part of `message` that quotes the provider. `body` is the
    unchanged body of the provider's error reply.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        status: int | None = None,
        param: str | None = None,
        retry_after_s: float | None = None,
        provider_words: str = "",
        quoted: str = "",
    ) -> None:
        super().__init__(code, message, param=param, retry_after_s=retry_after_s)
        self.status = status
        self.provider_words = provider_words
        self.quoted = quoted
        self.body = b""


class BufferFull(UpstreamError):
    """A request needs to buffer more bytes than its own limit, or its workspace's share, allows.

    An answer that has begun ends here, and the caller pays for the part that arrived.
    """

    def __init__(
        self, code: ErrorCode, message: str, *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(code, message, retry_after_s=retry_after_s)
        self.may_repeat = code is not ErrorCode.ANSWER_TOO_LARGE


class MissingCredentials(UpstreamError):
    """No usable credentials for a provider were found, so nothing was sent.

    The public code is the same as for credentials that a provider rejects, but the engine always
    continues with the next endpoint of the plan. `places` lists where this process looks for
    credentials.
    """

    def __init__(self, message: str, places: tuple[CredentialPlace, ...] = ()) -> None:
        super().__init__(ErrorCode.PROVIDER_AUTH, message)
        self.places = places
