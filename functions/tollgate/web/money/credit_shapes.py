"""The JSON form of a workspace's balance, for the credit and workspace routes."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from tollgate.core.money.amounts import usd
from tollgate.stores.ports.credit import Balance
from tollgate.stores.rules.credit_lots import Lot
from tollgate.web.shapes import Usd, moment

WorkspaceId = Annotated[
    str, Field(max_length=63, pattern=r"^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$", description="a slug")
]


class ExpiringObject(BaseModel):
    """The unspent part of a grant that expires."""

    id: str = Field(description="id of the grant")
    amount: Usd
    left: Usd = Field(description="amount that is not spent, including held credit")
    expires_at: datetime

    @classmethod
    def of(cls, lot: Lot) -> "ExpiringObject":
        """Build the object from a lot."""
        return cls(
            id=lot.id,
            amount=usd(lot.granted_nano_usd),
            left=usd(lot.left_nano_usd),
            expires_at=moment(lot.expires_s),
        )


class CreditsObject(BaseModel):
    """A workspace's credit in USD: total_credits = available + held + total_usage."""

    total_credits: Usd = Field(description="including the credit limit")
    total_usage: Usd
    available: Usd
    held: Usd
    credit_limit: Usd = Field(description="lent by the operator; 0 if credit is prepaid")
    owed: Usd = Field(description="used part of the credit limit")
    expiring: list[ExpiringObject] = Field(description="expiring grants, in the order of spending")

    @classmethod
    def of(cls, balance: Balance) -> "CreditsObject":
        """Build the object from a stored balance."""
        return cls(
            total_credits=usd(balance.granted_nano_usd),
            total_usage=usd(balance.spent_nano_usd),
            available=usd(balance.available_nano_usd),
            held=usd(balance.held_nano_usd),
            credit_limit=usd(balance.credit_limit_nano_usd),
            owed=usd(balance.owed_nano_usd),
            expiring=[ExpiringObject.of(lot) for lot in balance.lots],
        )


class CreditsReply(BaseModel):
    """A workspace's credit."""

    data: CreditsObject
