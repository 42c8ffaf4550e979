"""Rules that derive further names of a model, for `check` and for requests.

Vendors, Amazon Bedrock, Vertex AI, OpenRouter and LiteLLM give a model ids that differ in prefixes
and suffixes about where the model runs. `fold_name` removes these; equal keys name one model.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from tollgate.core.request import PRESET_PREFIX
from tollgate.providers.shared.bedrock import GEOGRAPHIES

# Prefixes with a special meaning in requests, so that an alias with a prefix would never be found.
RESERVED_PREFIXES: Final = ("adapter:", "deployment:", PRESET_PREFIX, "route:", "tensorzero::")

# Vendors in Bedrock's model ids, each before a dot: Bedrock user guide, "Supported foundation
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
# Versions in Vertex AI's ids that mean the current version: cloud.google.com, "Model versions".
_CURRENT: Final = frozenset({"default", "latest"})
# Authors by their organisation on Hugging Face, or by the name that a cloud uses for them.
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
# Author of the models that `tollgate dev` finds on its machine.
LOCAL_AUTHOR: Final = "local"
# Prefixes within the ids of one provider: regions, kinds of deployment, folders, and routes of
# LiteLLM.
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
        """Name of the model at the provider."""
        ...


class NamedModel(Protocol):
    """The fields of a model from which names are derived."""

    @property
    def names(self) -> Sequence[str]:
        """Further names that the file states."""
        ...

    @property
    def replaces(self) -> Sequence[str]:
        """Names of retired models that this model replaces."""
        ...

    @property
    def endpoints(self) -> Sequence[NamedEndpoint]:
        """Endpoints of the model."""
        ...


class NameIndex(Struct, frozen=True):
    """Slugs of models by the key of each name; a key with several slugs is ambiguous."""

    slugs: Mapping[str, tuple[str, ...]]
    replaced: Mapping[str, str]
    """Slug of the successor by the key of each retired model."""


def fold_name(name: str) -> str:
    """Return the key that all spellings of an id share; ids of fine-tuned models stay unchanged."""
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
    """Return True if a prefix only states where or how a provider runs a model."""
    return _QUALIFIER.fullmatch(prefix) is not None


def index_names(models: Iterable[tuple[str, NamedModel]]) -> NameIndex:
    """Return the models of each name.

    Names are derived from the slug, with and without its author, and from each endpoint's
    `upstream`, with and without the folders before it. A name that a file states outranks these.
    Among models of one author, a slug outranks the `upstream` of another model. Other authors'
    models outrank those of the author `local`, which must not make a catalog's names ambiguous.
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
