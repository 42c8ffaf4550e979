"""`tollgate doctor`: checks of a deployed stack; a check that cannot be run counts as failed."""

from collections.abc import Callable, Iterator, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final, Literal, Protocol

import click
from msgspec import Struct

from tollgate.cli.options import region, routing_file, stack
from tollgate.cli.stack.aws_account import AccountError, AwsAccount, ModelAccess
from tollgate.cli.stack.probe import Probe, Unreachable
from tollgate.core.clock import Clock, SystemClock
from tollgate.core.secret import create_secret_command
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.file.permissions import (
    MantleModels,
    bedrock_model_ids,
    mantle_models,
    secret_names,
)
from tollgate.routing.file.problems import InvalidRouting
from tollgate.settings import Settings

# New accounts may run 10 environments, others 1,000 (Lambda quotas, 2026-11).
_CONCURRENCY_RECOMMENDED: Final = 100
# AWS refuses signatures with a time that is more than 5 minutes off (IAM user guide, "Troubleshoot
# Signature Version 4", 2026-11).
_CLOCK_OFF_MAX_S: Final = 60
_NAMES_MAX: Final = 5
_STEPS_MAX: Final = 3
_PROMPT: Final = "Write the numbers from one to forty as words."

_OPEN_MODEL: Final = (
    "use the model once in Bedrock's playground, which subscribes in AWS Marketplace; Anthropic "
    "requires a form first"
)

CheckSeverity = Literal["ok", "warn", "FAIL"]


class CheckResult(Struct, frozen=True):
    """A line in the report, with a remedy for a failure."""

    severity: CheckSeverity
    what: str
    remedy: str = ""


class Account(Protocol):
    """The AWS calls that checks need; each raises AccountError on failure."""

    def has_secret(self, name: str) -> bool:
        """Return whether a secret exists and has a value."""

    def concurrency_max(self) -> int:
        """Return the maximum number of concurrent Lambda environments."""

    def model_access(self, model_id: str) -> ModelAccess:
        """Return the account's access to a Bedrock model."""

    def mantle_models(self, address: str, region: str) -> frozenset[str]:
        """Return the ids of the models that Bedrock's Mantle lists for the account."""


class Patient(Struct, frozen=True, kw_only=True):
    """A deployment to check, and its expected state."""

    probe: Probe
    account: Account
    clock: Clock
    catalog_sha: str
    secrets: tuple[str, ...]
    bedrock_models: tuple[str, ...]
    """Ids of the Bedrock models in the routing file."""
    mantle: tuple[MantleModels, ...]
    """The models that the routing file calls at Bedrock's Mantle."""
    model: str
    """The model that the streaming check calls."""
    has_key: bool


def examine(patient: Patient) -> Iterator[CheckResult]:
    """Run all checks, even after a failure, and yield the results."""
    for check in CHECKS:
        try:
            yield from check(patient)
        except (Unreachable, AccountError) as error:
            yield CheckResult("FAIL", str(error))


def readiness(patient: Patient) -> Iterator[CheckResult]:
    """Check that the API function answers and reaches its tables."""
    reply = patient.probe.get("/health/ready")
    if reply.status == 200:
        yield CheckResult("ok", "the gateway is ready")
    else:
        yield CheckResult(
            "FAIL", f"the gateway is not ready: {reply.summarize()}", "see the api logs"
        )


def catalog(patient: Patient) -> Iterator[CheckResult]:
    """Check that the stack serves the local routing file."""
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
            "deploy or publish this file, or check out the served version",
        )


def clock(patient: Patient) -> Iterator[CheckResult]:
    """Check that the clocks of this machine and of AWS agree, because signatures require it."""
    date = patient.probe.get("/health/live").headers.get("date")
    if date is None:
        yield CheckResult("FAIL", "the gateway sends no Date header")
        return
    off_s = abs(parsedate_to_datetime(date).timestamp() - patient.clock.now_s())
    if off_s <= _CLOCK_OFF_MAX_S:
        yield CheckResult("ok", "the clocks agree")
    else:
        yield CheckResult(
            "FAIL", f"this clock is {off_s:.0f} s off", "set the clock: AWS refuses signatures"
        )


def secrets(patient: Patient) -> Iterator[CheckResult]:
    """Warn about each missing secret; without the secret, requests skip its provider."""
    missing = [name for name in patient.secrets if not patient.account.has_secret(name)]
    if not missing:
        yield CheckResult("ok", f"secrets: all {len(patient.secrets)} exist")
    else:
        what = f"{len(missing)} of {len(patient.secrets)} secrets are missing: {_list(missing)}"
        yield CheckResult("warn", what, create_secret_command(missing[0]))


def bedrock_models(patient: Patient) -> Iterator[CheckResult]:
    """Check that the account may invoke every Bedrock model in the routing file."""
    access = {
        model_id: patient.account.model_access(model_id) for model_id in patient.bedrock_models
    }
    away = [name for name, found in access.items() if not found.in_region]
    closed = [
        name
        for name, found in access.items()
        if found.in_region and not (found.subscribed and found.authorized)
    ]
    if away:
        what = f"Bedrock models that are not in this region: {_list(away)}"
        yield CheckResult("warn", what, "name another profile")
    if closed:
        what = f"Bedrock models that are not open to this account: {_list(closed)}"
        yield CheckResult("warn", what, _OPEN_MODEL)
    if not away and not closed:
        yield CheckResult("ok", f"Bedrock: all {len(patient.bedrock_models)} models are open")


def mantle(patient: Patient) -> Iterator[CheckResult]:
    """Check that Bedrock's Mantle lists each model that the routing file calls there."""
    for called in patient.mantle:
        listed = patient.account.mantle_models(f"https://{called.host}", called.region)
        missing = [model for model in called.models if model not in listed]
        if not missing:
            what = f"Mantle: all {len(called.models)} models are in {called.region}"
            yield CheckResult("ok", what)
        else:
            what = f"models that Mantle does not have in {called.region}: {_list(missing)}"
            yield CheckResult("warn", what, "name another region, or request access to the model")


def quota(patient: Patient) -> Iterator[CheckResult]:
    """Warn if the account may run few Lambda environments, each of which serves one answer at a
    time.
    """
    allowed = patient.account.concurrency_max()
    if allowed >= _CONCURRENCY_RECOMMENDED:
        yield CheckResult("ok", f"Lambda may run {allowed} environments at once")
    else:
        yield CheckResult(
            "warn",
            f"Lambda may run only {allowed} environments at once, one per answer",
            "request more: Service Quotas, Lambda, concurrent executions",
        )


def key(patient: Patient) -> Iterator[CheckResult]:
    """Check that the gateway accepts the key."""
    if not patient.has_key:
        yield CheckResult(
            "FAIL", "no key for requests is set", "set TOLLGATE_API_KEY to an inference key"
        )
        return
    reply = patient.probe.get("/models")
    if reply.status == 200:
        yield CheckResult("ok", "the key is accepted")
    else:
        yield CheckResult(
            "FAIL", f"the key is not accepted: {reply.summarize()}", "tollgate first-key"
        )


def stream(patient: Patient) -> Iterator[CheckResult]:
    """Check that a stream's events arrive one by one, and that no proxy buffers them."""
    if not patient.has_key:
        return
    streamed = patient.probe.stream(patient.model, _PROMPT)
    if streamed.reply.status != 200:
        yield CheckResult("FAIL", f"{patient.model} does not answer: {streamed.reply.summarize()}")
    elif not streamed.whole:
        yield CheckResult("FAIL", f"{patient.model} does not finish its answer")
    elif not streamed.came_apart:
        yield CheckResult(
            "FAIL",
            f"the stream is buffered: {len(streamed.arrived_s)} events arrived at once",
            "the method must be RESPONSE_STREAM, and proxies must not buffer",
        )
    else:
        took_s = streamed.arrived_s[-1] - streamed.arrived_s[0]
        yield CheckResult("ok", f"stream: {len(streamed.arrived_s)} events over {took_s:.1f} s")


CHECKS: Final[tuple[Callable[[Patient], Iterator[CheckResult]], ...]] = (
    readiness,
    catalog,
    clock,
    secrets,
    bedrock_models,
    mantle,
    quota,
    key,
    stream,
)


@click.command(epilog="Example: tollgate doctor --stack tollgate --model fast")
@routing_file
@stack
@region
@click.option("--url", help="Another base URL for the stack, such as a custom domain.")
@click.option(
    "--model", default="fast", show_default=True, help="Model for a test call, which is billed."
)
@click.option(
    "--key", envvar="TOLLGATE_API_KEY", show_envvar=True, help="Inference key for the calls."
)
def doctor(file: Path, stack: str, region: str | None, **options: str | None) -> None:
    """Check the deployed stack against FILE; the exit status is 1 if a check fails."""
    clock = SystemClock()
    try:
        compiled = compile_catalog(file, variables=Settings().variables)
        account = AwsAccount(region)
        url = options["url"] or account.stack(stack).url
    except (InvalidRouting, AccountError) as error:
        raise click.ClickException(str(error)) from error
    patient = Patient(
        probe=Probe(url, options["key"], clock),
        account=account,
        clock=clock,
        catalog_sha=compiled.sha,
        secrets=secret_names(compiled.routing),
        bedrock_models=bedrock_model_ids(compiled.routing),
        mantle=mantle_models(compiled.routing),
        model=options["model"] or "",
        has_key=options["key"] is not None,
    )
    findings = []
    for finding in examine(patient):
        click.echo(f"{finding.severity:<5} {finding.what}")
        findings.append(finding)
    steps = _next_steps(findings)
    if steps:
        click.echo("Next:")
    for number, remedy in enumerate(steps, start=1):
        click.echo(f"  {number}. {remedy}")
    if any(finding.severity == "FAIL" for finding in findings):
        raise SystemExit(1)


def _next_steps(findings: Sequence[CheckResult]) -> Sequence[str]:
    """Return the remedies of the first three findings to act on, failures before warnings."""
    urgent = sorted(findings, key=lambda finding: finding.severity != "FAIL")
    return [finding.remedy for finding in urgent if finding.remedy][:_STEPS_MAX]


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    return f"{', '.join(names[:_NAMES_MAX])}{more}"
