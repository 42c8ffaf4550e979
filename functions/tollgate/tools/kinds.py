"""The only table of server tools, with their descriptions for models and their size limits."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tollgate.core.content import ServerToolId
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.request import (
    Tool,
)

# Maximum size of the excerpt in a search result; engines return a few hundred words.
EXCERPT_BYTES_MAX: Final = 1_500
TITLE_BYTES_MAX: Final = 200
# Longer addresses are neither shown nor fetched. Each byte of a result adds to the hold for all
# further calls to the model, and a long address could smuggle data out. Anthropic's limit is 250
# characters.
URL_BYTES_MAX: Final = 1_000
IMAGE_PROMPT_CHARACTERS_MAX: Final = 4_000
# Maximum size of the number, labels and date of a page or result, and of a failure's text.
_FRAME_BYTES: Final = 200


class ToolKind(Struct, frozen=True, kw_only=True):
    """The declaration of a tool for the model; the tool's name is its id."""

    description: str
    parameters: JsonObject


def _object(required: tuple[str, ...], **properties: dict[str, JsonValue]) -> JsonObject:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


KINDS: Final[Mapping[ServerToolId, ToolKind]] = {
    "web_search": ToolKind(
        description="Search the web. Returns titles, addresses and excerpts of the best results. "
        "Cite a result by a Markdown link to its address.",
        parameters=_object(
            ("query",), query={"type": "string", "description": "What to search for."}
        ),
    ),
    "web_fetch": ToolKind(
        description="Read a web page or a PDF by its address. Only addresses that appear in the "
        "conversation or in an earlier result can be read.",
        parameters=_object(
            ("url",), url={"type": "string", "description": "The whole address, as it appears."}
        ),
    ),
    "datetime": ToolKind(
        description="Tell the current date and time.",
        parameters=_object(
            (),
            timezone={
                "type": "string",
                "description": "A time zone of the IANA database, such as Europe/Berlin.",
            },
        ),
    ),
    "image": ToolKind(
        description="Make a picture and show it to the user. Returns only whether it was shown.",
        parameters=_object(
            ("prompt",), prompt={"type": "string", "description": "What the picture shows."}
        ),
    ),
}


def declare_kind(id_: ServerToolId) -> Tool:
    """Return the declaration of a tool for the model."""
    kind = KINDS[id_]
    return Tool(name=id_, description=kind.description, parameters=kind.parameters)


def result_bytes_max(pages: int = 0, *, bytes_per_text: int = EXCERPT_BYTES_MAX) -> int:
    """Return the maximum size of the text from a run with `pages` pages or results."""
    page = bytes_per_text + TITLE_BYTES_MAX + URL_BYTES_MAX + _FRAME_BYTES
    return pages * page + _FRAME_BYTES


def cut(text: str, bytes_max: int) -> str:
    """Return the text, truncated to `bytes_max` bytes."""
    encoded = text.encode("utf-8", errors="replace")
    return encoded[:bytes_max].decode("utf-8", errors="ignore")
