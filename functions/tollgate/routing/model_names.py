"""Rules that derive further names of a model, for `check` and for requests.

Vendors, Amazon Bedrock, Vertex AI, OpenRouter and LiteLLM use ids for the same model that differ in
prefixes and suffixes, which say where it runs. `fold_name` strips them, so two ids with the same
folded name mean the same model.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from tollgate.core.request import PRESET_PREFIX
from tollgate.providers.shared.bedrock_models import GEOGRAPHIES

# Prefixes with a special meaning in requests; an alias that starts with one could never be matched.
RESERVED_PREFIXES: Final = ("adapter:", "deployment:", PRESET_PREFIX, "route:", "tensorzero::")

# Vendors in Bedrock's model ids, each followed by a dot: Bedrock user guide, "Supported foundation
# models" (2026-11-27).
_VENDORS: Final = frozenset(
    {
        *("ai21", "amazon", "anthropic", "cohere", "deepseek", "google", "meta", "minimax"),
        *("mistral", "moonshot", "moonshotai", "nvidia", "openai", "qwen", "stability", "writer"),
        *("xai", "zai"),
    }
)
# Suffixes of first versions in Bedrock's ids (`-v1:0`), and of hosted models in Vertex AI's ids.
_SUFFIXES: Final = (":0", ":1", "-v1", "-maas")
# Version suffixes in Vertex AI's ids that mean the current version: cloud.google.com, "Model
# versions".
_CURRENT: Final = frozenset({"default", "latest"})
# Authors, keyed by their organisation on Hugging Face or by the name that a cloud uses for them.
ORGANISATIONS: Final[Mapping[str, str]] = {
    "alibaba": "qwen",
    "deepseek-ai": "deepseek",
    "meta": "meta-llama",
    "minimaxai": "minimax",
    "mistral": "mistralai",
    "xai": "x-ai",
    "zai-org": "z-ai",
}
_FINE_TUNED: Final = "ft:"
# The author of the models that `tollgate dev` finds on the local machine.
LOCAL_AUTHOR: Final = "local"
# Prefixes within a provider's ids: regions, kinds of deployment, folders, and LiteLLM's routes.
_QUALIFIER: Final = re.compile(
    rf"{'|'.join(sorted(GEOGRAPHIES))}|[a-z]{{2}}(-gov)?-[a-z]+-[0-9]|global-standard|converse|"
    "invoke|converse_like|claude_platform|accounts|models|@cf|@oi|ps"
)


class NamedEndpoint(Protocol):
    """The fields of an endpoint from which names are derived."""

    @property
    def provider(self) -> str:
        """Slug of the provider."""
        ...

    @property
    def upstream(self) -> str:
        """The provider's name for the model."""
        ...


class NamedModel(Protocol):
    """The fields of a model from which names are derived."""

    @property
    def names(self) -> Sequence[str]:
        """Further names given in the file."""
        ...

    @property
    def replaces(self) -> Sequence[str]:
        """Names of retired models that this model stands in for."""
        ...

    @property
    def endpoints(self) -> Sequence[NamedEndpoint]:
        """Endpoints of the model."""
        ...


class NameIndex(Struct, frozen=True):
    """Slugs of models, keyed by each folded name; a name with several slugs is ambiguous."""

    slugs: Mapping[str, tuple[str, ...]]
    replaced: Mapping[str, str]
    """Slug of the successor, keyed by the folded name of each retired model."""


def fold_name(name: str) -> str:
    """Return the folded name that all spellings of an id share; ids of fine-tuned models stay
    unchanged.
    """
    if name.startswith(_FINE_TUNED):
        return name
    key = name.lower()
    base, _, version = key.partition("@")
    if base and version:
        key = base if version in _CURRENT else f"{base}-{version}"
    for prefixes in (GEOGRAPHIES, _VENDORS):
        prefix, _, name_in_prefix = key.partition(".")
        if name_in_prefix and prefix in prefixes:
            key = name_in_prefix
    for suffix in _SUFFIXES:
        key = key.removesuffix(suffix)
    return key


def is_qualifier(prefix: str) -> bool:
    """Return True if a prefix only says where or how a provider runs a model."""
    return _QUALIFIER.fullmatch(prefix) is not None


def index_names(models: Iterable[tuple[str, NamedModel]]) -> NameIndex:
    """Return the models for each name.

    Names are derived from the slug, with and without its author, and from each endpoint's
    `upstream`, with and without the folders before it. A name given in the file takes precedence
    over these. Among models of one author, a slug takes precedence over the `upstream` of another
    model. Models of other authors take precedence over those of the author `local`, which must not
    make a catalog's names ambiguous.
    """
    own: dict[str, set[str]] = {}
    derived: dict[str, set[str]] = {}
    stated: dict[str, set[str]] = {}
    replaced: dict[str, str] = {}
    for slug, model in models:
        for name in (slug, slug.partition("/")[2]):
            own.setdefault(fold_name(name), set()).add(slug)
        for endpoint in model.endpoints:
            for name in (endpoint.upstream, endpoint.upstream.rpartition("/")[2]):
                derived.setdefault(fold_name(name), set()).add(slug)
        for name in model.names:
            stated.setdefault(fold_name(name), set()).add(slug)
        replaced |= {fold_name(name): slug for name in model.replaces}
    for key, slugs in own.items():
        others = derived.get(key, set()) - slugs
        if {_author(slug) for slug in others} <= {_author(slug) for slug in slugs}:
            derived[key] = slugs
        else:
            derived[key] = slugs | others
    found = {**{key: _outranking(slugs) for key, slugs in derived.items()}, **stated}
    return NameIndex({key: tuple(sorted(slugs)) for key, slugs in found.items()}, replaced)


def _outranking(slugs: set[str]) -> set[str]:
    return {slug for slug in slugs if _author(slug) != LOCAL_AUTHOR} or slugs


def _author(slug: str) -> str:
    return slug.partition("/")[0]
