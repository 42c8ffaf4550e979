"""Runs of the gateway's tools as client formats share them: their results, and what comes back.

A client that sends a run back gives the model its call and its result again. Both are text that the
caller could have written itself, so that nothing in them is trusted.
"""

import binascii
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct
from pydantic_core import from_json

from tollgate.core.content import ServerToolId, ServerToolRun, Text, ToolCall
from tollgate.core.events import Note
from tollgate.core.json_value import JsonValue
from tollgate.core.request import ToolMessage
from tollgate.core.server_tools import RunResult

# The name of the gateway where a format names the server that ran a tool.
SERVER_LABEL: Final = "tollgate"
_PREFIX: Final = "tollgate-run1."
_UNFINISHED: Final = RunResult(error="unavailable")


class FinishedRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run with the text that the model was given, as the next request needs it."""

    id: str
    tool: ServerToolId
    arguments: str
    text: str = ""
    error: str | None = None

    @property
    def call(self) -> ToolCall:
        """The run as a call of the model's."""
        return ToolCall(id=self.id, name=self.tool, arguments=self.arguments or "{}")

    @property
    def result(self) -> ToolMessage:
        """The result of that call."""
        text = self.text or (f"The tool failed: {self.error}." if self.error else "")
        return ToolMessage(
            call_id=self.id, content=(Text(text=text),), failed=self.error is not None
        )


def run_result(notes: Iterable[Note]) -> RunResult:
    """Return the result among the notes on a run."""
    return next((note for note in notes if isinstance(note, RunResult)), _UNFINISHED)


def finished_run(run: ServerToolRun, result: RunResult, id_: str) -> FinishedRun:
    """Return a run as the next request needs it, by the id that it has in a format.

    Content that is no text is left out.
    """
    text = "".join(part.text for part in result.content if isinstance(part, Text))
    return FinishedRun(
        id=id_, tool=run.tool, arguments=run.arguments, text=text, error=result.error
    )


def run_arguments(run: ServerToolRun) -> dict[str, JsonValue]:
    """Return the arguments of a run as an object, empty for text that is none."""
    try:
        value: JsonValue = from_json(run.arguments)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def run_argument(run: ServerToolRun, name: str) -> str:
    """Return an argument of a run as text, empty if it has none."""
    value = run_arguments(run).get(name)
    return value if isinstance(value, str) else ""


def pack_run(run: FinishedRun) -> str:
    """Return a text that carries a run through a client that knows no such field."""
    return _PREFIX + binascii.b2a_base64(msgspec.json.encode(run), newline=False).decode()


def is_packed_run(text: str) -> bool:
    """Return whether a text was packed here; any other text is somebody else's."""
    return text.startswith(_PREFIX)


def unpack_run(text: str) -> FinishedRun | None:
    """Return the run that a text carries; None for a text that was not made here, or changed."""
    if not is_packed_run(text):
        return None
    try:
        encoded = binascii.a2b_base64(text.removeprefix(_PREFIX), strict_mode=True)
        return msgspec.json.decode(encoded, type=FinishedRun)
    except (ValueError, RecursionError):
        return None
