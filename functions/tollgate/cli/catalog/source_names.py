"""Model names that another gateway serves, with the endpoints that an import created for them."""

from msgspec import Struct


class SourceOffer(Struct, frozen=True, kw_only=True):
    """A deployment of the source, and the endpoint that the import created for it, if any."""

    model: str
    endpoint: str | None
    """`provider/upstream` in the result."""


class SourceName(Struct, kw_only=True):
    """A model name of the other gateway, with its deployments and fallbacks."""

    name: str
    kind: str
    offers: tuple[SourceOffer, ...]
    fallbacks: tuple[str, ...] = ()
    wildcard: str = ""
    """The wildcard of the source that the name matches; empty for a name that the source states."""
