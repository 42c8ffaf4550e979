"""A gateway with a guardrail by a scripted Presidio analyzer, which knows a list of names."""

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from msgspec.structs import replace as changed

from tests.gateways import Directory, House, house
from tests.scripted import Scripted
from tests.unit.engine.guardrails.homes import MODELS
from tests.unit.routing.catalogs import endpoint, model, provider
from tollgate.core.principal import Principal
from tollgate.providers.ports.base import Frame, Provider, Timeouts, WireRequest
from tollgate.providers.ports.formats import codec_of

# One has a character outside the basic plane, which UTF-16 counts as two.
NAMES: Final = ("Ada Lovelace", "Zoë 🎈 Ng", "+49 30 1234567")
_KNOWN: Final = re.compile("|".join(map(re.escape, NAMES)))
ANALYZER: Final = model(endpoint("far", "en", dollars_in="0"), kind="moderation", context=20_000)
del ANALYZER["max_output"], ANALYZER["endpoints"][0]["price"]["output"]  # type: ignore[index]


def found(text: str) -> list[dict[str, Any]]:
    """What the analyzer answers for a text."""
    return [
        {
            "entity_type": "PHONE_NUMBER" if match.group().startswith("+") else "PERSON",
            "start": match.start(),
            "end": match.end(),
            "score": 0.85,
            "analysis_explanation": None,
        }
        for match in _KNOWN.finditer(text)
    ]


class Analyzer(Scripted):
    """A transport to an analyzer."""

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        self.requests.append(request)

        async def frames() -> AsyncIterator[Sequence[Frame]]:
            yield (Frame(data=json.dumps(found(str(request.body["text"]))).encode()),)

        yield frames()

    @property
    def texts(self) -> list[Any]:
        return [request.body["text"] for request in self.requests]


class _TwoFormats:
    """The directory of a house whose provider `far` speaks another format, or is another."""

    def __init__(self, home: House, far: Provider | None) -> None:
        transports: Mapping[str, Scripted] = {"near": home.near, "far": home.far}
        chats = dict.fromkeys(transports, codec_of("openai_chat"))
        self._near = Directory(transports, chats).provider("near", home.principal)
        self._far = far or Directory(transports, chats, "presidio").provider("far", home.principal)

    def provider(self, slug: str, principal: Principal) -> Provider:
        return self._near if slug == "near" else self._far


async def analyzed(
    *near: Any, far: Scripted | None = None, at: Provider | None = None, **row: Any
) -> House:
    """A house with a guardrail `people`; `at` replaces its analyzer."""
    options = {name: row.pop(name) for name in ("entities", "score_min", "restores") if name in row}
    home = await house(
        near=Scripted(*near) if near else None,
        far=far or Analyzer(),
        models={**MODELS, "acme/analyzer": ANALYZER},
        aliases={},
        routes={},
        providers={"near": provider(), "far": provider(codec="presidio")},
        guardrails={"people": {"presidio": {"model": "acme/analyzer", **options}, **row}},
    )
    gateway = changed(home.gateway, providers=_TwoFormats(home, at))
    return replace(home, gateway=gateway)
