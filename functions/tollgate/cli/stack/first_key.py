"""`tollgate first-key`: create a workspace's first management key, directly in the tables."""

import asyncio

import click

from tollgate.cli.options import region, stack
from tollgate.cli.stack.aws_account import AccountError, AwsAccount
from tollgate.core.clock import SystemClock
from tollgate.core.errors import GatewayError
from tollgate.core.records.audit import Actor
from tollgate.settings import Settings
from tollgate.stores.ports.administration import KeyStore, NewKey
from tollgate.stores.rules.key_names import choose_free_name
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.stores import wire_stores


class NotFirst(Exception):
    """Raised for a workspace that already has a management key."""


@click.command("first-key", epilog="Example: tollgate first-key --workspace search")
@stack
@region
@click.option("--workspace", default="default", show_default=True, help="Workspace of the key.")
def first_key(stack: str, region: str | None, workspace: str) -> None:
    """Create a workspace's first management key, and show its secret only this once."""
    try:
        account = AwsAccount(region)
        settings = account.settings(account.stack(stack))
        secret = asyncio.run(_make(settings, workspace, Actor(kind="aws", id=account.caller())))
    except (AccountError, GatewayError, NotFirst) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"The management key of workspace {workspace}, which is not shown again:\n{secret}")


async def _make(settings: Settings, workspace: str, by: Actor) -> str:
    clock = SystemClock()
    stores = wire_stores(settings, clock)
    try:
        keys = wire_administration(settings, stores, clock).keys
        return await make_first_key(keys, workspace, by)
    finally:
        await stores.aclose()


async def make_first_key(keys: KeyStore, workspace: str, by: Actor) -> str:
    """Create a management key and return its secret; raise NotFirst if an enabled one exists."""
    after: str | None = None
    while True:
        page = await keys.list(workspace, after=after)
        for key in page.found:
            if key.role == "management" and not key.disabled:
                raise NotFirst(
                    f"workspace {workspace} has the management key {key.id}; create more keys "
                    "with it, or disable it first"
                )
        after = page.next
        if after is None:
            break
    # A disabled first key still has its name.
    label = choose_free_name(await keys.names(workspace), "first management key")
    new = NewKey(workspace_id=workspace, label=label, role="management")
    return (await keys.create(new, by=by)).secret
