"""`tollgate doctor`: the checks of a deployed stack, one line each."""

from pathlib import Path

import click

from tollgate.cli.options import region, routing_file, stack
from tollgate.cli.stack.aws_account import AccountError, AwsAccount
from tollgate.cli.stack.checks import CheckResult, Patient, examine
from tollgate.cli.stack.probe import Probe
from tollgate.core.clock import SystemClock
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.file.permissions import bedrock_model_ids, secret_names
from tollgate.routing.file.problems import InvalidRouting
from tollgate.settings import Settings


@click.command()
@routing_file
@stack
@region
@click.option("--url", help="Another base URL of the stack, such as its own domain.")
@click.option(
    "--model", default="fast", show_default=True, help="Model to call; the call costs a little."
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
        model=options["model"] or "",
        has_key=options["key"] is not None,
    )
    failed = False
    for finding in examine(patient):
        click.echo(_line(finding))
        failed |= finding.severity == "FAIL"
    if failed:
        raise SystemExit(1)


def _line(finding: CheckResult) -> str:
    remedy = f"  -> {finding.remedy}" if finding.remedy else ""
    return f"{finding.severity:<5} {finding.what}{remedy}"
