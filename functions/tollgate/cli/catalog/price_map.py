"""Reader of the price map in litellm's wheel, which is neither installed nor run.

The map is `model_prices_and_context_window_backup.json`: dollars per token, by names such as
`together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo`. Prices for web searches are left out, because
they depend on a context size that requests to the gateway do not have.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile, ZipFile

from msgspec import Struct

from tollgate.cli.catalog.facts import PublishedFacts, PublishedOverride
from tollgate.core.request import Capability, Modality
from tollgate.core.work.kinds import WORK_KINDS, WorkKind
from tollgate.routing.litellm_names import litellm_names
from tollgate.routing.price_sections import WEEKDAYS
from tollgate.routing.schema import ProviderSection

NAME: Final = "litellm"
_MEMBER: Final = "litellm/model_prices_and_context_window_backup.json"
_WHEEL: Final = re.compile(r"litellm-([0-9][0-9a-z.]*)-.*\.whl")
_MAP_BYTES_MAX: Final = 64_000_000
_PER_MILLION: Final = Decimal(1_000_000)
# Number of decimals to round to, because some amounts are sums of floats, such as
# 3.2000000000000003.
_PLACES: Final = 9
_RATES: Final[Mapping[str, str]] = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write",
    "cache_creation_input_token_cost_above_1hr": "cache_write_1h",
    "input_cost_per_audio_token": "audio_input",
    "output_cost_per_audio_token": "audio_output",
    "cache_read_input_audio_token_cost": "cache_read_audio",
}
_RATES_OF_IMAGES: Final[Mapping[str, str]] = {
    "input_cost_per_image_token": "image_input",
    "output_cost_per_image_token": "image_output",
}
# The map's names for rates of work other than chat; each kind has only its rates in `WORK_KINDS`.
_RATES_OF_WORK: Final[Mapping[str, str]] = {
    "input_cost_per_token": "input",
    "input_cost_per_audio_token": "audio_input",
    "output_cost_per_token": "output",
    "output_cost_per_audio_token": "audio_output",
    **_RATES_OF_IMAGES,
    "input_cost_per_character": "characters",
}
# Speech models output only audio, so their audio rate is the rate of all output. If the map has
# both rates, the later name in `_RATES_OF_WORK` counts.
_STATED_AS: Final[Mapping[str, str]] = {"audio_output": "output"}
# The map's modes for kinds of work, where the names differ.
_MODES: Final[Mapping[WorkKind, str]] = {
    "image": "image_generation",
    "speech": "audio_speech",
    "transcription": "audio_transcription",
}
_SECOND: Final = "input_cost_per_second"
_SECONDS_PER_HOUR: Final = 3_600
# Number of decimals to round hourly prices to, because the map has rounded prices per second.
_HOUR_PLACES: Final = 3
_IMAGE: Final = ("output_cost_per_image", "input_cost_per_image")
_SEARCH: Final = "input_cost_per_query"
# Names for which 0 in the map means that there is no extra charge, such as for writes to an
# automatic cache.
_ZERO_IS_NONE: Final = frozenset({"cache_read", "cache_write", "cache_write_1h"})
_TIER: Final = re.compile(r"(\w+)_above_([0-9]+)k_tokens")
CAPABILITIES: Final[Mapping[str, Capability]] = {
    "supports_function_calling": "tools",
    "supports_response_schema": "structured_output",
    "supports_reasoning": "reasoning",
    "supports_prompt_caching": "prompt_cache",
}
MODALITIES: Final[Mapping[str, Modality]] = {
    "supports_vision": "image",
    "supports_audio_input": "audio",
    "supports_video_input": "video",
    "supports_pdf_input": "pdf",
}
_WHOLE_DAY: Final = "00:00-00:00"


class NotAPriceMap(ValueError):
    """Raised for a file that is not a litellm wheel with a price map."""


class PriceMap(Struct, frozen=True, kw_only=True):
    """A price map with its version and SHA-256 hash."""

    version: str
    sha256: str
    entries: Mapping[str, Mapping[str, Any]]

    def find(
        self, row: ProviderSection, upstream: str, *, kind: WorkKind = "chat"
    ) -> PublishedFacts | None:
        """Return the facts about a provider's model; None if the map has no price for the model."""
        providers = _publisher(row)
        for name in (f"{map_prefix(row)}/{upstream}", upstream):
            entry = self.entries.get(name)
            if entry is not None and entry.get("litellm_provider") in providers:
                if kind == "chat":
                    return _facts(name, entry)
                is_kind = entry.get("mode") == _MODES.get(kind, kind)
                return _facts_of_inputs(name, entry, kind) if is_kind else None
        return None

    def find_named(self, names: Iterable[str], kind: WorkKind) -> PublishedFacts | None:
        """Return the facts under the first of LiteLLM's names that the map has a price for."""
        for name in names:
            entry = self.entries.get(name)
            if entry is None:
                continue
            if kind == "chat":
                facts = _facts(name, entry)
            else:
                is_kind = entry.get("mode") == _MODES.get(kind, kind)
                facts = _facts_of_inputs(name, entry, kind) if is_kind else None
            if facts is not None:
                return facts
        return None


def read_price_map(path: Path) -> PriceMap:
    """Return the price map in a litellm wheel; raise NotAPriceMap for any other file."""
    name_match = _WHEEL.fullmatch(path.name)
    if name_match is None:
        raise NotAPriceMap(f"{path.name} is not named like a litellm wheel")
    try:
        with ZipFile(path) as wheel:
            if wheel.getinfo(_MEMBER).file_size > _MAP_BYTES_MAX:
                raise NotAPriceMap(f"the map in {path.name} is larger than {_MAP_BYTES_MAX} bytes")
            content = wheel.read(_MEMBER)
        entries = json.loads(content, parse_float=Decimal)
    except (OSError, BadZipFile, KeyError, ValueError) as unreadable:
        raise NotAPriceMap(f"{path.name} has no price map: {unreadable}") from unreadable
    return PriceMap(version=name_match[1], sha256=sha256(content).hexdigest(), entries=entries)


def map_prefix(row: ProviderSection) -> str:
    """Return the prefix of a provider's model names in the map; "" for an unknown provider."""
    return next(iter(_publisher(row)), "")


def _publisher(row: ProviderSection) -> tuple[str, ...]:
    return litellm_names(row.base_url, row.transport)


def _facts(name: str, entry: Mapping[str, Any]) -> PublishedFacts | None:
    tiers = entry.get("tiered_pricing") or ()
    first = {**entry, **tiers[0]} if tiers else entry
    makes_images = entry.get("mode") == _MODES["image"]
    rates = _rates(first, {**_RATES, **_RATES_OF_IMAGES} if makes_images else _RATES)
    if not {"input", "output"} <= rates.keys():
        return None
    return PublishedFacts(
        upstream=name,
        rates=rates,
        overrides=(*_sizes(entry), *_ranges(tiers[1:]), *_hours(entry.get("off_peak_pricing"))),
        context=_tokens(entry.get("max_input_tokens")),
        max_output=_tokens(entry.get("max_output_tokens")),
        input=("text", *(name_here for key, name_here in MODALITIES.items() if entry.get(key))),
        supports=tuple(name_here for key, name_here in CAPABILITIES.items() if entry.get(key)),
        retires=_day(entry.get("deprecation_date")),
    )


def _facts_of_inputs(name: str, entry: Mapping[str, Any], kind: WorkKind) -> PublishedFacts | None:
    """Return the facts about a model without text output, for which output limits do not apply."""
    rates = _rates(entry, _rate_names(kind)) | _pieces(entry, kind)
    if not rates:
        return None
    if WORK_KINDS[kind].rates_of_results:
        rates.setdefault("input", Decimal(0))
    if "image_output" in rates:
        # Other publishers list this rate as the output rate if a model outputs only images.
        rates.setdefault("output", rates["image_output"])
        if rates["output"] == rates["image_output"]:
            del rates["image_output"]
    if "input" not in rates:
        return None
    if entry.get(_SEARCH):
        rates["search"] = Decimal(entry[_SEARCH]).normalize()
    return PublishedFacts(
        upstream=name,
        rates=rates,
        context=_tokens(entry.get("max_input_tokens")),
        retires=_day(entry.get("deprecation_date")),
    )


def _rate_names(kind: WorkKind) -> dict[str, str]:
    """Return the rates of a kind of work by their names in the map."""
    rates = WORK_KINDS[kind].rates
    return {
        name: _STATED_AS.get(rate, rate) for name, rate in _RATES_OF_WORK.items() if rate in rates
    }


def _pieces(entry: Mapping[str, Any], kind: WorkKind) -> dict[str, Decimal]:
    """Return the rate per hour or image; empty for a model priced by tokens."""
    if entry.get("input_cost_per_token"):
        return {}
    results = WORK_KINDS[kind].rates_of_results
    if "audio_hour" in results and entry.get(_SECOND):
        hour = round(Decimal(entry[_SECOND]) * _SECONDS_PER_HOUR, _HOUR_PLACES)
        return {"audio_hour": hour.normalize()}
    if "image" in results:
        rate = next((entry[name] for name in _IMAGE if entry.get(name)), None)
        return {} if rate is None else {"image": Decimal(rate).normalize()}
    return {}


def _rates(entry: Mapping[str, Any], names: Mapping[str, str] = _RATES) -> dict[str, Decimal]:
    found = {
        rate_name: round(Decimal(entry[map_name]) * _PER_MILLION, _PLACES).normalize()
        for map_name, rate_name in names.items()
        if entry.get(map_name) is not None
    }
    return {name: rate for name, rate in found.items() if rate or name not in _ZERO_IS_NONE}


def _sizes(entry: Mapping[str, Any]) -> Iterator[PublishedOverride]:
    """Yield the overrides for large prompts, which have separate keys in the map."""
    by_size: dict[int, dict[str, Any]] = {}
    for key, amount in entry.items():
        tier = _TIER.fullmatch(key)
        if tier and tier[1] in _RATES and amount is not None:
            by_size.setdefault(int(tier[2]) * 1000, {})[tier[1]] = amount
    for size, amounts in sorted(by_size.items()):
        yield PublishedOverride(when={"prompt_tokens_over": size}, price=_rates(amounts))


def _ranges(tiers: Any) -> Iterator[PublishedOverride]:
    for tier in tiers:
        rates = _rates(tier)
        if rates:
            size = int(tier["range"][0])
            yield PublishedOverride(when={"prompt_tokens_over": size}, price=rates)


def _hours(off_peak: Any) -> Iterator[PublishedOverride]:
    """Yield the overrides for off-peak hours; weekday 1 in the map is Monday."""
    for window in (off_peak or {}).get("windows", ()):
        hours = window["hours_utc"]
        days = [WEEKDAYS[day - 1] for day in window.get("weekdays", ())]
        for each in [hours] if isinstance(hours, str) else hours:
            when: dict[str, str | int | list[str]] = {}
            if each != _WHOLE_DAY:
                when["utc_window"] = each
            if days and len(days) < len(WEEKDAYS):
                when["utc_days"] = list(days)
            yield PublishedOverride(when=when, price=_rates(off_peak))


def _tokens(stated: Any) -> int | None:
    try:
        return int(stated) or None
    except (TypeError, ValueError):
        return None


def _day(stated: Any) -> date | None:
    try:
        return date.fromisoformat(stated)
    except (TypeError, ValueError):
        return None
