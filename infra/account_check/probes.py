"""The questions of the account check, and a probe for each."""

import asyncio
from collections.abc import Awaitable, Callable
from http.client import HTTPException
from itertools import pairwise
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError, WaiterError  # type: ignore[import-untyped]
from msgspec import Struct
from pydantic_core import from_json

from infra.account_check.chat_function import ChatFunction, error_code
from infra.account_check.trailers import StreamEnd, read_stream_end, trailers_stack
from infra.account_check.verdicts import Question, Verdict
from tollgate.cli.stack.probe import Probe, StreamSeen, Unreachable
from tollgate.core.clock import Clock

_PROMPT: Final = "Write the numbers from one to forty as words."
# Lambda's control plane is eventually consistent, and logs become searchable only after a few
# seconds.
_PATIENCE_S: Final = 90.0
_EVERY_S: Final = 3.0
# A process logs a missing secret only once, so the log line may be old.
_LOGS_BACK_S: Final = 3600.0
# While a process is frozen between requests, DynamoDB and providers close idle connections.
PAUSES_S: Final = (20.0, 120.0, 400.0)
_DENIED: Final = ("ResourceNotFoundException", "AccessDeniedException")


class Subject(Struct, frozen=True, kw_only=True):
    """The deployment under test, and clients for it."""

    probe: Probe
    function: ChatFunction
    formation: object
    """A boto3 client for CloudFormation."""
    stack: str
    clock: Clock
    model: str
    """A model or route to call, whose answers cost little."""
    keyless: tuple[str, str] | None
    """A model whose provider lacks its secret, and the name of the secret."""
    signed: tuple[tuple[str, str], ...]
    """A model of each provider whose requests are signed in OpenAI's or Anthropic's format, and
    the provider.
    """
    managed_places: int | None = None
    """Requests that the managed environments serve at once; None for functions on demand."""


TIMING: Final = Question(
    name="chunk timing",
    expected="events arrive over the whole answer",
    otherwise="ResponseTransferMode is not STREAM, or a proxy in front of the API buffers",
)
MANAGED: Final = Question(
    name="full managed environments",
    expected="streams arrive piece by piece; requests beyond all places get 503 with Retry-After",
    otherwise="set ChatCapacity to on-demand, and compare the log with docs/performance.md",
)
THROTTLE: Final = Question(
    name="throttle in STREAM mode",
    expected="503 service_unavailable with Retry-After, from the gateway response",
    otherwise="the gateway responses of infra/template.yaml do not reach it: add its response type",
)
SECRET: Final = Question(
    name="missing secret",
    expected=f"provider_auth for the caller; {' or '.join(_DENIED)} in the log",
    otherwise="functions/tollgate/stores/aws/secrets.py must treat this code as a missing key",
)
SNAPSHOT: Final = Question(
    name="SnapStart under the wrapper",
    expected="a version with a snapshot answers 401 to a request without a key",
    otherwise="leave ChatSnapStart at false; the function's log says why",
)
THAW: Final = Question(
    name="sockets after a thaw",
    expected="every answer after a pause is complete, at its first attempt",
    otherwise="shorten the keep-alive of http_pool.py and aws_json.py below the shortest bad pause",
)
SIGNED: Final = Question(
    name="Bedrock's other formats",
    expected="a model of each row with auth bedrock or bedrock-mantle answers the function's role",
    otherwise="compare the refusal with the grants that routing/file/permissions.py compiles",
)
TRAILERS: Final = Question(
    name="error trailers",
    expected="not forwarded: clients learn of a failure only in-band",
    otherwise="write a decision that supersedes 105; clients can then read the trailers as well",
)


async def time_chunks(subject: Subject) -> Verdict:
    """Stream one answer and measure when its events arrive."""
    streamed = subject.probe.stream(subject.model, _PROMPT)
    if not streamed.whole:
        return TIMING.judge(f"no complete answer: {streamed.reply.summarize()}", as_expected=False)
    gaps = [after - before for before, after in pairwise(streamed.arrived_s)]
    figures = (
        f"{len(streamed.arrived_s)} events; the first after {streamed.arrived_s[0]:.2f} s,"
        f" the last after {streamed.arrived_s[-1]:.2f} s, longest gap {max(gaps, default=0):.2f} s"
    )
    return TIMING.judge(figures, as_expected=streamed.came_apart)


async def fill(subject: Subject) -> Verdict:
    """Send a third more requests at once than the managed environments serve."""
    places = subject.managed_places
    if places is None:
        return MANAGED.leave("ChatCapacity is on-demand")
    seen = await asyncio.gather(
        *(
            asyncio.to_thread(subject.probe.stream, subject.model, _PROMPT)
            for _ in range(places + places // 3)
        )
    )
    streams = [it for it in seen if it.reply.status == 200]
    refused = [it.reply for it in seen if it.reply.status != 200]
    retryable = [it for it in refused if it.status == 503 and "retry-after" in it.headers]
    apart = [it for it in streams if it.whole and it.came_apart]
    return MANAGED.judge(
        f"{len(seen)} requests for {places} places: {len(apart)} streams piece by piece,"
        f" {len(streams) - len(apart)} otherwise, {len(retryable)} retryable refusals,"
        f" {len(refused) - len(retryable)} others",
        as_expected=len(apart) >= places and len(apart) + len(retryable) == len(seen),
    )


async def throttle(subject: Subject) -> Verdict:
    """Make Lambda throttle the function temporarily, and check the reply to a client."""
    if subject.managed_places is not None:
        return THROTTLE.leave(f"managed instances serve chat, see {MANAGED.name!r}")
    async with subject.function.throttled():
        began_s = subject.clock.monotonic_s()
        streamed = subject.probe.stream(subject.model, "Hello")
        while streamed.reply.status == 200 and _waits(subject.clock, began_s):
            await subject.clock.sleep(_EVERY_S)
            streamed = subject.probe.stream(subject.model, "Hello")
    error = streamed.reply.field("error")
    code = error.get("code") if isinstance(error, dict) else None
    retry_after = streamed.reply.headers.get("retry-after")
    return THROTTLE.judge(
        f"{streamed.reply.status} {code}, Retry-After {retry_after}",
        as_expected=(streamed.reply.status, code) == (503, "service_unavailable")
        and retry_after is not None,
    )


async def miss_secret(subject: Subject) -> Verdict:
    """Call a model whose provider has no key, and find the error code from AWS in the logs."""
    if subject.keyless is None:
        return SECRET.leave("each provider of routing.yaml has its secret")
    model, secret = subject.keyless
    error = subject.probe.stream(model, "Hello").reply.field("error")
    code = error.get("code") if isinstance(error, dict) else None
    began_s, since_s = subject.clock.monotonic_s(), subject.clock.now_s() - _LOGS_BACK_S
    while True:
        lines = subject.function.log_lines("secret", secret, since_s)
        if lines or not _waits(subject.clock, began_s):
            break
        await subject.clock.sleep(_EVERY_S)
    rejection = lines[-1].get("rejection") if lines else None
    return SECRET.judge(
        f"{code} for {model}; AWS answered {rejection} for {secret}",
        as_expected=code == "provider_auth" and rejection in _DENIED,
    )


async def call_signed(subject: Subject) -> Verdict:
    """Call a model by each signed row: no emulator checks Bedrock's signatures and permissions."""
    if not subject.signed:
        return SIGNED.leave("no row of routing.yaml has auth bedrock or bedrock-mantle")
    found, all_well = [], True
    for model, provider in subject.signed:
        streamed = subject.probe.stream(model, "Hello", provider=provider)
        all_well &= streamed.whole
        found.append(f"{provider} {streamed.reply.summarize()}")
    return SIGNED.judge("; ".join(found), as_expected=all_well)


async def snapshot(subject: Subject) -> Verdict:
    """Start the function from a snapshot, and send it a request without a key."""
    async with subject.function.snapshot() as version:
        optimized = subject.function.optimized(version)
        answers = [subject.function.invoke(version, _UNAUTHENTICATED) for _ in range(2)]
    statuses = [_status(answer) for answer in answers]
    return SNAPSHOT.judge(
        f"snapshot {'on' if optimized else 'off'}; answered {', '.join(statuses)}",
        as_expected=optimized and statuses == ["401", "401"],
    )


async def thaw(subject: Subject) -> Verdict:
    """Call the function again after pauses during which it was frozen."""
    subject.probe.stream(subject.model, "Hello")
    found, all_well = [], True
    for pause_s in PAUSES_S:
        await subject.clock.sleep(pause_s)
        streamed = subject.probe.stream(subject.model, "Hello")
        failed = _failed_attempts(subject.probe, streamed)
        all_well &= streamed.whole and failed == 0
        took_s = streamed.arrived_s[-1] if streamed.arrived_s else 0.0
        found.append(
            f"after {pause_s:.0f} s {streamed.reply.status} in {took_s:.2f} s, "
            f"{failed} failed attempts"
        )
    return THAW.judge("; ".join(found), as_expected=all_well)


async def end_with_trailers(subject: Subject) -> Verdict:
    """Create a route whose stream ends with error trailers, call it, and delete it."""
    async with trailers_stack(subject.formation, f"{subject.stack}-account-check") as url:
        began_s = subject.clock.monotonic_s()
        end = await read_stream_end(url)
        # API Gateway refuses requests to a new stage with status 403 for a few seconds.
        while end is StreamEnd.ABSENT and _waits(subject.clock, began_s):
            await subject.clock.sleep(_EVERY_S)
            end = await read_stream_end(url)
    expected = end in (StreamEnd.CLEAN, StreamEnd.BROKEN)
    return TRAILERS.judge(end.value, as_expected=expected)


PROBES: Final[tuple[tuple[Question, Callable[[Subject], Awaitable[Verdict]]], ...]] = (
    (TIMING, time_chunks),
    (SECRET, miss_secret),
    (SIGNED, call_signed),
    (THAW, thaw),
    (MANAGED, fill),
    (THROTTLE, throttle),
    (SNAPSHOT, snapshot),
    (TRAILERS, end_with_trailers),
)


async def run_probe(
    question: Question, probe: Callable[[Subject], Awaitable[Verdict]], subject: Subject
) -> Verdict:
    """Run a probe; return the verdict `unanswered` if AWS or the network fails."""
    try:
        return await probe(subject)
    except ClientError as error:
        return question.leave(f"AWS refused {error.operation_name}: {error_code(error)}")
    except (BotoCoreError, WaiterError, HTTPException, OSError, Unreachable) as error:
        return question.leave(f"{type(error).__name__}: {error}")


_UNAUTHENTICATED: Final = {
    "resource": "/v1/chat/completions",
    "path": "/v1/chat/completions",
    "httpMethod": "POST",
    "headers": {"Host": "account-check"},
    "multiValueHeaders": {"Host": ["account-check"]},
    "queryStringParameters": None,
    "multiValueQueryStringParameters": None,
    "requestContext": {"identity": {"sourceIp": "192.0.2.1"}, "requestId": "account-check"},
    "body": "{}",
    "isBase64Encoded": False,
}


def _status(answer: bytes) -> str:
    """Return the HTTP status in a streamed answer, or the error type of a failed invocation."""
    try:
        document = from_json(answer.partition(bytes(8))[0])
    except ValueError:
        return "something else"
    return str(document.get("statusCode") or document.get("errorType"))


def _failed_attempts(probe: Probe, streamed: StreamSeen) -> int:
    """Return the number of failed attempts in the record of an answer."""
    generation_id = streamed.reply.headers.get("x-generation-id")
    record = probe.get(f"/generation?id={generation_id}").field("data")
    attempts = record["provider_responses"] if isinstance(record, dict) else []
    return sum(1 for attempt in attempts if attempt["error"] is not None)


def _waits(clock: Clock, began_s: float) -> bool:
    return clock.monotonic_s() - began_s < _PATIENCE_S
