"""`tollgate access`: the people, keys, alerts and budget of a workspace as a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from msgspec.structs import replace

from tollgate.cli.access.access_file import AccessFile, read_access
from tollgate.cli.access.application import (
    SecretVault,
    StoredSecret,
    TakenSecret,
    apply_changes,
    has_secrets,
)
from tollgate.cli.access.checks import find_refusals
from tollgate.cli.access.differences import AccessPlan, compare_access
from tollgate.cli.access.export import export_access
from tollgate.cli.access.live import LiveAccess, read_authors, read_live
from tollgate.cli.access.rendering import (
    NOTHING,
    Authors,
    access_markdown,
    access_text,
    change_rows,
    refusal_markdown,
)
from tollgate.cli.gateway.command import open_gateway
from tollgate.cli.gateway.http import Api, gateway_url
from tollgate.cli.options import EXIT_CHANGES, EXIT_SAME, PlanCommand, region, utc_today
from tollgate.cli.routing.plan_rows import align_rows
from tollgate.cli.routing.revisions import find_commit
from tollgate.core.dotted_names import DottedName
from tollgate.routing.file.problems import InvalidRouting

# Imported only for files with new secrets, because boto3 is slow to import.
_ACCOUNT: Final = DottedName[Callable[[str | None], SecretVault]](
    "tollgate.cli.stack.aws_account:AwsAccount"
)
_ACCOUNT_ERROR: Final = DottedName[type[Exception]]("tollgate.cli.stack.aws_account:AccountError")

_file = click.argument(
    "file", default=Path("access.yaml"), type=click.Path(path_type=Path, dir_okay=False)
)
_secret = click.option("--secret", envvar="TOLLGATE_KEY", hidden=True)


@click.group()
def access() -> None:
    """Compare a workspace's people, keys and budget with a file, and change them."""


@access.command("plan", cls=PlanCommand, epilog="Example: tollgate access plan --markdown")
@_file
@click.option("--markdown", is_flag=True, help="Print a comment for GitHub.")
@gateway_url
@_secret
@click.pass_context
def plan_access(
    ctx: click.Context, /, *, file: Path, markdown: bool, url: str, secret: str | None
) -> None:
    """Show what `apply` would change, in dollars of limits, and who would lose what.

    The exit status is 0 if nothing would change, 2 if anything would, and 1 if there is no plan or
    the file must not be applied. A key of role `read` is enough for files without alerts.
    """
    api = open_gateway(url, secret)
    try:
        _, _, plan = _plan(api, file)
    except click.ClickException as refused:
        if markdown:
            click.echo(refusal_markdown(refused.message.splitlines()))
        raise
    authors = _authors(api, plan)
    click.echo(access_markdown(plan, authors) if markdown else access_text(plan, authors))
    ctx.exit(EXIT_CHANGES if plan.changes else EXIT_SAME)


@access.command("apply", epilog="Example: tollgate access apply")
@_file
@click.option("--commit", help="Commit for the audit log; by default that of the file's folder.")
@region
@gateway_url
@_secret
def apply_access(
    *, file: Path, commit: str | None, region: str | None, url: str, secret: str | None
) -> None:
    """Make the workspace match FILE; a second run changes nothing.

    Secrets of new keys and alerts go to Secrets Manager, with the AWS credentials of this terminal.
    """
    api = replace(open_gateway(url, secret), commit=commit or find_commit(file.absolute().parent))
    content, live, plan = _plan(api, file)
    needs_account = has_secrets(content, live, plan)
    account_error = (_ACCOUNT_ERROR(),) if needs_account else ()
    made = 0
    try:
        account = _ACCOUNT()(region) if needs_account else None
        for done in apply_changes(api, content, live, plan, vault=account):
            made += 1
            click.echo(_describe(done))
    except (*account_error, TakenSecret) as failed:
        raise click.ClickException(str(failed)) from failed
    click.echo(f"{made} done." if made else NOTHING)


@access.command("export", epilog="Example: tollgate access export > access.yaml")
@gateway_url
@_secret
def export_file(*, url: str, secret: str | None) -> None:
    """Print a file that describes the current workspace; needs a management key."""
    click.echo(export_access(read_live(open_gateway(url, secret), alerts=True)), nl=False)


def _plan(api: Api, file: Path) -> tuple[AccessFile, LiveAccess, AccessPlan]:
    """Return a file, the state of its workspace, and its plan; raise ClickException if the file
    must not be applied.
    """
    try:
        content = read_access(file)
    except InvalidRouting as invalid:
        raise click.ClickException(str(invalid)) from invalid
    live = read_live(api, alerts=content.alerts is not None)
    plan = compare_access(content, live, utc_today())
    refusals = list(find_refusals(content, live, plan))
    if refusals:
        raise click.ClickException("\n".join(refusals))
    return content, live, plan


def _authors(api: Api, plan: AccessPlan) -> Authors:
    """Return who made the differences; the audit log is only read if there are any."""
    if not plan.drift and all(change.id is None for change in plan.changes):
        return {}
    return read_authors(api, plan.workspace_id)


def _describe(done: Any) -> str:
    if isinstance(done, StoredSecret):
        return f"~ {done.kind.noun}  {done.name}  new secret in {done.secret_name}"
    return align_rows(change_rows([done], {}))[0]
