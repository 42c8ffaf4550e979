"""The balance of a workspace as the credit and workspace routes show it."""

from typing import Annotated

from pydantic import BaseModel, Field

from tollgate.core.money import usd
from tollgate.stores.administration import Balance
from tollgate.web.shapes import Usd

WorkspaceId = Annotated[
    str,
    Field(max_length=63, pattern=r"^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$", description="a slug"),
]


class CreditsObject(BaseModel):
    """A workspace's money in USD: total_credits = available + held + total_usage."""

    total_credits: Usd
    total_usage: Usd
    available: Usd
    held: Usd

    @classmethod
    def of(cls, balance: Balance) -> "CreditsObject":
        """Build the object from a stored balance."""
        return cls(
            total_credits=usd(balance.granted_nano_usd),
            total_usage=usd(balance.spent_nano_usd),
            available=usd(balance.available_nano_usd),
            held=usd(balance.held_nano_usd),
        )


class CreditsReply(BaseModel):
    """A workspace's money."""

    data: CreditsObject
