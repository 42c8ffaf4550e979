"""Runs of server tools: rendering for clients, and parsing when clients send runs back.

Clients send a run back so that the model sees its call and result again. A caller may have changed
both, so neither is trusted.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from pydantic_core import from_json

from tollgate.core.content import ServerToolId, ServerToolRun, Text, ToolCall
from tollgate.core.events import Note
from tollgate.core.json_value import JsonValue
from tollgate.core.request import ToolMessage
from tollgate.core.server_tools import RunResult
from tollgate.ingress.shared.signatures import pack_struct, unpack_struct

# Some formats name the server that ran a tool; this is the gateway's name.
SERVER_LABEL: Final = "tollgate"
_PREFIX: Final = "tollgate-run1."
_UNFINISHED: Final = RunResult(error="unavailable")


class FinishedRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A completed run, with the result text that the model received."""

    id: str
    tool: ServerToolId
    arguments: str
    text: str = ""
    error: str | None = None

    @property
    def call(self) -> ToolCall:
        """The model's call of the tool."""
        return ToolCall(id=self.id, name=self.tool, arguments=self.arguments or "{}")

    @property
    def result(self) -> ToolMessage:
        """The message with the result of the run."""
        text = self.text or (f"The tool failed: {self.error}." if self.error else "")
        return ToolMessage(
            call_id=self.id, content=(Text(text=text),), failed=self.error is not None
        )


def run_result(notes: Iterable[Note]) -> RunResult:
    """Return the result from a run's notes; a run without a result counts as failed."""
    return next((note for note in notes if isinstance(note, RunResult)), _UNFINISHED)


def finished_run(run: ServerToolRun, result: RunResult, id_: str) -> FinishedRun:
    """Return a run in the form that clients send back; `id_` is its id in the client's format.

    Content other than text is omitted.
    """
    text = "".join(part.text for part in result.content if isinstance(part, Text))
    return FinishedRun(
        id=id_, tool=run.tool, arguments=run.arguments, text=text, error=result.error
    )


def run_arguments(run: ServerToolRun) -> dict[str, JsonValue]:
    """Return the arguments of a run; empty if they are not a JSON object."""
    try:
        value: JsonValue = from_json(run.arguments)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def run_argument(run: ServerToolRun, name: str) -> str:
    """Return an argument of a run; empty if it is missing or not a string."""
    value = run_arguments(run).get(name)
    return value if isinstance(value, str) else ""


def pack_run(run: FinishedRun) -> str:
    """Return a run encoded as text, for formats without a field for runs."""
    return pack_struct(_PREFIX, run)


def is_packed_run(text: str) -> bool:
    """Return True if `pack_run` produced the text."""
    return text.startswith(_PREFIX)


def unpack_run(text: str) -> FinishedRun | None:
    """Return the run that `pack_run` encoded; None for any other or a damaged text."""
    return unpack_struct(_PREFIX, text, FinishedRun) if is_packed_run(text) else None
