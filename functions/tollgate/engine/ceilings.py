"""Limits that a request states in its headers: its maximum cost, and the limits of its session."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.errors import invalid_request
from tollgate.core.limits import (
    MAX_COST_HEADER,
    SESSION_BUDGET_HEADER,
    SESSION_REQUESTS_HEADER,
    CostCeiling,
    SessionLimit,
)
from tollgate.core.money.amounts import nano_usd
from tollgate.core.principal import Principal
from tollgate.core.work.base import Work
from tollgate.routing.planning.planning_request import draw_key_hash

# The header that OpenRouter's clients send instead of the field `session_id`.
# https://openrouter.ai/docs/guides/features/broadcast/overview (2026-11-27)
_SESSION: Final = "x-session-id"
_SESSION_LENGTH_MAX: Final = 256
_AMOUNT: Final = re.compile(r"[0-9]{1,7}(\.[0-9]{1,9})?", re.ASCII)
_COUNT: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


class StatedLimits(Struct, frozen=True, kw_only=True):
    """The limits of one request."""

    ceilings: tuple[CostCeiling, ...]
    """The maximum costs that the request states and that the budget of its session allows."""
    session: SessionLimit | None
    """The limit of the session; None if neither the key nor the request limits sessions."""


def in_session(work: Work, headers: Mapping[str, str]) -> Work:
    """Return a request with the session id of its headers, unless it states one."""
    stated = headers.get(_SESSION, "")[:_SESSION_LENGTH_MAX]
    if not stated or work.preferences.session_id is not None:
        return work
    return replace(work, preferences=replace(work.preferences, session_id=stated))


def find_limits(headers: Mapping[str, str], principal: Principal, work: Work) -> StatedLimits:
    """Return the limits of a request; its headers may only lower the limits of its key.

    Raises RequestError for a malformed header, and for a request without a session id where
    sessions are limited.
    """
    ceilings: list[CostCeiling] = []
    stated = _read_usd(headers, MAX_COST_HEADER)
    if stated is not None:
        ceilings.append(CostCeiling(level="request", id=MAX_COST_HEADER, nano_usd=stated))
    budget = _lower(principal.session_nano_usd, _read_usd(headers, SESSION_BUDGET_HEADER))
    requests = _lower(principal.session_requests_max, _read_count(headers, SESSION_REQUESTS_HEADER))
    if budget is None and requests is None:
        return StatedLimits(ceilings=tuple(ceilings), session=None)
    if work.preferences.session_id is None:
        raise invalid_request(
            f"Sessions are limited, so this request needs `session_id` or the header {_SESSION}.",
            "session_id",
        )
    session = SessionLimit(
        id=draw_key_hash(work.preferences.session_id), nano_usd=budget, requests=requests
    )
    if budget is not None:
        ceilings.append(CostCeiling(level="session", id=session.id, nano_usd=budget))
    return StatedLimits(ceilings=tuple(ceilings), session=session)


def _lower(of_key: int | None, stated: int | None) -> int | None:
    return min((limit for limit in (of_key, stated) if limit is not None), default=None)


def _read_usd(headers: Mapping[str, str], name: str) -> int | None:
    stated = headers.get(name)
    if stated is None:
        return None
    amount = nano_usd(Decimal(stated)) if _AMOUNT.fullmatch(stated) else 0
    if amount == 0:
        raise invalid_request(f"{name} must be an amount in dollars above 0, such as 0.25.", name)
    return amount


def _read_count(headers: Mapping[str, str], name: str) -> int | None:
    stated = headers.get(name)
    if stated is None:
        return None
    count = int(stated) if _COUNT.fullmatch(stated) else 0
    if count == 0:
        raise invalid_request(f"{name} must be a whole number above 0.", name)
    return count
