"""Code shared by the readers of other gateways' files: upstreams, and notes on omitted sections."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tollgate.cli.catalog.litellm_config import Deployment, ImportNote
from tollgate.cli.catalog.litellm_endpoints import Placement


class SourceUpstream(Struct, frozen=True, kw_only=True):
    """A provider as a source configures it."""

    name: str
    prefix: str
    """LiteLLM's prefix of the provider."""
    params: Mapping[str, Any]


def offer_known(
    placement: Placement, upstreams: Sequence[SourceUpstream], section: str, *, author: str = ""
) -> Iterator[Deployment]:
    """Yield the models of the base file that the upstreams have, in the upstreams' order.

    `author` limits the models to those of one author.
    """
    for order, upstream in enumerate(upstreams):
        for slug, model in placement.list_models_of(f"{upstream.prefix}/*"):
            if slug.startswith(author):
                yield Deployment(
                    name=slug,
                    model=f"{upstream.prefix}/{model}",
                    params={**upstream.params, "order": order},
                    facts={},
                    section=section,
                )


def list_left(
    sections: Mapping[str, Any],
    read: frozenset[str],
    advice: Mapping[str, str],
    losses: frozenset[str],
) -> Iterator[ImportNote]:
    """Yield a note for each section of a file that was not read."""
    for name in sections:
        if name not in read:
            text = advice.get(name, "it has no counterpart")
            yield ImportNote(where=name, text=text, is_loss=name in losses)
