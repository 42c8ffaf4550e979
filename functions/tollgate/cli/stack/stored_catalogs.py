"""Access to the published catalogs of a deployed stack."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final, TypeVar

import click

from tollgate.cli.stack.aws_account import AccountError, AwsAccount
from tollgate.core.clock import SystemClock
from tollgate.core.errors import GatewayError
from tollgate.core.routing.publication import Publications
from tollgate.routing.file.permissions import NotPermissible
from tollgate.wiring.stores import wire_stores

# Number of characters of a SHA that are printed.
_SHA_SHOWN: Final = 12
_ABBREVIATED_MIN: Final = 7
_Result = TypeVar("_Result")


def run_on_stack(
    stack: str,
    region: str | None,
    work: Callable[[Publications, AwsAccount], Awaitable[_Result]],
) -> _Result:
    """Call `work` with a stack's publications; turn expected errors into ClickException."""

    async def call(account: AwsAccount) -> _Result:
        settings = account.settings(account.stack(stack))
        async with aclosing(wire_stores(settings, SystemClock())) as stores:
            return await work(stores.publications, account)

    try:
        return asyncio.run(call(AwsAccount(region)))
    except (AccountError, GatewayError, NotPermissible) as error:
        raise click.ClickException(str(error)) from error


def check_length(sha: str) -> None:
    """Raise UsageError for a SHA with too few characters."""
    if len(sha) < _ABBREVIATED_MIN:
        raise click.UsageError(f"{sha!r}: give at least {_ABBREVIATED_MIN} characters of the sha.")


def short_sha(sha: str) -> str:
    """Return the first characters of a SHA, for printing."""
    return sha[:_SHA_SHOWN]
