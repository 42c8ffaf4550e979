"""Looks up models by the names that vendors, clouds, OpenRouter and LiteLLM give them."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Raw, Struct, json

from tollgate.providers.ports.base import ProviderRow
from tollgate.routing.litellm_names import PREFIXES, RESELLERS, litellm_names
from tollgate.routing.model_names import (
    ORGANISATIONS,
    NameIndex,
    fold_name,
    index_names,
    is_qualifier,
)

# Known names have at most four prefixes, such as `fireworks_ai/accounts/fireworks/models/…`.
_PREFIXES_MAX: Final = 4
_NEWEST: Final = "-latest"


class Named(Struct, frozen=True, kw_only=True):
    """The meaning of a name: one model, several possible models, or the successor of a retired
    model.

    `providers` are the rows selected by a prefix of the name that serve the model.
    """

    slugs: tuple[str, ...] = ()
    providers: frozenset[str] = frozenset()
    successor: str | None = None


UNKNOWN: Final = Named()


class _Endpoint(Struct, frozen=True):
    provider: str
    upstream: str


class _Model(Struct, frozen=True):
    endpoints: tuple[_Endpoint, ...]
    names: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()


class NamedModels:
    """The models of a catalog by name; only the name fields of their JSON are parsed."""

    def __init__(self, unread: Mapping[str, Raw], providers: Mapping[str, ProviderRow]) -> None:
        models = {slug: json.decode(content, type=_Model) for slug, content in unread.items()}
        self._index: NameIndex = index_names(models.items())
        self._providers_of = {
            slug: frozenset(endpoint.provider for endpoint in model.endpoints)
            for slug, model in models.items()
        }
        self._authors = frozenset(slug.partition("/")[0] for slug in models)
        self._rows: dict[str, set[str]] = {}
        for slug, row in providers.items():
            for prefix in (slug, *litellm_names(row.base_url, row.transport)):
                self._rows.setdefault(prefix, set()).add(slug)

        self._prefixes = self._authors.union(PREFIXES, ORGANISATIONS, self._rows)

    def find(self, name: str) -> Named:
        """Return the meaning of a name; `UNKNOWN` if no model has it."""
        prefixes: list[str] = []
        for shorter in self._without_prefixes(name, prefixes):
            key = fold_name(shorter)
            for tried in dict.fromkeys((key, key.removesuffix(_NEWEST))):
                slugs = self._index.slugs.get(tried, ())
                if slugs := tuple(slug for slug in slugs if self._fits(slug, prefixes)):
                    return Named(slugs=slugs, providers=self._preferred(slugs, prefixes))
            successor = self._index.replaced.get(key)
            if successor is not None and self._fits(successor, prefixes):
                return Named(successor=successor)
        return UNKNOWN

    def _without_prefixes(self, name: str, prefixes: list[str]) -> Iterator[str]:
        """Yield a name without its first 0, 1, 2 … known prefixes, which are added to
        `prefixes`.
        """
        yield name
        for _ in range(_PREFIXES_MAX):
            prefix, _, shorter = name.partition("/")
            prefix = prefix.lower()
            is_known = prefix in self._prefixes or (prefixes and is_qualifier(prefix))
            if not shorter or not is_known:
                return
            prefixes.append(prefix)
            name = shorter
            yield name

    def _fits(self, slug: str, prefixes: list[str]) -> bool:
        """Return False if a prefix names an author that neither created nor serves the model."""
        author, _, _ = slug.partition("/")
        return all(
            author in (prefix, ORGANISATIONS.get(prefix))
            or self._rows.get(prefix, set()) & self._providers_of[slug]
            for prefix in prefixes
            if prefix not in RESELLERS and (prefix in self._authors or prefix in ORGANISATIONS)
        )

    def _preferred(self, slugs: tuple[str, ...], prefixes: list[str]) -> frozenset[str]:
        """Return the rows selected by the first prefix; the model's author selects none."""
        first = prefixes[0] if prefixes else ""
        if len(slugs) > 1 or slugs[0].startswith(f"{first}/"):
            return frozenset()
        return self._providers_of[slugs[0]] & self._rows.get(first, set())
