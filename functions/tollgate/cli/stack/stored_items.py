"""The version of a stack's stored items, which an older release must not change."""

import asyncio
from contextlib import aclosing

from tollgate.cli.stack.aws_account import AccountError, AwsAccount
from tollgate.core.clock import SystemClock
from tollgate.core.errors import LedgerError, NewerItems
from tollgate.settings import Settings
from tollgate.wiring.item_versions import check_store
from tollgate.wiring.stores import wire_stores


def check_stored_items(account: AwsAccount, stack: str) -> None:
    """Raise NewerItems if a newer release has written a stack's tables.

    Nothing is raised without a stack, or without permission to read its table.
    """
    try:
        settings = account.settings(account.stack(stack))
    except AccountError:
        return
    if settings.dynamodb_endpoint_url is None:
        settings = settings.model_copy(
            update={"dynamodb_endpoint_url": account.endpoint_url("dynamodb")}
        )
    try:
        asyncio.run(_check(settings))
    except NewerItems:
        raise
    except LedgerError:
        return


async def _check(settings: Settings) -> None:
    async with aclosing(wire_stores(settings, SystemClock())) as stores:
        await check_store(stores)
