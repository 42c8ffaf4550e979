"""`make account-check`: run all probes against a stage in samconfig.toml."""

import asyncio
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import boto3  # type: ignore[import-untyped]  # ships no types
import click

from infra.account_check.chat_function import ChatFunction, count_managed_places
from infra.account_check.probes import PROBES, Subject, run_probe
from infra.account_check.verdicts import Verdict, print_verdicts
from tollgate.cli.stack.aws_account import AccountError, AwsAccount
from tollgate.cli.stack.probe import Probe
from tollgate.cli.stack.stages import InvalidAnswer, read_stage
from tollgate.core.clock import SystemClock
from tollgate.providers.ports.base import SIGNED_SERVICES
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.routing_file import Routing

_ROOT: Final = Path(__file__).parents[2]
_COST: Final = (
    "This takes about 20 minutes, and costs less than 10 cents at AWS's list prices: a snapshot "
    "of one version, billed for three hours, and some answers from {model}. During the throttle "
    "probe, the stack refuses all requests for some seconds. On managed instances, some hundred "
    "answers fill the environments instead."
)


@click.command()
@click.argument("stage", default="default")
@click.option(
    "--region", default="", help="Region of the stage; by default the region in samconfig.toml."
)
@click.option("--url", default="", help="Another base URL for the stack.")
@click.option("--model", default="fast", show_default=True, help="Model that answers the probes.")
@click.option(
    "--key", envvar="TOLLGATE_API_KEY", show_envvar=True, required=True, help="Inference key."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    default=_ROOT / "samconfig.toml",
)
def account_check(config: Path, stage: str, *, as_json: bool, **options: str) -> None:
    """Run all probes against STAGE; exit with 1 unless every result is as expected."""
    try:
        chosen = read_stage(config.read_text(), stage)
        region = options["region"] or chosen.region
        account = AwsAccount(region)
        url = options["url"] or account.stack(chosen.stack).url
        routing = compile_catalog(_ROOT / "routing.yaml").routing
        keyless = _keyless_model(routing, account)
    except (InvalidAnswer, AccountError) as error:
        raise click.ClickException(str(error)) from error
    session = boto3.Session(region_name=region)
    clock = SystemClock()
    formation = session.client("cloudformation")
    subject = Subject(
        probe=Probe(url, options["key"], clock),
        function=ChatFunction(session.client, chosen.stack),
        formation=formation,
        stack=chosen.stack,
        clock=clock,
        model=options["model"],
        keyless=keyless,
        managed_places=count_managed_places(formation, chosen.stack),
        signed=tuple(_signed_models(routing)),
    )
    click.echo(_COST.format(model=options["model"]), err=True)
    with interrupted_by_signals():
        verdicts = asyncio.run(_examine(subject))
    print_verdicts(verdicts, "json" if as_json else "auto")
    if any(verdict.judgement != "as expected" for verdict in verdicts):
        raise SystemExit(1)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into KeyboardInterrupt, so that the block undoes its changes."""
    signals = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(each, signal.default_int_handler) for each in signals]
    try:
        yield
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)


async def _examine(subject: Subject) -> Sequence[Verdict]:
    verdicts = []
    for question, probe in PROBES:
        click.echo(f"{question.name}: expecting {question.expected}", err=True)
        verdicts.append(await run_probe(question, probe, subject))
    return verdicts


def _keyless_model(routing: Routing, account: AwsAccount) -> tuple[str, str] | None:
    """Return a model whose only provider lacks its secret, and the name of this secret."""
    for slug, model in routing.models.items():
        if model.kind != "chat":
            continue
        providers = {endpoint.provider for endpoint in model.endpoints}
        key = routing.providers[providers.pop()].key if len(providers) == 1 else None
        if key is not None and key.secret is not None and not account.has_secret(key.secret):
            return slug, key.secret
    return None


def _signed_models(routing: Routing) -> Iterator[tuple[str, str]]:
    """Yield a model of each provider that is signed for by `auth`, and the provider."""
    seen = set()
    for slug, model in routing.models.items():
        for endpoint in model.endpoints:
            provider = routing.providers[endpoint.provider]
            if provider.auth in SIGNED_SERVICES and endpoint.provider not in seen:
                seen.add(endpoint.provider)
                yield slug, endpoint.provider


if __name__ == "__main__":
    account_check()
