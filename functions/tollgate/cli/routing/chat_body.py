"""Chat requests built from command-line options, for planning only."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct, field
from pydantic import JsonValue
from pydantic_core import to_json

from tollgate.core.errors import GatewayError
from tollgate.ingress.chat_completions.parse import parse
from tollgate.routing.planning.prompt_size import BYTES_PER_TOKEN_TYPICAL, PromptSize

Feature = Literal["audio", "image", "pdf", "structured_output", "tools"]
# The smallest valid media: a one-pixel GIF, the header of a PDF, an empty WAV file.
_PIXEL: Final = "data:image/gif;base64,R0lGODlhAQABAAAAACw="
_PAGE: Final = "data:application/pdf;base64,JVBERi0xLjQK"
_SILENCE: Final = "UklGRgAAAABXQVZF"
_PARTS: Final[Mapping[str, JsonValue]] = {
    "audio": {"type": "input_audio", "input_audio": {"data": _SILENCE, "format": "wav"}},
    "image": {"type": "image_url", "image_url": {"url": _PIXEL}},
    "pdf": {"type": "file", "file": {"file_data": _PAGE, "filename": "page.pdf"}},
}
_FIELDS: Final[Mapping[str, Mapping[str, JsonValue]]] = {
    "structured_output": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}
    },
    "tools": {"tools": [{"type": "function", "function": {"name": "a"}}]},
}

_EMPTY: Final[dict[str, JsonValue]] = {"role": "user", "content": ""}


class Described(Struct, frozen=True, kw_only=True):
    """A request built from command-line options; a field that is None leaves the body unchanged."""

    model: str | None = None
    prompt_tokens: int | None = None
    output_tokens_max: int | None = None
    has: Sequence[Feature] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    session: str | None = None

    def named(self, given: Mapping[str, JsonValue]) -> bytes:
        """Return `given`, a request in any format, with the options' model and session if set."""
        options = {"model": self.model, "session_id": self.session}
        return to_json({**given, **{name: value for name, value in options.items() if value}})

    def body(self, given: Mapping[str, JsonValue]) -> bytes:
        """Return the body: the fields in `given`, overridden by the options."""
        options: dict[str, JsonValue] = {
            "model": self.model,
            "max_tokens": self.output_tokens_max,
            "metadata": dict(self.metadata) or None,
            "session_id": self.session,
        }
        body: dict[str, JsonValue] = {
            "messages": [_EMPTY],
            **given,
            **{name: value for name, value in options.items() if value is not None},
        }
        for feature in self.has:
            body.update(_FIELDS.get(feature, {}))
        parts = [_PARTS[feature] for feature in self.has if feature in _PARTS]
        if parts:
            body["messages"] = [*_messages(body), {"role": "user", "content": parts}]
        # Content that is only text stays a string, because some endpoints accept nothing else.
        messages = [] if body["messages"] == [_EMPTY] else _messages(body)
        missing_tokens = (self.prompt_tokens or 0) - _estimate(
            {**body, "messages": [*messages, _EMPTY]}
        )
        if missing_tokens > 0:
            text = "x" * (missing_tokens * BYTES_PER_TOKEN_TYPICAL)
            body["messages"] = [*messages, {**_EMPTY, "content": text}]
        return to_json(body)


def _estimate(body: Mapping[str, JsonValue]) -> int:
    """Return the planner's estimate in tokens; 0 for an invalid body, which is refused later."""
    try:
        return PromptSize.of(parse(to_json(body)).request).estimate
    except GatewayError:
        return 0


def _messages(body: Mapping[str, JsonValue]) -> list[JsonValue]:
    messages = body["messages"]
    return messages if isinstance(messages, list) else []
