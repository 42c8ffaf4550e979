"""`tollgate deploy`: questions, build, change set, publication and next steps."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import boto3  # type: ignore[import-untyped]  # ships no types
import click
from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

from tollgate.cli.routing.check import compile_valid
from tollgate.cli.stack.aws_account import AccountError, AwsAccount
from tollgate.cli.stack.build import ROUTING, build_functions, run_tool, sam
from tollgate.cli.stack.next_steps import next_steps
from tollgate.cli.stack.stages import (
    ALARM_EMAIL,
    READERS_PARAMETER,
    READERS_UNRESERVED_MIN,
    TABLE_PROTECTION,
    InvalidAnswer,
    Stage,
    keep_answers,
    parse_email,
    parse_region,
    read_stage,
)
from tollgate.cli.stack.stored_items import check_stored_items
from tollgate.core.errors import NewerItems
from tollgate.routing.file.permissions import routed_secret_names, secret_names
from tollgate.routing.routing_file import Routing
from tollgate.settings import environment_variable

_REGION_DEFAULT: Final = "us-east-1"  # the region of the Bedrock profiles in routing.yaml


@click.command(epilog="Example: tollgate deploy prod --region eu-central-1")
@click.argument("stage", default="default")
@click.option("--region", default="", help="Region of the stage, for its first deploy.")
@click.option("--email", default="", help="E-mail address for the alarms of the stage.")
@click.option(
    "--build/--no-build", "builds", default=True, help="Build first, or deploy the last build."
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    default=Path("samconfig.toml"),
    show_default=True,
    help="File with the stages.",
)
def deploy(stage: str, region: str, email: str, *, builds: bool, config: Path) -> None:
    """Build and deploy STAGE of samconfig.toml, publish routing.yaml, and print the next steps."""
    routing = compile_valid(ROUTING).routing
    _prepare(config, stage, region, email)
    if builds:
        build_functions(Path.cwd())
    _apply(config, stage, region, routing)


def _prepare(config: Path, stage: str, region: str, email: str) -> None:
    """Check the credentials; before the first deploy, ask for the region and an alarm address."""
    text = config.read_text()
    try:
        chosen = read_stage(text, stage)
        # Credentials are the same in every region, so any region works before the questions.
        known = chosen.region or region or _region_of_environment() or _REGION_DEFAULT
        caller = AwsAccount(parse_region(known)).caller()
        found = _decide_region(chosen, region)
        check_stored_items(AwsAccount(found), chosen.stack)
        if chosen.region is None and (sys.stdin.isatty() or region or email):
            # If samconfig.toml has parameters, it has an alarm address or needs none.
            address = parse_email(email)
            if sys.stdin.isatty() and not address and chosen.overrides is None:
                address = _ask("E-mail address for alarms, empty for none", "", parse_email)
            config.write_text(keep_answers(text, chosen, found, address))
        elif email:
            raise InvalidAnswer(
                f"--email is for a first deploy: change {ALARM_EMAIL} in {config.name}"
            )
    except (InvalidAnswer, AccountError, NewerItems) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Deploying stack {chosen.stack} to {found} as {caller}")


def _apply(config: Path, stage: str, region: str, routing: Routing) -> None:
    """Show the change set, deploy the build, publish routing.yaml, and print the next steps."""
    try:
        chosen = read_stage(config.read_text(), stage)
        found = _decide_region(chosen, region)
        account = AwsAccount(found)
        is_first = account.parameter(chosen.stack, TABLE_PROTECTION) is None
        # Existing change sets may belong to colleagues, but without a stack they are from an
        # interrupted deploy.
        asks = sys.stdin.isatty() and not is_first
        of_others = account.waiting_change_sets(chosen.stack) if asks else frozenset()
    except (InvalidAnswer, AccountError) as error:
        raise click.ClickException(str(error)) from error
    command = [sam(), "deploy", "--config-file", str(config), "--config-env", stage]
    command += ["--stack-name", chosen.stack, "--region", found]
    # On a terminal, SAM shows the change set and asks for confirmation.
    command += ["--confirm-changeset"] if sys.stdin.isatty() else []
    decided = []
    if is_first and not chosen.states_protection:
        # If the creation of the stack fails, CloudFormation must be able to delete the tables.
        decided.append(f"{TABLE_PROTECTION}=false")
    if not _can_reserve_readers(account, chosen):
        unreserved = f"{READERS_PARAMETER}=none"
        click.echo(f"This account has too little Lambda concurrency to reserve any: {unreserved}")
        decided.append(unreserved)
    if decided:
        command += ["--parameter-overrides", *(chosen.overrides or ()), *decided]
    run_tool(command, Path.cwd())
    try:
        if sys.stdin.isatty() and account.discard_change_sets(chosen.stack, but=of_others):
            raise click.ClickException("nothing was deployed, and nothing published")
        _protect_tables(account, chosen)
    except AccountError as error:
        raise click.ClickException(str(error)) from error
    # Otherwise, a catalog published earlier would override the deployed catalog.
    tollgate = environment_variable("TOLLGATE") or str(Path(sys.executable).with_name("tollgate"))
    run_tool([tollgate, "publish", "--stack", chosen.stack, "--region", found], Path.cwd())
    missing = [name for name in secret_names(routing) if not _has_secret(account, name)]
    first = routed_secret_names(routing)
    try:
        url = account.stack(chosen.stack).url
    except AccountError as error:
        raise click.ClickException(str(error)) from error
    click.echo(
        next_steps(
            chosen.stack,
            found,
            url,
            missing=[name for name in missing if name in first],
            others=[name for name in missing if name not in first],
        )
    )


def _can_reserve_readers(account: AwsAccount, stage: Stage) -> bool:
    """Return whether Lambda admits the template's reservation, or the stage sets its own."""
    try:
        stated = account.parameter(stage.stack, READERS_PARAMETER)
        if stage.states_readers or stated not in (None, "none"):
            return True
        return account.unreserved_concurrency() >= READERS_UNRESERVED_MIN
    except AccountError:
        # Without permission to check, the decision is left to CloudFormation.
        return True


def _protect_tables(account: AwsAccount, stage: Stage) -> None:
    """Protect a stage's tables against deletion, unless its parameters set the protection.

    If a deploy is interrupted before this step, the next deploy repeats it.
    """
    if stage.states_protection or account.parameter(stage.stack, TABLE_PROTECTION) != "false":
        return
    click.echo(f"Protecting the tables of {stage.stack} against deletion")
    account.set_parameter(stage.stack, TABLE_PROTECTION, "true")


def _has_secret(account: AwsAccount, name: str) -> bool:
    """Return whether a secret exists; False without the permission to find out."""
    try:
        return account.has_secret(name)
    except AccountError:
        return False


def _decide_region(stage: Stage, stated: str) -> str:
    """Return a stage's region: from samconfig.toml, the option, the terminal or the environment."""
    if stage.region and stated and stated != stage.region:
        raise InvalidAnswer(f"stage {stage.name} is in {stage.region}, as samconfig.toml says")
    known = stage.region or stated
    if known:
        return parse_region(known)
    surrounding = _region_of_environment()
    if sys.stdin.isatty():
        return _ask("AWS region", surrounding or _REGION_DEFAULT, parse_region)
    if surrounding is None:
        raise InvalidAnswer(
            "no region is known, and there is no terminal to ask on: run `tollgate deploy "
            "--region us-east-1 --email you@example.com`, or set AWS_REGION; the address gets the "
            "alarms and may be left out"
        )
    return parse_region(surrounding)


def _region_of_environment() -> str | None:
    # boto3 does not read AWS_REGION, which the AWS command line and Lambda use.
    if region := environment_variable("AWS_REGION"):
        return region
    try:
        found: str | None = boto3.Session().region_name
    except BotoCoreError as error:
        raise AccountError(str(error)) from error
    return found


def _ask(question: str, default: str, parse: Callable[[str], str]) -> str:
    """Ask on the terminal until an answer is valid, and return the answer."""

    def parsed(answer: str) -> str:
        try:
            return parse(answer)
        except InvalidAnswer as error:
            raise click.UsageError(str(error)) from error

    answer: str = click.prompt(question, default=default, value_proc=parsed, show_default=True)
    return answer
