"""Models for input items in a Responses request.

https://platform.openai.com/docs/api-reference/responses/create (2026-11-22), and Codex.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag

from tollgate.core.content import ServerToolId
from tollgate.core.response_items import ITEM_KINDS
from tollgate.ingress.responses.wire.tool_models import Tool
from tollgate.ingress.shared.wire.request_fields import TOOLS_MAX
from tollgate.ingress.shared.wire.request_model import (
    NAME_LENGTH_MAX,
    Name,
    String,
    Wire,
    by_shape,
    tag_of,
)

PARTS_MAX: Final = 10_000


class InputText(Wire):
    """Text."""

    type: Literal["input_text", "output_text", "text"]
    text: str
    annotations: list[Any] | None = Field(default=None, description="Has no effect.")
    logprobs: list[Any] | None = Field(default=None, description="Has no effect.")


class InputRefusal(Wire):
    """A model's refusal."""

    type: Literal["refusal"]
    refusal: str


class InputImage(Wire):
    """An image: a URL, a data URL or a file id."""

    type: Literal["input_image"]
    image_url: str | None = None
    file_id: str | None = None
    detail: Literal["auto", "low", "high", "original"] | None = None


class InputFile(Wire):
    """A file: its content, a URL or a file id."""

    type: Literal["input_file"]
    file_data: str | None = None
    file_url: str | None = None
    file_id: str | None = None
    filename: str | None = None


_KINDS: Final = {"output_text": "<input_text>", "text": "<input_text>"}


def _tag_of_part(value: object) -> str | None:
    tag = tag_of(value, "type", "<input_text>")
    return None if tag is None else _KINDS.get(tag[1:-1], tag)


InputPart = Annotated[
    Annotated[InputText, Tag("<input_text>")]
    | Annotated[InputRefusal, Tag("<refusal>")]
    | Annotated[InputImage, Tag("<input_image>")]
    | Annotated[InputFile, Tag("<input_file>")],
    Discriminator(
        _tag_of_part,
        custom_error_type="unknown_type",
        custom_error_message=(
            "must be 'input_text', 'output_text', 'refusal', 'input_image' or 'input_file'"
        ),
    ),
]
_Shape: Final = by_shape("a string or an array of parts")
Content = Annotated[
    String | Annotated[list[InputPart], Field(max_length=PARTS_MAX), Tag("<array>")], _Shape
]


class Returned(Wire):
    """The base class of items from earlier answers; `id` and `status` have no effect."""

    id: str | None = None
    status: str | None = None


class MessageItem(Returned):
    """A message; `type` may be omitted, as in OpenAI's short form."""

    type: Literal["message"] | None = None
    role: Literal["user", "assistant", "system", "developer"]
    content: Content


class FunctionCallItem(Returned):
    """An earlier function call."""

    type: Literal["function_call"]
    call_id: Name
    name: Name
    namespace: Name | None = None
    arguments: str


class CustomToolCallItem(Returned):
    """An earlier call of a tool with text input."""

    type: Literal["custom_tool_call"]
    call_id: Name
    name: Name
    namespace: Name | None = None
    input: str


class CallOutputItem(Returned):
    """The result of an earlier call."""

    type: Literal["function_call_output", "custom_tool_call_output"]
    call_id: Name
    output: Content
    name: str | None = None
    namespace: str | None = None


class ThoughtText(Wire):
    """A reasoning summary or reasoning text."""

    type: Literal["summary_text", "reasoning_text", "text"]
    text: str


class ReasoningItem(Returned):
    """Reasoning from an earlier answer."""

    type: Literal["reasoning"]
    summary: Annotated[list[ThoughtText], Field(max_length=PARTS_MAX)] | None = None
    content: Annotated[list[ThoughtText], Field(max_length=PARTS_MAX)] | None = None
    encrypted_content: str | None = None
    format: Name | None = Field(
        default=None,
        description="The signer, as in `reasoning_details`, of reasoning from chat completions; "
        "`signature` or `encrypted_content` are then copied from the detail, too.",
    )
    signature: str | None = None


class AddedToolsItem(Returned):
    """Tools that are declared in the input, in addition to the field `tools`."""

    type: Literal["additional_tools", "tool_search_output"]
    role: Literal["developer"] | None = None
    tools: Annotated[list[Tool], Field(max_length=TOOLS_MAX)]
    call_id: str | None = None
    execution: str | None = None


class ItemReference(Wire):
    """A reference to an item in a stored response."""

    type: Literal["item_reference"] | None = None
    id: str

    @property
    def is_reasoning(self) -> bool:
        """True if the item is reasoning, without which a conversation is still complete."""
        return self.id.startswith("rs_")


class SearchItem(Wire):
    """A search in an earlier answer; a search that the gateway did not run is dropped."""

    type: Literal["web_search_call"]
    id: Any = None
    encrypted_content: str | None = None


class ToolRunItem(Returned):
    """A run of another server tool in an earlier answer."""

    type: Literal["mcp_call"]
    id: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX)]
    server_label: Literal["tollgate"]
    name: ServerToolId
    arguments: str
    output: str | None = None


class CompactionItem(Wire):
    """A compaction item from an earlier answer, unchanged; it stands for what preceded it."""

    type: Literal["compaction"]
    id: str | None = None
    encrypted_content: str


class CompactionTrigger(Wire):
    """The last item of an input that is to be compacted; the answer is one compaction item."""

    type: Literal["compaction_trigger"]


class LeftOutItem(Wire):
    """A call of a hosted tool in an earlier answer; the call is dropped."""

    type: Name


class OtherItem(Wire):
    """An item of a type that the gateway does not know, for providers of OpenAI's format."""

    type: Name


def _item_tag(value: object) -> str | None:
    if not isinstance(value, dict):
        return "<message>"
    match value.get("type"):
        case None:
            return "<message>" if "role" in value or "id" not in value else "<reference>"
        case str() as type_:
            kind = ITEM_KINDS.get(type_, "other")
            return None if kind == "refused" else f"<{kind}>"
        case _:
            return None


Item = Annotated[
    Annotated[MessageItem, Tag("<message>")]
    | Annotated[FunctionCallItem, Tag("<function_call>")]
    | Annotated[CustomToolCallItem, Tag("<custom_tool_call>")]
    | Annotated[CallOutputItem, Tag("<output>")]
    | Annotated[ReasoningItem, Tag("<reasoning>")]
    | Annotated[AddedToolsItem, Tag("<tools>")]
    | Annotated[ItemReference, Tag("<reference>")]
    | Annotated[SearchItem, Tag("<search>")]
    | Annotated[ToolRunItem, Tag("<run>")]
    | Annotated[CompactionItem, Tag("<compaction>")]
    | Annotated[CompactionTrigger, Tag("<trigger>")]
    | Annotated[LeftOutItem, Tag("<left_out>")]
    | Annotated[OtherItem, Tag("<other>")],
    Discriminator(
        _item_tag,
        custom_error_type="unknown_type",
        custom_error_message="must be a supported item type",
    ),
]
