"""Ceilings that a request states in its headers."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from tollgate.core.errors import invalid_request
from tollgate.core.limits import MAX_COST_HEADER
from tollgate.core.money.amounts import nano_usd

_AMOUNT: Final = re.compile(r"[0-9]{1,7}(\.[0-9]{1,9})?", re.ASCII)


def find_cost_max(headers: Mapping[str, str]) -> int | None:
    """Return the highest cost that a request accepts, in nano-dollars; None without the header.

    Raises RequestError unless the header is an amount in dollars above 0.
    """
    stated = headers.get(MAX_COST_HEADER)
    if stated is None:
        return None
    amount = nano_usd(Decimal(stated)) if _AMOUNT.fullmatch(stated) else 0
    if amount == 0:
        raise invalid_request(
            f"{MAX_COST_HEADER} must be an amount in dollars above 0, such as 0.25.",
            MAX_COST_HEADER,
        )
    return amount
