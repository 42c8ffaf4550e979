"""Parses the input of a Responses request into core messages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, assert_never

from msgspec.structs import replace

from tollgate.core.content import (
    Document,
    Image,
    InlineMedia,
    MediaUrl,
    Provenance,
    Reasoning,
    Refusal,
    ResultContent,
    Text,
    ToolCall,
)
from tollgate.core.files.media_types import kind_of
from tollgate.core.reasoning_details import read_detail
from tollgate.core.request import (
    AssistantContent,
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.core.signers import OPENAI, OPENAI_COMPACTIONS
from tollgate.ingress.responses.tools import ToolNames
from tollgate.ingress.responses.unknown import fields_of_text, own_item
from tollgate.ingress.responses.wire import input_items as wire
from tollgate.ingress.shared.media import (
    DATA_URL,
    WORDS,
    MediaCount,
    field_refusal,
    parse_address,
    parse_file_id,
    parse_inline,
)
from tollgate.ingress.shared.signatures import Packed, is_packed, unpack
from tollgate.ingress.shared.tool_runs import FinishedRun, unpack_run
from tollgate.ingress.shared.wire.request_model import unknown_of

_BETWEEN_SUMMARIES: Final = "\n\n"


def parse_input(
    items: Sequence[tuple[str, wire.Item]], instructions: str | None, names: ToolNames
) -> tuple[Message, ...]:
    """Parse the instructions and the items, each with its field path.

    Raises RequestError with the field at fault.
    """
    first: list[Message] = (
        [SystemMessage(role="developer", content=(Text(text=instructions),))]
        if instructions
        else []
    )
    conversation = _Conversation(names, dict(_proofs_of_calls(item for _, item in items)))
    for path, item in items:
        conversation.add(item, path)
    messages = conversation.finish()
    if not messages:
        raise field_refusal("input", "must contain an item that is not ignored")
    return (*first, *messages)


class _Conversation:
    """Collects the messages; the items of one answer become one message."""

    def __init__(self, names: ToolNames, proofs: Mapping[str, Provenance]) -> None:
        self._messages: list[Message] = []
        self._answer: list[AssistantContent] = []
        self._results: list[ToolMessage] = []
        """The results of the server tool runs in the current answer; they follow that answer."""
        self._has_call = False
        self._names = names
        self._proofs = proofs
        self._count = MediaCount()
        self._open_calls: set[str] = set()

    def add(self, item: wire.Item, path: str) -> None:
        match item:
            case wire.MessageItem():
                self._add_message(item, path)
            case wire.FunctionCallItem():
                self._call(item, item.arguments, is_text=False)
            case wire.CustomToolCallItem():
                self._call(item, item.input, is_text=True)
            case wire.CallOutputItem():
                self._add_output(item, path)
            case wire.ReasoningItem():
                self._say(_thoughts(item))
            case wire.SearchItem() | wire.ToolRunItem():
                self._run(item)
            case wire.OtherItem():
                self._say(own_item(item))
            case wire.CompactionItem():
                # `open_input` leaves only items of providers, from sealed content.
                data = item.encrypted_content
                made = Provenance(signer=OPENAI_COMPACTIONS, data=data, is_compaction=True)
                self._say([Reasoning(text="", provenance=made)])
            case wire.AddedToolsItem() | wire.ItemReference() | wire.LeftOutItem():
                pass
            case wire.CompactionTrigger():
                # `open_input` has removed the trigger.
                pass
            case _:
                assert_never(item)

    def finish(self) -> list[Message]:
        self._end_answer()
        return self._messages

    def _end_answer(self) -> None:
        if self._answer:
            self._messages.append(AssistantMessage(content=tuple(self._answer)))
            self._answer = []
        self._messages += self._results
        self._results = []
        self._has_call = False

    def _say(self, content: Iterable[Text | Refusal | Reasoning]) -> None:
        """Add text or reasoning; content that follows runs starts the next round."""
        parts = [*content]
        # Answers that call one of the caller's tools are not split, because the result must
        # directly follow the call.
        if parts and self._results and not self._has_call:
            self._end_answer()
        self._answer += parts

    def _run(self, item: wire.SearchItem | wire.ToolRunItem) -> None:
        run = read_run(item)
        if run is None:
            return
        self._answer.append(run.call)
        self._results.append(run.result)

    def _add_message(self, item: wire.MessageItem, path: str) -> None:
        match item.role:
            case "assistant":
                self._say(_said(item, f"{path}.content"))
                return
            case "user":
                content = tuple(self._content(item.content, f"{path}.content"))
                message: Message = UserMessage(content=content, native=unknown_of(item))
            case "system" | "developer":
                texts = tuple(_texts(item.content, f"{path}.content"))
                message = SystemMessage(role=item.role, content=texts, native=unknown_of(item))
            case _:
                assert_never(item.role)
        self._end_answer()
        self._messages.append(message)

    def _call(
        self,
        item: wire.FunctionCallItem | wire.CustomToolCallItem,
        arguments: str,
        *,
        is_text: bool,
    ) -> None:
        self._open_calls.add(item.call_id)
        self._has_call = True
        self._answer.append(
            ToolCall(
                id=item.call_id,
                name=self._names.name_of(item.name, item.namespace),
                arguments=arguments,
                is_text=is_text,
                provenance=self._proofs.get(item.call_id),
                native=unknown_of(item),
            )
        )

    def _add_output(self, item: wire.CallOutputItem, path: str) -> None:
        if item.call_id not in self._open_calls:
            raise field_refusal(
                f"{path}.call_id",
                "must be the `call_id` of an earlier call in `input` that has no output yet",
            )
        self._open_calls.remove(item.call_id)
        self._end_answer()
        content = tuple(self._content(item.output, f"{path}.output"))
        native = unknown_of(item)
        self._messages.append(ToolMessage(call_id=item.call_id, content=content, native=native))

    def _content(self, content: str | list[wire.InputPart], path: str) -> Iterator[ResultContent]:
        if isinstance(content, str):
            yield Text(text=content)
            return
        for number, part in enumerate(content):
            part_path = f"{path}[{number}]"
            match part:
                case wire.InputText(text=text):
                    yield Text(text=text, native=unknown_of(part))
                case wire.InputImage():
                    self._count.add(part_path)
                    yield _image(part, part_path)
                case wire.InputFile():
                    self._count.add(part_path)
                    yield _file(part, part_path)
                case wire.InputRefusal():
                    raise field_refusal(f"{part_path}.type", "must not be 'refusal' here")
                case _:
                    assert_never(part)


def read_run(item: wire.SearchItem | wire.ToolRunItem) -> FinishedRun | None:
    """Return the server tool run in an item; None for a search that the gateway did not run."""
    if isinstance(item, wire.SearchItem):
        return unpack_run(item.encrypted_content or "")
    error = "unavailable" if item.status == "failed" else None
    return FinishedRun(
        id=item.id, tool=item.name, arguments=item.arguments, text=item.output or "", error=error
    )


def _said(item: wire.MessageItem, path: str) -> Iterator[Text | Refusal]:
    content = item.content
    if isinstance(content, str):
        content = [wire.InputText(type="output_text", text=content)]
    for number, part in enumerate(content):
        match part:
            case wire.InputText(text=text):
                # Clients send back empty strings, which providers refuse.
                if text:
                    yield Text(text=text, native=fields_of_text(item, part))
            case wire.InputRefusal(refusal=words):
                yield Refusal(text=words)
            case wire.InputImage() | wire.InputFile():
                raise field_refusal(
                    f"{path}[{number}].type", "must be 'output_text' or 'refusal' in an answer"
                )
            case _:
                assert_never(part)


def _texts(content: str | list[wire.InputPart], path: str) -> Iterator[Text]:
    if isinstance(content, str):
        yield Text(text=content)
        return
    for number, part in enumerate(content):
        if not isinstance(part, wire.InputText):
            raise field_refusal(f"{path}[{number}].type", "must be 'input_text' in instructions")
        yield Text(text=part.text, native=unknown_of(part))


def _image(part: wire.InputImage, path: str) -> Image:
    # Only OpenAI supports the detail `original`, so `high` is sent, the highest that all formats
    # support.
    detail = "high" if part.detail == "original" else part.detail
    native = unknown_of(part)
    if part.file_id is not None:
        if part.image_url is not None:
            raise field_refusal(path, "must have exactly one of image_url and file_id")
        return Image(source=parse_file_id(part.file_id, path), detail=detail, native=native)
    if part.image_url is None:
        raise field_refusal(f"{path}.image_url", "is required")
    source = _source(part.image_url, f"{path}.image_url")
    if isinstance(source, InlineMedia) and kind_of(source.media_type) != "image":
        raise field_refusal(f"{path}.image_url", f"must be {WORDS['image']}")
    return Image(source=source, detail=detail, native=native)


def _source(url: str, path: str) -> InlineMedia | MediaUrl:
    return parse_inline(url, None, path) if DATA_URL.match(url) else parse_address(url, path)


def _file(part: wire.InputFile, path: str) -> Image | Document:
    sources = [part.file_data, part.file_url, part.file_id]
    if sum(value is not None for value in sources) != 1:
        raise field_refusal(path, "must have exactly one of file_data, file_url and file_id")
    if part.file_id is not None:
        source = parse_file_id(part.file_id, path)
        return Document(source=source, filename=part.filename)
    if part.file_url is not None:
        address = _source(part.file_url, f"{path}.file_url")
        return Document(source=address, filename=part.filename)
    content = parse_inline(part.file_data or "", None, f"{path}.file_data")
    match kind_of(content.media_type):
        case "image":
            return Image(source=content)
        case "document":
            return Document(source=content, filename=part.filename)
        case "audio":
            raise field_refusal(f"{path}.file_data", f"must be {WORDS['document']}")


def _thoughts(item: wire.ReasoningItem) -> Iterator[Reasoning]:
    """Yield the reasoning in an item; reasoning without a signer's data is unsigned."""
    summaries = [piece.text for piece in item.summary or ()]
    texts = [piece.text for piece in item.content or ()]
    sealed = item.encrypted_content
    if item.format is not None:
        text = _BETWEEN_SUMMARIES.join((*summaries, *texts))
        yield read_detail({**item.model_dump(), "text": text, "data": sealed})
        return
    id_, packed = item.id, _unpacked(sealed)
    if packed is not None and _is_own(packed):
        # Items in stored responses have Tollgate's ids; the packed content has OpenAI's id.
        id_, sealed, packed = packed.provenance.id, packed.provenance.data, None
    if packed is not None:
        if packed.call_id is None:
            for text in [*summaries, *texts] or [""]:
                yield Reasoning(text=text, provenance=packed.provenance)
        return
    if not sealed or is_packed(sealed):
        yield from (Reasoning(text=text) for text in (*summaries, *texts) if text)
        return
    if id_ is None:
        # Without an id, separate parts could not be joined again, so one part has everything.
        provenance = Provenance(signer=OPENAI, data=sealed, is_summary=bool(summaries))
        yield Reasoning(text=_BETWEEN_SUMMARIES.join((*summaries, *texts)), provenance=provenance)
        return
    own_provenance = Provenance(signer=OPENAI, id=id_)
    yield from (
        Reasoning(text=text, provenance=replace(own_provenance, is_summary=True))
        for text in summaries
    )
    yield from (Reasoning(text=text, provenance=own_provenance) for text in texts)
    yield Reasoning(text="", provenance=replace(own_provenance, data=sealed))


def _is_own(packed: Packed) -> bool:
    """Return True if only the id and encrypted content of an OpenAI item are packed."""
    provenance = packed.provenance
    own_provenance = Provenance(signer=OPENAI, id=provenance.id, data=provenance.data)
    return (
        packed.call_id is None
        and provenance == own_provenance
        and None not in (provenance.id, provenance.data)
    )


def _unpacked(sealed: str | None) -> Packed | None:
    return unpack(sealed) if sealed and is_packed(sealed) else None


def _proofs_of_calls(items: Iterable[wire.Item]) -> Iterator[tuple[str, Provenance]]:
    """Yield the ids of signed calls, each with the signer's data from a reasoning item."""
    for item in items:
        if isinstance(item, wire.ReasoningItem):
            packed = _unpacked(item.encrypted_content)
            if packed is not None and packed.call_id is not None:
                yield packed.call_id, packed.provenance
