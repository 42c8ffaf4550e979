"""Refusals for workspaces with too little credit."""

from typing import Final

from tollgate.core.errors import ErrorCode, LedgerError
from tollgate.core.money.amounts import usd_text

_ADD_CREDIT: Final = (
    "Add credit with `tollgate credits add`, book a payment with `tollgate credits pay`, or ask "
    "the operator of this gateway."
)


def insufficient_credits(available_nano_usd: int, amount_nano_usd: int) -> LedgerError:
    """Return the refusal for a workspace with too little credit on all shards."""
    if available_nano_usd < 1:
        return no_credit()
    return LedgerError(
        ErrorCode.INSUFFICIENT_CREDITS,
        f"This request may cost up to ${usd_text(amount_nano_usd)} and the workspace has "
        f"${usd_text(available_nano_usd)} available. {_ADD_CREDIT}",
    )


def no_credit() -> LedgerError:
    """Return the refusal for a workspace without available credit."""
    refusal = LedgerError(
        ErrorCode.INSUFFICIENT_CREDITS, f"The workspace has no credit available. {_ADD_CREDIT}"
    )
    refusal.is_general = True
    return refusal
