"""What `tollgate doctor` looks at. A check that cannot be made fails."""

from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from typing import Final, Literal, Protocol

from msgspec import Struct

from tollgate.cli.stack.aws_account import AccountError
from tollgate.cli.stack.probe import Probe, Unreachable
from tollgate.core.clock import Clock

# A new account may run 10 environments, others 1,000 (Lambda quotas, 2026-11).
_CONCURRENCY_WISHED: Final = 100
# AWS refuses signatures that are more than 5 minutes off (IAM user guide, "Troubleshoot Signature
# Version 4", 2026-11); a minute is time to act.
_CLOCK_OFF_MAX_S: Final = 60
# Of the time that an answer takes, the part in which its events must arrive. A gateway on the way
# that holds them back delivers them all at the end.
_SPREAD_MIN: Final = 0.05
_PROMPT: Final = "Write the numbers from one to forty as words."

CheckSeverity = Literal["ok", "warn", "FAIL"]


class CheckResult(Struct, frozen=True):
    """One line of the doctor's report, with what to do about it."""

    severity: CheckSeverity
    what: str
    remedy: str = ""


class Account(Protocol):
    """What the checks ask of AWS; both raise AccountError."""

    def has_secret(self, name: str) -> bool:
        """Whether a secret is there and has a value."""

    def concurrency_max(self) -> int:
        """How many environments Lambda may run at once."""


class Patient(Struct, frozen=True, kw_only=True):
    """A deployment, and what it should be like."""

    probe: Probe
    account: Account
    clock: Clock
    catalog_sha: str
    secrets: tuple[str, ...]
    model: str
    has_key: bool


def examine(patient: Patient) -> Iterator[CheckResult]:
    """Every check, each whatever came of those before it."""
    for check in CHECKS:
        try:
            yield from check(patient)
        except (Unreachable, AccountError) as error:
            yield CheckResult("FAIL", str(error))


def readiness(patient: Patient) -> Iterator[CheckResult]:
    """The api function answers and reaches its tables."""
    reply = patient.probe.get("/health/ready")
    if reply.status == 200:
        yield CheckResult("ok", "the gateway is ready")
    else:
        yield CheckResult("FAIL", f"the gateway is not ready: {reply.said()}", "see the api logs")


def catalog(patient: Patient) -> Iterator[CheckResult]:
    """The stack serves the routing file that is checked out here."""
    served = patient.probe.get("/health/live").field("catalog_sha")
    if served == patient.catalog_sha:
        yield CheckResult(
            "ok", f"the stack serves catalog {patient.catalog_sha[:12]}, as routing.yaml"
        )
    else:
        yield CheckResult(
            "FAIL",
            f"the stack serves catalog {str(served)[:12]}, routing.yaml is "
            f"{patient.catalog_sha[:12]}",
            "deploy or publish what main says, or check out what is served",
        )


def clock(patient: Patient) -> Iterator[CheckResult]:
    """This machine and AWS agree about the time, which signatures need."""
    said = patient.probe.get("/health/live").headers.get("date")
    if said is None:
        yield CheckResult("FAIL", "the gateway does not say what time it is")
        return
    off_s = abs(parsedate_to_datetime(said).timestamp() - patient.clock.now_s())
    if off_s <= _CLOCK_OFF_MAX_S:
        yield CheckResult("ok", "the clocks agree")
    else:
        yield CheckResult(
            "FAIL", f"this clock is {off_s:.0f} s off", "set it: AWS refuses signatures"
        )


def secrets(patient: Patient) -> Iterator[CheckResult]:
    """Every secret that the routing file names is there."""
    missing = [name for name in patient.secrets if not patient.account.has_secret(name)]
    if not missing:
        yield CheckResult("ok", f"secrets: all {len(patient.secrets)} are there")
    for name in missing:
        yield CheckResult(
            "FAIL",
            f"secret {name} is missing",
            f"aws secretsmanager create-secret --name {name} --secret-string file:///dev/stdin",
        )


def quota(patient: Patient) -> Iterator[CheckResult]:
    """A new account may run so few functions that a second caller is refused."""
    allowed = patient.account.concurrency_max()
    if allowed >= _CONCURRENCY_WISHED:
        yield CheckResult("ok", f"Lambda may run {allowed} environments at once")
    else:
        yield CheckResult(
            "warn",
            f"Lambda may run only {allowed} environments at once, one per answer",
            "ask for more: Service Quotas, Lambda, concurrent executions",
        )


def key(patient: Patient) -> Iterator[CheckResult]:
    """The key is a key."""
    if not patient.has_key:
        yield CheckResult("FAIL", "no key to ask with", "set TOLLGATE_API_KEY to an inference key")
        return
    reply = patient.probe.get("/models")
    if reply.status == 200:
        yield CheckResult("ok", "the key is accepted")
    else:
        yield CheckResult("FAIL", f"the key is not accepted: {reply.said()}", "tollgate first-key")


def stream(patient: Patient) -> Iterator[CheckResult]:
    """Events arrive one by one: nothing between the function and here holds them back."""
    if not patient.has_key:
        return
    seen = patient.probe.stream(patient.model, _PROMPT)
    if seen.reply.status != 200:
        yield CheckResult("FAIL", f"{patient.model} does not answer: {seen.reply.said()}")
    elif not seen.reply.body.rstrip().endswith(b"data: [DONE]") or b'"error"' in seen.reply.body:
        yield CheckResult("FAIL", f"{patient.model} breaks off in the middle of its answer")
    elif "content-length" in seen.reply.headers or not _came_apart(seen.arrived_s):
        yield CheckResult(
            "FAIL",
            f"the stream is held back: {len(seen.arrived_s)} events came at once",
            "the method must be RESPONSE_STREAM, and proxies on the way must not buffer",
        )
    else:
        took_s = seen.arrived_s[-1] - seen.arrived_s[0]
        yield CheckResult("ok", f"stream: {len(seen.arrived_s)} events over {took_s:.1f} s")


def _came_apart(arrived_s: tuple[float, ...]) -> bool:
    return len(arrived_s) > 2 and arrived_s[-1] - arrived_s[0] > _SPREAD_MIN * arrived_s[-1]


CHECKS: Final[tuple[Callable[[Patient], Iterator[CheckResult]], ...]] = (
    readiness,
    catalog,
    clock,
    secrets,
    quota,
    key,
    stream,
)
