"""Compiled routing.yaml in memory, read from JSON, because functions contain no YAML parser."""

from collections.abc import Mapping
from difflib import get_close_matches
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Final, Self

from msgspec import Meta, Raw, Struct, json
from msgspec.structs import replace

from tollgate.core.request import PRESET_PREFIX
from tollgate.providers.ports.base import ProviderRow
from tollgate.routing.chains import RouteSection
from tollgate.routing.defaults_sections import DefaultsSection
from tollgate.routing.planning.unread_sections import (
    UnreadGuardrails,
    UnreadModels,
    UnreadNames,
    UnreadPlugins,
    UnreadPresets,
    UnreadTools,
)
from tollgate.routing.scalars import MODEL_SLUG
from tollgate.routing.schema import (
    AliasSection,
    BillingSection,
    CompiledRouting,
    KeyTierSection,
    ModelSection,
)

if TYPE_CHECKING:
    from tollgate.routing.planning.named_models import Named
    from tollgate.routing.plugin_sections import PdfSection

# Only this many characters of a name are compared, so that callers cannot waste CPU time with long
# names.
_COMPARED_CHARACTERS_MAX: Final = 128
# Prefixes that TensorZero clients put before the name of a model or function.
_TENSORZERO_PREFIXES: Final = ("tensorzero::model_name::", "tensorzero::function_name::")
_EMPTY: Final = Raw(b"{}")
_Slug = Annotated[str, Meta(pattern=MODEL_SLUG, max_length=128)]


class Catalog(Struct, frozen=True, kw_only=True):
    """A revision of routing.yaml; `sha` is the SHA-256 of the compiled JSON."""

    sha: str
    defaults: DefaultsSection
    billing: BillingSection
    providers: Mapping[str, ProviderRow]
    models: Mapping[str, ModelSection]
    aliases: Mapping[str, AliasSection]
    routes: Mapping[str, RouteSection]
    key_tiers: Mapping[str, KeyTierSection]
    attribution: Mapping[str, str]
    tools: UnreadTools
    plugins: UnreadPlugins
    guardrails: UnreadGuardrails
    presets: UnreadPresets
    names: UnreadNames
    is_candidate: bool = False
    """True for requests of the keys that a candidate catalog serves."""

    @classmethod
    def from_json(cls, compiled: bytes) -> Self:
        """Read the compiled form; raise ValueError if its version is not supported."""
        catalog = cls.from_build(compiled)
        # All parts are read now, so that an invalid part fails here and not during a request.
        _ = dict(catalog.models), catalog.tools.section, catalog.plugins.pdf
        _ = catalog.guardrails.rows, catalog.presets.rows
        return catalog

    @classmethod
    def from_build(cls, compiled: bytes) -> Self:
        """Read a compiled form that was checked during the build; models are parsed at
        first use.
        """
        sections = json.decode(compiled, type=dict[str, Raw])
        models = UnreadModels(json.decode(sections.pop("models", _EMPTY), type=dict[_Slug, Raw]))
        tools = UnreadTools(bytes(sections.pop("server_tools", _EMPTY)))
        plugins = UnreadPlugins(bytes(sections.pop("plugins", _EMPTY)))
        guardrails = UnreadGuardrails(bytes(sections.pop("guardrails", _EMPTY)))
        presets = UnreadPresets(bytes(sections.pop("presets", _EMPTY)))
        content = CompiledRouting.model_validate_json(json.encode(sections), strict=True)
        providers = {slug: section.row(slug) for slug, section in content.providers.items()}
        return cls(
            sha=sha256(compiled).hexdigest(),
            defaults=content.defaults,
            billing=content.billing,
            providers=providers,
            models=models,
            aliases=content.aliases,
            routes=content.routes,
            key_tiers=content.key_tiers,
            attribution=content.attribution,
            tools=tools,
            plugins=plugins,
            guardrails=guardrails,
            presets=presets,
            names=UnreadNames(models, providers),
        )

    def as_candidate(self) -> Self:
        """Return the catalog for requests that get it as a candidate."""
        return replace(self, is_candidate=True)

    @property
    def pdf(self) -> "PdfSection | None":
        """Settings for reading documents; None if the gateway does not read documents."""
        return self.plugins.pdf

    def target(self, name: str) -> str:
        """Return the model or route that a name stands for; return an unknown or ambiguous name
        unchanged.
        """
        name = self.plain_name(name)
        if not self.states(name):
            slugs = self.named(name).slugs
            return slugs[0] if len(slugs) == 1 else name
        # A chain of aliases is at most as long as the number of aliases.
        for _ in self.aliases:
            alias = self.aliases.get(name)
            if alias is None:
                break
            name = alias.to
        return name

    def plain_name(self, name: str) -> str:
        """Return a requested name without TensorZero's prefix; for a preset, its model's name."""
        for prefix in _TENSORZERO_PREFIXES:
            if name.startswith(prefix):
                return name.removeprefix(prefix)
        if name.startswith(PRESET_PREFIX):
            preset = self.presets.rows.get(name.removeprefix(PRESET_PREFIX))
            return name if preset is None else preset.model
        return name

    def states(self, name: str) -> bool:
        """Return True for slugs, aliases and routes, and False for other names of models."""
        return name in self.models or name in self.aliases or name in self.routes

    def named(self, name: str) -> "Named":
        """Return the meaning of a name that is neither a slug nor an alias nor a route."""
        return self.names.find(name if len(name) <= _COMPARED_CHARACTERS_MAX else "")

    def nearest(self, name: str) -> tuple[str, ...]:
        """Return up to three similar names, the most similar first."""
        presets = (f"{PRESET_PREFIX}{slug}" for slug in self.presets.rows)
        names = (*self.models, *self.aliases, *self.routes, *presets)
        compared = name[:_COMPARED_CHARACTERS_MAX].lower()
        return tuple(get_close_matches(compared, names, n=3, cutoff=0.6))
