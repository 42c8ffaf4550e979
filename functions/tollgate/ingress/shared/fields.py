"""Parses the fields that requests of OpenAI's formats have in common."""

from inspect import get_annotations
from typing import Any, Final

from tollgate.core.request import JsonObject, Sampling
from tollgate.ingress.shared.wire.request_fields import GuidedDecoding, SamplingFields

_GUIDED: Final = tuple(get_annotations(GuidedDecoding))


def parse_sampling(
    fields: SamplingFields, *, logprobs: bool | None, top_logprobs: int | None
) -> Sampling:
    """Return the sampling parameters; only log probabilities are named differently by format."""
    stop = fields.stop or ()
    stated = {
        name: value
        for name in Sampling.__struct_fields__
        if (value := getattr(fields, name, None)) is not None
    }
    stated["stop"] = (stop,) if isinstance(stop, str) else tuple(stop)
    stated["logprobs"], stated["top_logprobs"] = logprobs, top_logprobs
    return Sampling(**stated)


def parse_guided(fields: GuidedDecoding) -> JsonObject:
    """Return the stated fields that only servers like vLLM know, by their names on the wire."""
    stated: dict[str, Any] = {name: getattr(fields, name) for name in _GUIDED}
    return {name: value for name, value in stated.items() if value is not None}
