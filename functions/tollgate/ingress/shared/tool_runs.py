"""Runs of the gateway's tools in client formats: rendering their results and reading them back.

A client sends a run back so that the model sees the call and the result again. The caller could
have written both texts, so neither is trusted.
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

# The gateway's name in formats that name the server which ran a tool.
SERVER_LABEL: Final = "tollgate"
_PREFIX: Final = "tollgate-run1."
_UNFINISHED: Final = RunResult(error="unavailable")


class FinishedRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run with the text that the model got as result, for the next request."""

    id: str
    tool: ServerToolId
    arguments: str
    text: str = ""
    error: str | None = None

    @property
    def call(self) -> ToolCall:
        """The model's call that started the run."""
        return ToolCall(id=self.id, name=self.tool, arguments=self.arguments or "{}")

    @property
    def result(self) -> ToolMessage:
        """The message with the result of the call."""
        text = self.text or (f"The tool failed: {self.error}." if self.error else "")
        return ToolMessage(
            call_id=self.id, content=(Text(text=text),), failed=self.error is not None
        )


def run_result(notes: Iterable[Note]) -> RunResult:
    """Return the result among the notes on a run; a run without a result has failed."""
    return next((note for note in notes if isinstance(note, RunResult)), _UNFINISHED)


def finished_run(run: ServerToolRun, result: RunResult, id_: str) -> FinishedRun:
    """Return a finished run for the next request; `id_` is the run's id in the client's format.

    Content other than text is left out.
    """
    text = "".join(part.text for part in result.content if isinstance(part, Text))
    return FinishedRun(
        id=id_, tool=run.tool, arguments=run.arguments, text=text, error=result.error
    )


def run_arguments(run: ServerToolRun) -> dict[str, JsonValue]:
    """Return the arguments of a run as an object; empty if their text is not a JSON object."""
    try:
        value: JsonValue = from_json(run.arguments)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def run_argument(run: ServerToolRun, name: str) -> str:
    """Return an argument of a run; empty if the argument is missing or is not a string."""
    value = run_arguments(run).get(name)
    return value if isinstance(value, str) else ""


def pack_run(run: FinishedRun) -> str:
    """Return a text that contains a run, for clients whose format has no field for runs."""
    return pack_struct(_PREFIX, run)


def is_packed_run(text: str) -> bool:
    """Return True if `pack_run` wrote the text."""
    return text.startswith(_PREFIX)


def unpack_run(text: str) -> FinishedRun | None:
    """Return the run in a packed text; None if the text is not a packed run or is damaged."""
    return unpack_struct(_PREFIX, text, FinishedRun) if is_packed_run(text) else None
