"""A small signing client for AWS services with JSON protocols: DynamoDB, KMS, SQS and others.

Tollgate does not use botocore here, because a call takes 1 ms of CPU with botocore and 0.1 ms with
this client, and because importing botocore slows down a cold start.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol

from pydantic_core import from_json, to_json

from tollgate.aws.failures import (
    CancellationReason,
    ConditionFailed,
    StoreError,
    StoreRejected,
    StoreUnavailable,
    TransactionCancelled,
)
from tollgate.aws.sigv4 import Signer
from tollgate.core.clock import Clock
from tollgate.http1.connecting import loop_timeout
from tollgate.http1.errors import CannotConnect, ConnectionLost, HttpError, ReplyTooLong
from tollgate.http1.pool import Pool
from tollgate.http1.request import Request

# A parsed JSON reply; its shape depends on the operation.
AwsReply = dict[str, Any]
JsonService = Literal["dynamodb", "kms", "secretsmanager", "sqs"]

ATTEMPTS_MAX: Final = 3
_PROTOCOLS: Final[Mapping[JsonService, tuple[str, str]]] = {
    "dynamodb": ("application/x-amz-json-1.0", "DynamoDB_20120810"),
    "kms": ("application/x-amz-json-1.1", "TrentService"),
    "secretsmanager": ("application/x-amz-json-1.1", "secretsmanager"),
    "sqs": ("application/x-amz-json-1.0", "AmazonSQS"),
}
TIMEOUT_S: Final = 1.0
# Fraction of an attempt's timeout that connecting may take. If no connection is established, this
# shorter limit ends the attempt, so the error shows that nothing was sent.
_CONNECTING_PART: Final = 0.9
_CONNECTIONS_MAX: Final = 32
# DynamoDB limits a reply to 16 MB (BatchGetItem). Replies to Tollgate's calls stay far below 8 MB.
_RESPONSE_BYTES_MAX: Final = 8 * 1024 * 1024
_BACKOFF_MIN_S: Final = 0.010
_BACKOFF_MAX_S: Final = 0.100
# Error codes of calls that changed nothing and may succeed on a retry.
_REFUSED_FOR_NOW: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_CANCELLED_FOR_NOW: Final = frozenset(
    {"ProvisionedThroughputExceeded", "ThrottlingError", "TransactionConflict"}
)


class AwsCaller(Protocol):
    """A client that calls an AWS service: AwsJson, or a client with injected faults in tests."""

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        """Return the reply to one operation; raise StoreError if it fails.

        With `attempts_max=1` the request is sent at most once, whatever its outcome.
        """


class AwsJson:
    """A client for one service in one region, with a pool of keep-alive connections.

    `timeout_s` limits each attempt, including connecting. The pool belongs to the event loop of the
    first call.
    """

    def __init__(
        self,
        service: JsonService,
        region: str,
        signer: Signer,
        clock: Clock,
        *,
        jitter: Callable[[], float],
        endpoint_url: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._url = (endpoint_url or f"https://{service}.{region}.amazonaws.com").rstrip("/") + "/"
        self._content_type, self._target = _PROTOCOLS[service]
        self._signer = signer
        self._clock = clock
        self._timeout_s = timeout_s
        self._jitter = jitter
        self._pool = Pool(_CONNECTIONS_MAX)

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        body = to_json(payload)
        maybe_applied = False
        for attempt in range(1, attempts_max + 1):
            try:
                return await self._send(operation, body)
            except StoreRejected:
                raise
            except StoreUnavailable as unavailable:
                maybe_applied |= unavailable.maybe_applied
                if attempt == attempts_max:
                    raise StoreUnavailable(
                        f"{operation}: {unavailable}", maybe_applied=maybe_applied
                    ) from unavailable
                # A closed pooled socket says nothing about the health of the service, so the call
                # is retried without a pause.
                if not (attempt == 1 and isinstance(unavailable, _ConnectionLost)):
                    await self._clock.sleep(
                        _BACKOFF_MIN_S + (_BACKOFF_MAX_S - _BACKOFF_MIN_S) * self._jitter()
                    )
        raise AssertionError("attempts_max must be at least 1")

    async def close(self) -> None:
        """Close the pooled connections."""
        await self._pool.close()

    async def _send(self, operation: str, body: bytes) -> AwsReply:
        status, content = await self.post(operation, body)
        reply = _parse_reply(content)
        if status == 200 and reply is not None:
            return reply
        raise _error_of(status, reply or {})

    async def post(self, operation: str, body: bytes) -> tuple[int, bytes]:
        """Send a request once; return the status and body, or raise StoreUnavailable."""
        headers = self._signer.sign(
            "POST",
            self._url,
            {"content-type": self._content_type, "x-amz-target": f"{self._target}.{operation}"},
            body,
        )
        request = Request(method="POST", url=self._url, headers=headers, body=(body,))
        try:
            async with loop_timeout(self._timeout_s):
                reply = await self._pool.send(request, connect_s=self._timeout_s * _CONNECTING_PART)
                try:
                    return reply.status, await reply.read_all(_RESPONSE_BYTES_MAX)
                finally:
                    reply.close()
        except CannotConnect as failed:
            raise StoreUnavailable(str(failed), maybe_applied=False) from failed
        except TimeoutError as failed:
            raise StoreUnavailable("timed out", maybe_applied=True) from failed
        except ConnectionLost as failed:
            raise _ConnectionLost from failed
        except ReplyTooLong as failed:
            raise StoreUnavailable(str(failed), maybe_applied=True) from failed
        except HttpError as failed:
            raise StoreUnavailable(type(failed).__name__, maybe_applied=True) from failed


class _ConnectionLost(StoreUnavailable):
    def __init__(self) -> None:
        super().__init__("connection lost", maybe_applied=True)


def _parse_reply(content: bytes) -> AwsReply | None:
    try:
        reply = from_json(content)
    except ValueError:
        return None
    return reply if isinstance(reply, dict) else None


def _error_of(status: int, reply: AwsReply) -> StoreError:
    """Return the StoreError for an error reply.

    Error names: "Error handling with DynamoDB" and "TransactWriteItems" in the Amazon DynamoDB
    developer guide and API reference (seen 2026-11-21).
    """
    code = str(reply.get("__type", "")).rpartition("#")[2]
    message = str(reply.get("message") or reply.get("Message") or "")
    if code == "ConditionalCheckFailedException":
        return ConditionFailed(reply.get("Item"))
    if code == "TransactionCanceledException":
        reasons = tuple(
            CancellationReason(reason.get("Code", "None"), reason.get("Item"))
            for reason in reply.get("CancellationReasons", ())
        )
        codes = {reason.code for reason in reasons}
        if "ConditionalCheckFailed" not in codes and codes & _CANCELLED_FOR_NOW:
            return StoreUnavailable(f"{code}: {sorted(codes)}", maybe_applied=False)
        return TransactionCancelled(reasons)
    if code in _REFUSED_FOR_NOW or status == 429:
        return StoreUnavailable(code or f"HTTP {status}", maybe_applied=False)
    if status >= 500 or status == 200:
        return StoreUnavailable(code or f"HTTP {status}", maybe_applied=True)
    return StoreRejected(code or f"HTTP {status}", message)
