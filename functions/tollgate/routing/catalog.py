"""A compiled routing.yaml in memory: who serves which name. Reads JSON, never YAML."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from typing import Final, Self

from tollgate.core.errors import ErrorCode
from tollgate.providers.base import Guardrail, ProviderRow
from tollgate.routing.schema import (
    NEXT_ON_DEFAULT,
    AliasSection,
    BillingSection,
    DefaultsSection,
    ModelSection,
    RouteSection,
    Routing,
)

# A longer name is nobody's typing mistake, and indexing it takes time that a caller chooses.
_COMPARED_CHARACTERS_MAX: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The models behind a name, in order; `route` is None where the name leads to one model."""

    models: tuple[str, ...]
    next_on: frozenset[ErrorCode]
    route: str | None = None
    guardrail: Guardrail | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """One revision of routing.yaml; `sha` is the SHA-256 of its canonical compiled JSON."""

    sha: str
    defaults: DefaultsSection
    billing: BillingSection
    providers: Mapping[str, ProviderRow]
    models: Mapping[str, ModelSection]
    aliases: Mapping[str, AliasSection]
    routes: Mapping[str, RouteSection]

    @classmethod
    def from_json(cls, compiled: bytes) -> Self:
        """Read the compiled form; ValueError if it is not one."""
        content = Routing.model_validate_json(compiled, strict=True)
        return cls(
            sha=sha256(compiled).hexdigest(),
            defaults=content.defaults,
            billing=content.billing,
            providers={slug: section.row(slug) for slug, section in content.providers.items()},
            models=content.models,
            aliases=content.aliases,
            routes=content.routes,
        )

    def chain(self, name: str) -> Chain | None:
        """What a model's slug, an alias or a route stands for; None for any other name."""
        alias = self.aliases.get(name)
        target = alias.to if alias else name
        route = self.routes.get(target)
        if route:
            return Chain(
                models=route.models,
                next_on=_codes(route.next_on),
                route=target,
                guardrail=route.guardrail.guardrail if route.guardrail else None,
            )
        if target in self.models:
            return Chain(models=(target,), next_on=_codes(NEXT_ON_DEFAULT))
        return None

    def nearest(self, name: str) -> tuple[str, ...]:
        """Up to three names that look like this one, the likeliest first."""
        names = (*self.models, *self.aliases, *self.routes)
        compared = name[:_COMPARED_CHARACTERS_MAX].lower()
        return tuple(get_close_matches(compared, names, n=3, cutoff=0.6))


def _codes(names: tuple[str, ...]) -> frozenset[ErrorCode]:
    return frozenset(ErrorCode(name) for name in names)
