"""Reader of OpenRouter's presets, as `GET /api/v1/presets/{slug}` returns them.

Format: https://openrouter.ai/docs/features/presets, and PresetWithDesignatedVersion in
https://openrouter.ai/docs/client-sdks/python/components (seen 2026-11-27).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import DecodeError, json

from tollgate.cli.catalog.litellm_config import (
    Deployment,
    ImportNote,
    LitellmConfig,
    NotALitellmConfig,
    as_mapping,
    name_list,
    read_source,
)
from tollgate.cli.catalog.litellm_endpoints import Placement

_SECTION: Final = "preset"
# OpenRouter's slugs for providers that have other names in the base file.
_PROVIDERS: Final[Mapping[str, str]] = {
    "amazon-bedrock": "bedrock",
    "google-ai-studio": "google",
    "moonshotai": "moonshot",
    "z-ai": "zai",
}
_CHOSEN_BY: Final = frozenset({"allow_fallbacks", "ignore", "only", "order"})
_POLICIES: Final = frozenset({"data_collection", "quantizations", "zdr"})
_READ: Final = frozenset({"model", "models", "provider"})


def read_openrouter_presets(path: Path, placement: Placement) -> LitellmConfig:
    """Return the presets in a file, one or a list; raise NotALitellmConfig if there is none."""
    try:
        content = json.decode(read_source(path))
    except (DecodeError, UnicodeDecodeError) as invalid:
        raise NotALitellmConfig(f"{path.as_posix()} is not JSON: {invalid}") from invalid
    deployments: list[Deployment] = []
    notes: list[ImportNote] = []
    for answer in content if isinstance(content, list) else [content]:
        preset = as_mapping(as_mapping(answer).get("data"))
        version = as_mapping(preset.get("designated_version"))
        if isinstance(slug := preset.get("slug"), str):
            deployments += _preset(slug, version, placement, notes)
    if not deployments:
        raise NotALitellmConfig(f"{path.as_posix()} has no preset with a model")
    return LitellmConfig(
        deployments=tuple(deployments), sections={}, source="openrouter-preset", notes=tuple(notes)
    )


def _preset(
    slug: str, version: Mapping[str, Any], placement: Placement, notes: list[ImportNote]
) -> Iterator[Deployment]:
    """Yield the endpoints of a preset's models in the order in which they are tried."""
    config = as_mapping(version.get("config"))

    def note(text: str) -> None:
        notes.append(ImportNote(where=f"{_SECTION} {slug}", text=text, is_loss=True))

    note(f"callers write {slug} instead of @preset/{slug}; a row of `presets` would keep that name")
    if version.get("system_prompt"):
        note("its system prompt is left to the callers")
    for key in config:
        if key not in _READ:
            note(f"its {key} is left to the callers")
    wanted = as_mapping(config.get("provider"))
    for key in wanted:
        if key in _POLICIES:
            note(f"its provider.{key} becomes a `prompt_policy`, by hand")
        elif key not in _CHOSEN_BY:
            note(f"its provider.{key} is left to the callers")
    stated = config.get("model")
    models = [*([stated] if isinstance(stated, str) else []), *name_list(config.get("models"))]
    order = 0
    for model in dict.fromkeys(models):
        offers = placement.list_offers_of(model)
        chosen = _choose(offers, wanted) if offers else [f"openrouter/{model}"]
        if not chosen:
            note(f"no provider that it admits has {model} in the base file")
        for each in chosen:
            yield Deployment(
                name=slug, model=each, params={"order": order}, facts={}, section=_SECTION
            )
            order += 1


def _choose(offers: Sequence[str], wanted: Mapping[str, Any]) -> list[str]:
    """Return `provider/upstream` of the providers that a preset admits, first those in its
    `order`."""

    def listed(key: str) -> list[str]:
        return [_PROVIDERS.get(name, name) for name in name_list(wanted.get(key))]

    first, only, ignored = listed("order"), listed("only"), listed("ignore")
    if wanted.get("allow_fallbacks") is False and first:
        only = [name for name in first if not only or name in only]
    ranks = {name: rank for rank, name in enumerate(first)}
    admitted = [
        each
        for each in offers
        if (provider := each.partition("/")[0]) not in ignored and (not only or provider in only)
    ]
    return sorted(admitted, key=lambda each: ranks.get(each.partition("/")[0], len(ranks)))
