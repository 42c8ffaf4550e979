"""The lists of docs/formats/: what becomes of each thing that a client says, at each codec.

`python -m tests.format_table` writes them. Nothing in them is stated: an outcome is the difference
that the one thing makes in the provider's request, and in the names of what was left out.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.clocks import FixedClock
from tests.format_features import PICTURE, Feature, features_of
from tests.gateways import ShelvedMedia
from tests.outcome_list import outcome_list
from tests.unit.engine.client_formats import CLIENT_FORMATS, ClientFormat
from tests.unit.engine.same_conversations import Json
from tests.unit.ingress.media_samples import PNG
from tests.upstream.wires import EVERY_WIRE, Wire
from tollgate.core.errors import GatewayError
from tollgate.core.ids import IdSource
from tollgate.core.request import Need
from tollgate.engine.files.media import RequestMedia
from tollgate.engine.side_thread import Computations, SideThread
from tollgate.ingress.base import Ingress
from tollgate.ingress.formats import Ingresses
from tollgate.providers.ports.base import FetchedMedia, WireRequest
from tollgate.providers.ports.formats import WIRE_FORMATS
from tollgate.providers.ports.unwrapping import encode_request

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs" / "formats"
BEGIN: Final = "<!-- made by python -m tests.format_table -->"
END: Final = "<!-- end -->"

NATIVE, TRANSLATED, EMULATED, NAMED = "native", "translated", "emulated", "named"
IN_PART = "in part"
FANNED_OUT, FETCHED, NOT_SENT, REFUSED = "fanned out", "fetched", "not sent", "400"


def path(client: ClientFormat) -> Path:
    """Return the page of a client format."""
    return FOLDER / f"{client.name.replace('_', '-')}.md"


def page(client: ClientFormat, written: str) -> str:
    """Return the page of a client format with its list made anew."""
    before, rest = written.split(BEGIN)
    _, after = rest.split(END)
    ingress = Ingresses(IdSource(FixedClock()))[client.name]
    return f"{before}{BEGIN}\n\n{_list(client, ingress)}\n\n{END}{after}"


def _list(client: ClientFormat, ingress: Ingress) -> str:
    """Return the list of a client format; wires that treat everything alike share a line."""
    features = features_of(client.name)
    columns = {
        wire.name: [cell(ingress, client.limit, feature, wire) for feature in features]
        for wire in EVERY_WIRE
    }
    return outcome_list([each.name for each in features], columns)


@dataclass(frozen=True, kw_only=True)
class _Sent:
    """A request of a provider, and what the gateway adds to it or leaves out."""

    wire: WireRequest
    named: frozenset[str]
    answers: int
    echoes: bool
    fetches: bool

    @property
    def body(self) -> Any:
        return msgspec.to_builtins(self.wire.body)


def cell(ingress: Ingress, limit: str, feature: Feature, wire: Wire) -> str:
    """Return what becomes of a feature at a wire."""
    sent = _sent(ingress, limit, feature.body, feature.headers, wire)
    less = _sent(ingress, limit, feature.without, {}, wire)
    if sent is None:
        return REFUSED
    if sent.fetches:
        return FETCHED
    if sent.echoes or (less is not None and sent.wire.wrapping != less.wire.wrapping):
        return EMULATED
    if sent.answers > 1 and "n" not in sent.body:
        return FANNED_OUT
    left_out = sent.named - (less.named if less else frozenset())
    if less is not None and less.body == sent.body:
        return NAMED if left_out else NOT_SENT
    if left_out:
        return IN_PART
    return NATIVE if any(_holds(each, feature.words) for each in _nodes(sent.body)) else TRANSLATED


def _sent(
    ingress: Ingress, limit: str, body: Json, headers: Mapping[str, str], wire: Wire
) -> _Sent | None:
    """Return what goes to the provider, None for a request that it cannot take."""
    asked = {"model": wire.target.model, limit: 4_000, **body}
    parsed = ingress.parse(msgspec.json.encode(asked), headers)
    request = parsed.request
    if request.needs - takes(wire):
        return None
    shelf = ShelvedMedia({PICTURE: FetchedMedia(content=PNG)})
    at_once = Computations(SideThread(), "acme", is_large=False)
    media = RequestMedia(shelf, request, None, at_once)
    try:
        inlined = asyncio.run(media.inline(wire.target))
        sent = encode_request(wire.codec, inlined, wire.target)
    except GatewayError:
        return None
    return _Sent(
        wire=sent,
        named=frozenset((*sent.adapted, *sent.unreadable, *parsed.ignored)),
        answers=request.choices * (1 + len(request.further)),
        echoes=parsed.echoes,
        fetches=inlined is not request,
    )


def takes(wire: Wire) -> frozenset[Need]:
    """Return what the planner knows that a format and its server have room for."""
    return WIRE_FORMATS[wire.codec_name].carries & (wire.dialect.met | {"conversation"})


def _nodes(value: Any) -> Iterator[Any]:
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _nodes(each)


def _holds(value: Any, words: Any) -> bool:
    """Return whether a value is these words, perhaps with more fields."""
    value, words = _one_text(value), _one_text(words)
    if isinstance(words, dict) and isinstance(value, dict):
        return all(name in value and _holds(value[name], each) for name, each in words.items())
    if isinstance(words, list) and isinstance(value, list):
        return len(value) == len(words) and all(map(_holds, value, words))
    return bool(value == words)


def _one_text(value: Any) -> Any:
    """Return the text of a list with nothing else, for which a plain text may stand."""
    match value:
        case [{"type": "text" | "input_text", "text": str(text), **rest}] if not rest:
            return text
        case _:
            return value


if __name__ == "__main__":
    for each in CLIENT_FORMATS.values():
        file = path(each)
        file.write_text(page(each, file.read_text(encoding="utf-8")), encoding="utf-8")
