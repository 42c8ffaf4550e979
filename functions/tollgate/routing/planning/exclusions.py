"""What keeps a model or an endpoint from serving a request, and what the caller is told then.

The checks come in one order. When nothing is left, the caller hears of the last check at which
something was still standing: it is what would have to change.
"""

from collections.abc import Mapping
from decimal import Decimal
from enum import IntEnum, auto
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from tollgate.core.errors import AccessError, ErrorCode, GatewayError, RequestError
from tollgate.core.money import nano_usd, usd_text
from tollgate.core.request import Capability, PriceCeiling
from tollgate.routing.planning.plan import Attempt
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.price import Price
from tollgate.routing.schema import KeyTierSection, ModelSection

_SHOWN_CHARACTERS_MAX: Final = 128
_REASONS_CHARACTERS_MAX: Final = 500
_NOT_SUPPORTED: Final[Mapping[str, ErrorCode]] = {
    "audio": ErrorCode.AUDIO_NOT_SUPPORTED,
    "image": ErrorCode.IMAGE_NOT_SUPPORTED,
    "pdf": ErrorCode.FILE_NOT_SUPPORTED,
}


class Check(IntEnum):
    """The checks in their order."""

    ALLOWED = auto()
    CAPABLE = auto()
    MODALITY = auto()
    CONTEXT = auto()
    PREFERRED = auto()
    PARAMETERS = auto()
    AFFORDABLE = auto()
    FALLBACK = auto()


class Exclusion(Struct, frozen=True):
    """Why something is out, in words, and the check that said so."""

    check: Check
    reason: str


def exclude_model(
    slug: str,
    model: ModelSection,
    demand: PlanningRequest,
    *,
    tier: KeyTierSection | None,
    asked: str,
) -> Exclusion | None:
    """What keeps a model from serving; `asked` is the name that led to it."""
    for globs, whose in ((demand.key_models, "key"), (tier.models if tier else None, "tier")):
        if globs is not None and not (_matches(asked, globs) or _matches(slug, globs)):
            return Exclusion(Check.ALLOWED, f"is not for this {whose}")
    if missing := demand.capabilities - _abilities(model):
        return Exclusion(Check.CAPABLE, f"does not support {', '.join(sorted(missing))}")
    if not demand.modalities <= frozenset(model.input):
        strange = demand.modalities.difference(model.input)
        return Exclusion(Check.MODALITY, f"does not take {' or '.join(sorted(strange))} input")
    if demand.input_tokens_min > model.context:
        return Exclusion(Check.CONTEXT, f"takes {model.context} tokens")
    return None


def _abilities(model: ModelSection) -> frozenset[Capability]:
    """What a model can do, by itself or with our help: tools are enough for structured output."""
    supports = frozenset(model.supports)
    return supports | {"structured_output"} if "tools" in supports else supports


def exclude_endpoint(attempt: Attempt, price: Price, demand: PlanningRequest) -> Exclusion | None:
    """What keeps an endpoint from serving by the caller's own wishes."""
    wishes = demand.preferences
    provider = attempt.target.provider
    if wishes.only and provider not in wishes.only:
        return Exclusion(Check.PREFERRED, "is not in provider.only")
    if provider in wishes.ignore:
        return Exclusion(Check.PREFERRED, "is in provider.ignore")
    if not wishes.fallbacks and wishes.order and provider not in wishes.order:
        return Exclusion(Check.PREFERRED, "is not in provider.order")
    if wishes.require_parameters:
        refused = demand.parameters.intersection(attempt.target.dialect.refuses)
        if refused:
            return Exclusion(Check.PARAMETERS, f"does not take {', '.join(sorted(refused))}")
    if wishes.price_max is not None:
        dearer = _dearer(price, wishes.price_max)
        if dearer:
            return Exclusion(Check.AFFORDABLE, f"costs {dearer}, over provider.max_price")
    return None


def exclude_by_tier(cost_max_nano_usd: int, tier: KeyTierSection | None) -> Exclusion | None:
    """What a key's tier says of a request's cost."""
    ceiling = tier.max_cost_usd_per_request if tier else None
    if ceiling is not None and cost_max_nano_usd > nano_usd(ceiling):
        cost = usd_text(cost_max_nano_usd)
        return Exclusion(Check.AFFORDABLE, f"may cost ${cost}, the tier's limit is ${ceiling:f}")
    return None


def refusal(name: str, obstacles: Mapping[str, Exclusion], demand: PlanningRequest) -> GatewayError:
    """What a caller is told when obstacles, by what they are in the way of, leave nothing."""
    last = max(obstacle.check for obstacle in obstacles.values())
    reached = {who: found.reason for who, found in obstacles.items() if found.check is last}
    who, reason = next(iter(reached.items()))
    reasons = "; ".join(f"{each} {why}" for each, why in reached.items())[:_REASONS_CHARACTERS_MAX]
    said = shown(name)
    match last:
        case Check.ALLOWED:
            return AccessError(
                ErrorCode.MODEL_NOT_ALLOWED, f"This key may not use {said}.", param="model"
            )
        case Check.CAPABLE:
            return RequestError(ErrorCode.INVALID_REQUEST, f"{said} {reason}.", param="model")
        case Check.MODALITY:
            missing = sorted(kind for kind in _NOT_SUPPORTED if kind in reason)
            code = _NOT_SUPPORTED[missing[0]] if missing else ErrorCode.INVALID_REQUEST
            return RequestError(code, f"{said} {reason}.", param="messages")
        case Check.CONTEXT:
            return RequestError(
                ErrorCode.CONTEXT_LENGTH_EXCEEDED,
                f"The request has {demand.input_tokens_min} tokens or more by its size: {reasons}.",
                param="messages",
            )
        case Check.AFFORDABLE if "tier" in reason:
            return AccessError(
                ErrorCode.KEY_LIMIT_EXCEEDED,
                f"{who} {reason}; ask for fewer tokens with max_tokens.",
                param="max_tokens",
            )
        case _:
            return RequestError(
                ErrorCode.INVALID_REQUEST,
                f"No provider of {said} fits the request: {reasons}.",
                param="provider",
            )


def shown(name: str) -> str:
    """A caller's word, short enough to repeat."""
    if len(name) > _SHOWN_CHARACTERS_MAX:
        return f"{name[:_SHOWN_CHARACTERS_MAX]}..."
    return name


def _dearer(price: Price, ceiling: PriceCeiling) -> str | None:
    """The rate that is over what a caller will pay."""
    pairs: tuple[tuple[str, Decimal | None, Decimal | None], ...] = (
        ("input", price.input, ceiling.input),
        ("output", price.output, ceiling.output),
        ("request", price.request, ceiling.request),
    )
    for name, rate, most in pairs:
        if rate is not None and most is not None and rate > most:
            return f"${rate:f} for {name}"
    return None


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
