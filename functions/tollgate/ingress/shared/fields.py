"""Parses the fields that several formats share, and names the fields that have no effect."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from inspect import get_annotations
from typing import Any, Final

from msgspec import Struct

from tollgate.core.json_value import JsonObject
from tollgate.core.prompt_policy import PromptPolicy
from tollgate.core.request import (
    PRESET_PREFIX,
    PriceCeiling,
    RoutingPreferences,
    Sampling,
)
from tollgate.core.unknown_fields import refers_to_stored
from tollgate.ingress.shared.media import field_refusal
from tollgate.ingress.shared.wire.request_fields import (
    GuidedDecoding,
    PresetFields,
    ProviderPreferences,
    RoutingFields,
    SamplingFields,
)
from tollgate.ingress.shared.wire.request_model import Wire

_SESSION_LENGTH_MAX: Final = 256
_ANY_USE: Final = PromptPolicy()
_GUIDED: Final = tuple(get_annotations(GuidedDecoding))


def parse_sampling(
    fields: SamplingFields, *, logprobs: bool | None, top_logprobs: int | None
) -> Sampling:
    """Return the sampling parameters. Only the fields for log probabilities have different names in
    different formats.
    """
    stop = fields.stop or ()
    params = {
        name: value
        for name in Sampling.__struct_fields__
        if (value := getattr(fields, name, None)) is not None
    }
    params["stop"] = (stop,) if isinstance(stop, str) else tuple(stop)
    params["logprobs"], params["top_logprobs"] = logprobs, top_logprobs
    return Sampling(**params)


def parse_guided(fields: GuidedDecoding) -> JsonObject:
    """Return, by name, the non-null fields that only servers like vLLM accept."""
    values: dict[str, Any] = {name: getattr(fields, name) for name in _GUIDED}
    return {name: value for name, value in values.items() if value is not None}


class NamedPreset(Struct, frozen=True, kw_only=True):
    """The preset that a request names, if any, and the model next to it."""

    model: str
    """The requested model; `preset/` and the preset's slug if the preset states the model."""
    slug: str | None
    variables: Mapping[str, str | int]


def parse_preset(fields: PresetFields) -> NamedPreset:
    """Return the preset of a request; raise RequestError for two presets, or variables of none.

    `model` names presets as with OpenRouter: https://openrouter.ai/docs/guides/features/presets
    (2026-11-27). `preset/SLUG` is for clients that change the name otherwise.
    """
    model, _, slug = fields.model.partition(f"@{PRESET_PREFIX}")
    if fields.model.startswith(PRESET_PREFIX):
        model, slug = "", fields.model.removeprefix(PRESET_PREFIX)
    if not slug:
        model, slug = fields.model, fields.preset or ""
    elif fields.preset not in (None, slug):
        raise field_refusal("preset", "must not differ from the preset that `model` names")
    variables = fields.preset_variables or {}
    if variables and not slug:
        raise field_refusal("preset_variables", "must not be stated without a preset")
    return NamedPreset(
        model=model or f"{PRESET_PREFIX}{slug}", slug=slug or None, variables=variables
    )


def parse_preferences(fields: RoutingFields, *, session: str = "") -> RoutingPreferences:
    """Return the routing preferences; `session` is the session id if the request has none."""
    provider = fields.provider or ProviderPreferences()
    return RoutingPreferences(
        models=tuple(fields.models or ()),
        order=_slugs(provider.order),
        only=_slugs(provider.only),
        ignore=_slugs(provider.ignore),
        fallbacks=provider.allow_fallbacks is not False,
        require_parameters=bool(provider.require_parameters),
        sort=provider.sort,
        price_max=_ceiling(provider),
        session_id=fields.session_id or session[:_SESSION_LENGTH_MAX] or None,
        prompt_policy=_prompt_policy(provider),
    )


def _prompt_policy(provider: ProviderPreferences) -> PromptPolicy | None:
    policy = PromptPolicy(
        regions=tuple(provider.regions or ()),
        no_training=provider.data_collection == "deny",
        no_retention=bool(provider.zdr),
    )
    return None if policy == _ANY_USE else policy


def unknown_fields(fields: RoutingFields) -> Iterator[str]:
    """Yield the names of unknown fields in the request and in its preferences."""
    yield from extra_fields(fields)
    yield from unknown_preferences(fields)


def unknown_preferences(fields: RoutingFields) -> Iterator[str]:
    """Yield the names of unknown fields in the preferences."""
    if fields.provider is None:
        return
    yield from extra_fields(fields.provider, "provider.")
    if fields.provider.max_price is not None:
        for name in fields.provider.max_price.model_extra or {}:
            yield f"provider.max_price.{name}"


def _slugs(names: list[str] | None) -> tuple[str, ...]:
    return tuple(name.lower() for name in names or ())


def _ceiling(provider: ProviderPreferences) -> PriceCeiling | None:
    prices = provider.max_price
    if prices is None:
        return None
    return PriceCeiling(input=prices.prompt, output=prices.completion, request=prices.request)


# Ignored fields are reported in a header, so the number and length of their names are limited.
_IGNORED_MAX: Final = 32
_IGNORED_LENGTH_MAX: Final = 64
_UNPRINTABLE: Final = re.compile(r"[^\w.:\[\]-]", re.ASCII)


def extra_fields(model: Wire | None, path: str = "") -> Iterator[str]:
    """Yield the names of unknown fields that are not null, each preceded by `path`."""
    extra = model.model_extra if model else None
    for name, value in (extra or {}).items():
        if value is not None:
            yield path + name


class UnknownNames(Struct, frozen=True, kw_only=True):
    """The names of a request's unknown fields, as shown to the caller."""

    forwarded: tuple[str, ...]
    """The names of fields that providers of the client's own format get."""
    kept: tuple[str, ...]
    """The names of fields that no provider gets."""


def name_unknown(
    carriers: Iterable[tuple[Wire | None, str]], held: Collection[str]
) -> UnknownNames:
    """Return the names of the unknown fields of models, each model with its path.

    `held` are the fields of the body that no provider gets.
    """
    forwarded: list[str] = []
    kept: list[str] = []
    for model, path in carriers:
        for name, value in ((model.model_extra if model else None) or {}).items():
            if value is None:
                continue
            is_kept = refers_to_stored(name, value) or (not path and name in held)
            (kept if is_kept else forwarded).append(path + name)
    return UnknownNames(forwarded=printable_names(forwarded), kept=tuple(kept))


def printable_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names without duplicates, with only characters that a header may contain."""
    printable = (_UNPRINTABLE.sub("_", name)[:_IGNORED_LENGTH_MAX] for name in names)
    unique = list(dict.fromkeys(printable))
    if len(unique) > _IGNORED_MAX:
        unique[_IGNORED_MAX:] = ["..."]
    return tuple(unique)
