"""Calls of a Gemini answer, whole or in pieces, with ids where Gemini gave none."""

import hashlib
import re
from collections.abc import Iterator
from typing import Final

from tollgate.core.content import ToolCall
from tollgate.core.events import PartDelta, PartEnd, PartStart, StreamEvent
from tollgate.providers.gemini.arguments import Arguments
from tollgate.providers.gemini.signatures import opaque_of
from tollgate.providers.gemini.wire import FunctionCall

_MADE_ID: Final = re.compile(r"gemini_[0-9a-f]{24}")


def stated_id(id_: str) -> str | None:
    """The id as Gemini knows it: None for one that was made here."""
    return None if _MADE_ID.fullmatch(id_) else id_


def _made_id(seed: bytes, number: int) -> str:
    digest = hashlib.blake2b(seed, digest_size=12, salt=number.to_bytes(8, "big"))
    return f"gemini_{digest.hexdigest()}"


class OpenCall:
    """The call whose pieces are coming, as part `part`; `seed` makes an id if it has none."""

    def __init__(self, part: int, call: FunctionCall, seed: bytes) -> None:
        self._part = part
        self._name = call.name or ""
        self._id = call.id or _made_id(seed, part)
        self._arguments = Arguments()
        self._signature: str | None = None

    def started(self) -> StreamEvent:
        """The event with which the part begins."""
        return PartStart(
            index=self._part, part=ToolCall(id=self._id, name=self._name, arguments="")
        )

    def take(self, call: FunctionCall, signature: str | None) -> None:
        """Take a piece; UnknownPlace if it fits nowhere."""
        self._arguments.merge(call.args or {})
        for piece in call.partial_args:
            self._arguments.add(piece)
        self._signature = signature or self._signature

    def ended(self) -> Iterator[StreamEvent]:
        """The events with which the part is complete; no arguments are the empty object."""
        yield PartDelta(index=self._part, text=self._arguments.json())
        yield PartEnd(index=self._part, opaque=opaque_of(self._signature))
