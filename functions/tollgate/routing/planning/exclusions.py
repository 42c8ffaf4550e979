"""Excludes models and endpoints that cannot serve a request, and builds the error if none can.

Checks run in a fixed order. If all candidates are excluded, the error comes from the last check
that any candidate reached, because that candidate came closest to serving the request.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum, auto
from fnmatch import fnmatchcase
from typing import Final, get_args

from msgspec import Struct

from tollgate.core.errors import AccessError, ErrorCode, GatewayError, Overlength, RequestError
from tollgate.core.limits import MAX_COST_HEADER
from tollgate.core.principal import Principal
from tollgate.core.request import Capability, PriceCeiling, SoundFormat
from tollgate.core.work.kinds import WORK_KINDS
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.plan import Attempt
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.price import Price
from tollgate.routing.schema import KeyTierSection, ModelSection, VectorsSection

_SHOWN_CHARACTERS_MAX: Final = 128
_REASONS_CHARACTERS_MAX: Final = 500
_NOT_SUPPORTED: Final[Mapping[str, ErrorCode]] = {
    "audio": ErrorCode.AUDIO_NOT_SUPPORTED,
    "image": ErrorCode.IMAGE_NOT_SUPPORTED,
    "pdf": ErrorCode.FILE_NOT_SUPPORTED,
}
# Request fields for needs, where the field and the need have different names.
_FIELDS: Final[Mapping[str, str]] = {
    "conversation": "messages",
    "token_ids": "input",
    "image_output": "modalities",
    **dict.fromkeys(get_args(SoundFormat), "response_format"),
    "segments": "response_format",
    "speakers": "response_format",
    "words": "timestamp_granularities",
    "translation": "model",
}
# Descriptions of needs that are not request fields.
_NEEDS_IN_WORDS: Final[Mapping[str, str]] = {
    "segments": "response_format of srt, vtt or verbose_json",
    "speakers": "response_format of diarized_json",
}


class Check(IntEnum):
    """A check that may exclude a candidate; checks run in this order."""

    ALLOWED = auto()
    KIND = auto()
    CAPABLE = auto()
    MODALITY = auto()
    DIMENSIONS = auto()
    CONTEXT = auto()
    RETIRED = auto()
    COMPACTED = auto()
    FORMAT = auto()
    CHARACTERS = auto()
    DATA = auto()
    PREFERRED = auto()
    PARAMETERS = auto()
    AFFORDABLE = auto()
    FALLBACK = auto()


class AllowedModels(Struct, frozen=True):
    """Globs of the models allowed by a key and by the levels above it."""

    by_key: tuple[str, ...] | None = None
    """Globs of the key; None allows all models."""
    by_levels: tuple[tuple[str, ...], ...] = ()
    """Globs of each level above the key."""


class Cause(Enum):
    """The cause of an exclusion: the check that found it, and a template for the message."""

    KEY_MODELS = Check.ALLOWED, "is not for this key"
    LEVEL_MODELS = Check.ALLOWED, "is not for the member or team of this key"
    TIER_MODELS = Check.ALLOWED, "is not for this tier"
    KIND = Check.KIND, "is of kind {} (POST {})"
    VECTOR_SPACE = Check.KIND, "makes vectors in another space"
    CAPABILITIES = Check.CAPABLE, "does not support {}"
    MODALITIES = Check.MODALITY, "does not take {} input"
    DIMENSIONS = Check.DIMENSIONS, "makes vectors with {} dimensions"
    CONTEXT = Check.CONTEXT, "takes {} tokens"
    RETIRED = Check.RETIRED, "retired on {}{}"
    COMPACTED = Check.COMPACTED, "cannot read the conversation, which {} compacted"
    FORMAT = Check.FORMAT, "does not take {}"
    SOUND = Check.FORMAT, "does not make {}"
    CHARACTERS = Check.CHARACTERS, "takes {} characters"
    DATA = Check.DATA, "is not known {}, as the prompt policy of the {} demands"
    NOT_IN_ONLY = Check.PREFERRED, "is not in provider.only"
    IN_IGNORE = Check.PREFERRED, "is in provider.ignore"
    NOT_IN_ORDER = Check.PREFERRED, "is not in provider.order"
    PARAMETERS = Check.PARAMETERS, "does not take {}"
    PRICE = Check.AFFORDABLE, "costs ${} for {}, over provider.max_price"
    TIER_COST = Check.AFFORDABLE, "may cost ${}, the tier's limit is ${}"
    KEY_COST = Check.AFFORDABLE, "may cost ${}, the key's max_cost is ${}"
    SESSION_COST = Check.AFFORDABLE, "may cost ${}, the session's budget is ${}"
    REQUEST_COST = Check.AFFORDABLE, f"may cost ${{}}, {MAX_COST_HEADER} is ${{}}"
    QUOTA = Check.AFFORDABLE, "has used up the quota {}"
    FALLBACKS_OFF = Check.FALLBACK, "fallbacks are off"

    def __init__(self, check: Check, words: str) -> None:
        self.check = check
        self.words = words


# The subject of the error message: the owner of the limit that allows too few models.
_WHO_MAY_NOT: Final = {
    Cause.KEY_MODELS: "This key",
    Cause.LEVEL_MODELS: "The member or team of this key",
    Cause.TIER_MODELS: "The tier of this key",
}


class Exclusion(Struct, frozen=True):
    """The exclusion of a model or endpoint, with the values for the error message.

    `missing` has the missing capabilities, modalities, needs or parameters, sorted. `amounts` has
    the other values for the message template.
    """

    cause: Cause
    missing: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()

    @property
    def check(self) -> Check:
        """Check that found the cause."""
        return self.cause.check

    @property
    def reason(self) -> str:
        """A message for people to read; code must use `cause` instead."""
        separator = " or " if self.cause is Cause.MODALITIES else ", "
        values = (separator.join(self.missing),) if self.missing else self.amounts
        return self.cause.words.format(*values)


def exclude_model(
    slug: str,
    model: ModelSection,
    request: PlanningRequest,
    *,
    tier: KeyTierSection | None,
    name: str,
    is_derived: bool = False,
    reads: bool = False,
) -> Exclusion | None:
    """Return the first reason why a model cannot serve the request; None if it can.

    `name` is the requested name that led to the model; globs may match either the name or the slug.
    `is_derived` is True unless the name is a slug, alias or route. `reads` is True if the gateway
    reads documents.
    """
    allowed = AllowedModels(request.key_models, request.level_models)
    cause = find_forbidden(slug, name, is_derived=is_derived, allowed=allowed, tier=tier)
    if cause is not None:
        return Exclusion(cause)
    if model.kind != request.kind:
        return Exclusion(Cause.KIND, amounts=(model.kind, WORK_KINDS[model.kind].route))
    if lacking := request.capabilities - _abilities(model):
        return _lacks(Cause.CAPABILITIES, lacking)
    accepted = frozenset(model.input)
    if unsupported := request.modalities - (accepted | {"pdf"} if reads else accepted):
        return _lacks(Cause.MODALITIES, unsupported)
    vectors, size = model.vectors, request.dimensions
    if vectors is not None and size is not None and not vectors.can_have(size):
        return Exclusion(Cause.DIMENSIONS, amounts=(_sizes(vectors),))
    if _tokens_min(request, model) > model.context:
        return Exclusion(Cause.CONTEXT, amounts=(str(model.context),))
    return None


def _tokens_min(request: PlanningRequest, model: ModelSection) -> int:
    """Return the minimum number of tokens in a prompt, including documents sent as text."""
    if request.documents is None or not (request.documents.always or "pdf" not in model.input):
        return request.input_tokens_min
    return max(request.input_tokens_min, request.documents.tokens_min)


def find_forbidden(
    slug: str,
    name: str,
    *,
    is_derived: bool,
    allowed: AllowedModels,
    tier: KeyTierSection | None,
) -> Cause | None:
    """Return the cause if a key may not use a model under a requested name; otherwise None.

    Wildcards do not match derived names, so a new endpoint never extends a key's rights.
    """
    for globs, cause in (
        (allowed.by_key, Cause.KEY_MODELS),
        *((globs, Cause.LEVEL_MODELS) for globs in allowed.by_levels),
        (tier.models if tier else None, Cause.TIER_MODELS),
    ):
        if globs is None or _match_any(globs, slug):
            continue
        if not (name in globs if is_derived else _match_any(globs, name)):
            return cause
    return None


def find_tier(catalog: Catalog, name: str | None) -> KeyTierSection | None:
    """Return a key's tier; raise AccessError if tiers are defined but this one is not."""
    if name is None:
        return None
    tier = catalog.key_tiers.get(name)
    if tier is None and catalog.key_tiers:
        raise AccessError(
            ErrorCode.MODEL_NOT_ALLOWED, f"The key's tier {shorten(name)} is not defined."
        )
    return tier


def list_usable_models(catalog: Catalog, name: str, principal: Principal | None) -> Sequence[str]:
    """Return the models behind a name that a caller may use, or all of them if there is
    no caller.
    """
    name = catalog.plain_name(name)
    models = _list_models_behind(catalog, name)
    if principal is None:
        return models
    try:
        tier = find_tier(catalog, principal.tier)
    except AccessError:
        return ()
    allowed = AllowedModels(principal.models, principal.level_models)
    is_derived = not catalog.states(name)
    return tuple(
        slug
        for slug in models
        if find_forbidden(slug, name, is_derived=is_derived, allowed=allowed, tier=tier) is None
    )


def _list_models_behind(catalog: Catalog, name: str) -> tuple[str, ...]:
    """Return the models that a name may lead to, in order; empty for an unknown name."""
    target = catalog.target(name)
    if target in catalog.models:
        return (target,)
    route = catalog.routes.get(target)
    rules = route.all_rules if route is not None else ()
    return tuple(dict.fromkeys(slug for rule in rules for step in rule.steps for slug in step))


def _sizes(vectors: VectorsSection) -> str:
    if vectors.shorter == "any":
        return f"1 to {vectors.dimensions}"
    return " or ".join(map(str, sorted({vectors.dimensions, *vectors.shorter})))


def _lacks(cause: Cause, missing: Iterable[str]) -> Exclusion:
    return Exclusion(cause, missing=tuple(sorted(missing)))


def _abilities(model: ModelSection) -> frozenset[Capability]:
    """Return a model's capabilities; codecs emulate structured output with tools."""
    supports = frozenset(model.supports)
    return supports | {"structured_output"} if "tools" in supports else supports


def exclude_endpoint(attempt: Attempt, price: Price, request: PlanningRequest) -> Exclusion | None:
    """Return the first reason why an endpoint cannot serve the request; None if it can."""
    if request.only_provider not in (None, attempt.target.provider):
        return Exclusion(Cause.COMPACTED, amounts=(str(request.only_provider),))
    if unsupported := request.needs - attempt.target.takes:
        return _lacks(Cause.SOUND if request.kind == "speech" else Cause.FORMAT, unsupported)
    characters_max = attempt.target.dialect.speech.characters_max
    if request.kind == "speech" and _characters(request) > characters_max:
        return Exclusion(Cause.CHARACTERS, amounts=(str(characters_max),))
    preferences = request.preferences
    provider, place = attempt.target.provider, attempt.place
    for policy in filter(None, (*request.prompt_policies, preferences.prompt_policy)):
        if unknown := policy.refuse(attempt.prompt_use, place.region, place.countries):
            return Exclusion(Cause.DATA, amounts=(unknown, policy.owner))
    if preferences.only and provider not in preferences.only:
        return Exclusion(Cause.NOT_IN_ONLY)
    if provider in preferences.ignore:
        return Exclusion(Cause.IN_IGNORE)
    if not preferences.fallbacks and preferences.order and provider not in preferences.order:
        return Exclusion(Cause.NOT_IN_ORDER)
    if preferences.require_parameters:
        refused = request.parameters.intersection(attempt.target.dialect.refuses)
        if refused:
            return _lacks(Cause.PARAMETERS, refused)
    if preferences.price_max is not None:
        return _exclude_by_price(price, preferences.price_max)
    return None


def _characters(request: PlanningRequest) -> int:
    return request.units.characters if request.units else 0


def exclude_retired(attempt: Attempt, now_s: float) -> Exclusion | None:
    """Return the exclusion if an endpoint has retired; it names the model's successor."""
    lifecycle = attempt.lifecycle
    if now_s < lifecycle.retires_s:
        return None
    day = datetime.fromtimestamp(lifecycle.retires_s, UTC).date()
    instead = f"; use {lifecycle.successor} instead" if lifecycle.successor else ""
    return Exclusion(Cause.RETIRED, amounts=(day.isoformat(), instead))


def refusal(
    name: str, exclusions: Mapping[str, Exclusion], request: PlanningRequest
) -> GatewayError:
    """Return the error for a request whose candidates are all excluded. The exclusions are in the
    order of the candidates.
    """
    last = max(exclusion.check for exclusion in exclusions.values())
    reached = {subject: found for subject, found in exclusions.items() if found.check is last}
    subject, first = next(iter(reached.items()))
    reasons = "; ".join(f"{each} {found.reason}" for each, found in reached.items())
    reasons = reasons[:_REASONS_CHARACTERS_MAX]
    model, kind = shorten(name), WORK_KINDS[request.kind]
    code, param, message = ErrorCode.INVALID_REQUEST, "model", f"{model} {first.reason}."
    match last:
        case Check.ALLOWED:
            message = f"{_WHO_MAY_NOT[first.cause]} may not use {model}."
            return AccessError(ErrorCode.MODEL_NOT_ALLOWED, message, param=param)
        case Check.KIND | Check.CAPABLE:
            pass
        case Check.DIMENSIONS:
            param = "dimensions"
        case Check.MODALITY:
            codes = (_NOT_SUPPORTED[name] for name in first.missing if name in _NOT_SUPPORTED)
            code, param = next(codes, code), kind.field_with_media
        case Check.CONTEXT:
            documents_min = request.documents.tokens_min if request.documents else 0
            certain = max(request.input_tokens_min, documents_min)
            message = f"The request has at least {certain} tokens by its size: {reasons}."
            code = ErrorCode.CONTEXT_LENGTH_EXCEEDED
            too_long = RequestError(code, message, param=kind.field_of_input)
            tokens_max = max(int(found.amounts[0]) for found in reached.values())
            too_long.overlength = Overlength(tokens=certain, tokens_max=tokens_max)
            return too_long
        case Check.RETIRED:
            code = ErrorCode.MODEL_NOT_FOUND
        case Check.COMPACTED:
            message = f"{message[:-1]}; use a model of that provider, or start again."
        case Check.FORMAT:
            need = first.missing[0]
            lacks = first.cause.words.format(_NEEDS_IN_WORDS.get(need, need))
            param, message = _FIELDS.get(need, need), f"{model} {lacks}: {reasons}."
        case Check.CHARACTERS:
            param = kind.field_of_input
            message = f"The text has {_characters(request)} characters: {reasons}."
        case Check.DATA if first.amounts[1] != "request":
            message = f"No endpoint of {model} may get this prompt: {reasons}."
            return AccessError(ErrorCode.MODEL_NOT_ALLOWED, message, param=param)
        case Check.AFFORDABLE if first.cause is not Cause.PRICE:
            message = f"{subject} {first.reason}; ask for fewer tokens with max_tokens."
            too_dear = AccessError(ErrorCode.KEY_LIMIT_EXCEEDED, message, param="max_tokens")
            if first.cause is not Cause.TIER_COST and request.ceiling is not None:
                too_dear.limit = request.ceiling.reached
            return too_dear
        case _:
            param = "provider"
            message = f"No provider of {model} fits the request: {reasons}."
    return RequestError(code, message, param=param)


def shorten(name: str) -> str:
    """Return a requested name, cut to the maximum length for error messages."""
    if len(name) > _SHOWN_CHARACTERS_MAX:
        return f"{name[:_SHOWN_CHARACTERS_MAX]}..."
    return name


def _exclude_by_price(price: Price, ceiling: PriceCeiling) -> Exclusion | None:
    pairs: tuple[tuple[str, Decimal | None, Decimal | None], ...] = (
        ("input", price.input, ceiling.input),
        ("output", price.output, ceiling.output),
        ("request", price.request, ceiling.request),
    )
    for name, rate, limit in pairs:
        if rate is not None and limit is not None and rate > limit:
            return Exclusion(Cause.PRICE, amounts=(f"{rate:f}", name))
    return None


def _match_any(globs: tuple[str, ...], name: str) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
