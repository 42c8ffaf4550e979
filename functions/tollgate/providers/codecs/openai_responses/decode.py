"""The decoder for streams in OpenAI's Responses format."""

from collections.abc import Callable, Generator, Iterator
from typing import Final

from msgspec.structs import replace
from pydantic_core import ValidationError

from tollgate.core.content import Part, Provenance, Reasoning, Refusal, Text, ToolCall
from tollgate.core.events import (
    Citation,
    Ended,
    Finish,
    LogProbs,
    Started,
    StreamEvent,
    UnknownFields,
    UsageReported,
)
from tollgate.core.json_value import JsonValue
from tollgate.core.response_items import ITEM_KINDS
from tollgate.providers.codecs.openai_responses.compaction import OBJECT, compaction_of
from tollgate.providers.codecs.openai_responses.notes import citation, log_probs
from tollgate.providers.codecs.openai_responses.unknown import (
    unknown_event,
    unknown_item,
    unknown_of_event,
)
from tollgate.providers.codecs.openai_responses.wire import (
    BETWEEN_SUMMARIES,
    Annotation,
    Content,
    Event,
    Item,
    Response,
)
from tollgate.providers.ports.base import Frame
from tollgate.providers.shared.openai_errors import parse_openai_stream_error
from tollgate.providers.shared.openai_usage import responses_usage_of
from tollgate.providers.shared.parts import OpenPart, Parts
from tollgate.providers.shared.refusals import early_close_error, malformed_error

# Finish reasons of incomplete responses; an unknown reason counts as `length`.
_INCOMPLETE: Final[dict[str, Finish]] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
# Events that are ignored, because they repeat other events or have no content of the answer. OpenAI
# does not document `keepalive`: https://github.com/openai/openai-node/issues/1964
_SILENT: Final = frozenset(
    {
        "keepalive",
        "response.content_part.added",
        "response.content_part.done",
        "response.custom_tool_call_input.done",
        "response.function_call_arguments.done",
        "response.in_progress",
        "response.output_text.done",
        "response.queued",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
        "response.reasoning_summary_text.done",
        "response.reasoning_text.done",
        "response.refusal.done",
    }
)
# The prefix of the events of the provider's own search, which only repeat the search's item.
_SEARCH: Final = "response.web_search_call."
# The encrypted content of a reasoning item has this number, and the texts have numbers from 0.
_HIDDEN: Final = -1

# The index of an output item, and the number of a content part within the item.
_Place = tuple[int, int]
_TEXT: Final = Text(text="")


class ResponsesDecoder:
    """Decodes one stream, or a response from a server that does not stream."""

    def __init__(
        self, provider: str, *, signer: str | None, searches: bool = False, passes: bool = False
    ) -> None:
        self._provider = provider
        # True if unknown fields are passed on.
        self._passes = passes
        # Indexes of the complete items of unknown type.
        self._passed: set[int] = set()
        # True if the provider may search.
        self._searches = searches
        # Indexes of the output items that were searches.
        self._searched: set[int] = set()
        self._signer = signer
        # The id of each reasoning item, by the item's index.
        self._thought_ids: dict[int, str | None] = {}
        self._started = False
        self._parts = Parts[_Place, OpenPart]()
        # The places whose part was streamed. Complete items repeat these parts; the repetition is
        # skipped.
        self._known: set[_Place] = set()
        self._final: Response | None = None
        self._readers: dict[str, Callable[[Event], Iterator[StreamEvent]]] = {
            "response.created": self._start,
            "response.output_item.added": self._item_added,
            "response.output_item.done": self._item_done,
            "response.output_text.delta": self._text_delta,
            "response.output_text.annotation.added": self._annotated,
            "response.refusal.delta": self._refusal_delta,
            "response.reasoning_summary_text.delta": self._summary_delta,
            "response.reasoning_text.delta": self._thought_delta,
            "response.custom_tool_call_input.delta": self._arguments_delta,
            "response.function_call_arguments.delta": self._arguments_delta,
            "response.completed": self._finish,
            "response.incomplete": self._finish,
            "response.failed": self._failed,
        }

    def feed(self, frame: Frame) -> Iterator[StreamEvent]:
        """Yield the events of one SSE event, or of a whole response."""
        data = frame.data.strip()
        if not data or data == b"[DONE]":
            return
        try:
            event = Event.model_validate_json(data)
        except ValidationError:
            yield from self._unlike_events(data)
            return
        if event.type == "error" or event.error is not None:
            error: JsonValue = {"code": event.code, "message": event.message}
            raise parse_openai_stream_error(event.error or error, self._provider)
        if self._passes:
            yield from unknown_of_event(event)
        reader = self._readers.get(event.type)
        if reader is not None:
            yield from reader(event)
        elif event.type not in _SILENT and not (self._searches and event.type.startswith(_SEARCH)):
            yield self._unknown(data)

    def end(self) -> Iterator[StreamEvent]:
        if self._final is None:
            raise early_close_error(self._provider)
        yield from self._parts.close_all()
        details = self._final.incomplete_details
        if self._final.status == "incomplete":
            reason = (details.reason if details else None) or "incomplete"
            yield Ended(finish=_INCOMPLETE.get(reason, "length"), raw_finish=reason)
            return
        yield Ended(
            finish="tool_calls" if self._parts.has_calls else "stop", raw_finish="completed"
        )

    def _unknown(self, data: bytes) -> UnknownFields:
        """Return an event of unknown type; raise UpstreamError if none may arrive at this point."""
        event = unknown_event(data)
        if event is None or event.place in {"error", *self._readers, *_SILENT}:
            raise malformed_error(self._provider, "an event that cannot be read")
        if event.place.startswith(_SEARCH) or not self._started or self._final is not None:
            raise malformed_error(self._provider, "an event that was not requested")
        return event

    def _unlike_events(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield the events of a whole response, or of an event with fields of unknown form."""
        try:
            response = Response.model_validate_json(data)
        except ValidationError:
            response = Response()
        if response.object == OBJECT:
            yield from self._compacted(response)
            return
        if response.status is None:
            if response.error is not None:
                raise parse_openai_stream_error(response.error, self._provider)
            yield self._unknown(data)
            return
        event = Event(type="response.completed", response=response)
        if self._passes:
            yield from unknown_of_event(event)
        yield from self._finish(event)

    def _start(self, event: Event) -> Iterator[StreamEvent]:
        if not self._started:
            self._started = True
            response = event.response or Response()
            yield Started(
                upstream_id=response.id,
                served_model=response.model,
                service_tier=response.service_tier,
            )

    def _finish(self, event: Event) -> Iterator[StreamEvent]:
        response = event.response
        if response is None:
            raise malformed_error(self._provider, "a final event without a response")
        if response.status not in ("completed", "incomplete"):
            yield from self._failed(event)
        yield from self._start(event)
        for index, item in enumerate(response.output):
            yield from self._item_completed(index, item)
        if response.usage is not None:
            # The tier is `auto` in the first event; the last event names the tier that was used.
            yield self._usage_reported(response.usage, response.service_tier)
        self._final = response

    def _compacted(self, response: Response) -> Iterator[StreamEvent]:
        yield from self._start(Event(type=OBJECT, response=response))
        made = compaction_of(response, self._provider)
        opened = yield from self._open((0, _HIDDEN), Reasoning(text="", provenance=made))
        opened.provenance = made
        if response.usage is not None:
            yield self._usage_reported(response.usage, response.service_tier)
        self._final = response

    def _failed(self, event: Event) -> Iterator[StreamEvent]:
        response = event.response or Response()
        if response.usage is not None:
            # OpenAI bills the tokens that the model generated before the failure.
            yield from self._start(event)
            yield self._usage_reported(response.usage, response.service_tier)
        raise parse_openai_stream_error(response.error, self._provider)

    def _item_added(self, event: Event) -> Iterator[StreamEvent]:
        item = self._item(event)
        place = (event.output_index, 0)
        match item.type:
            case "function_call" | "custom_tool_call":
                yield from self._open(place, self._call(item))
            case "reasoning":
                self._thought_ids[event.output_index] = item.id
            case "message":
                pass
            case "web_search_call" if self._searches:
                pass
            case type_ if type_ not in ITEM_KINDS:
                yield from self._open(place, Reasoning(text="", provenance=unknown_item(item)))
            case _:
                raise malformed_error(self._provider, "an item that was not requested")

    def _item_done(self, event: Event) -> Iterator[StreamEvent]:
        yield from self._item_completed(event.output_index, self._item(event))

    def _item_completed(self, index: int, item: Item) -> Iterator[StreamEvent]:
        """Yield the events for a complete item, without the content that was streamed before."""
        place = (index, 0)
        match item.type:
            case "function_call" | "custom_tool_call":
                if place not in self._known:
                    call = self._call(item)
                    whole = item.input if call.is_text else item.arguments
                    yield from self._text(place, call, whole)
                yield from self._parts.close(place)
            case "reasoning":
                yield from self._reasoned(index, item)
            case "message":
                for number, content in enumerate(item.content or ()):
                    yield from self._content((index, number), content)
                    yield from self._parts.close((index, number))
            case "web_search_call" if self._searches:
                # OpenAI bills searches only, and not the actions `open_page` and `find_in_page`.
                if item.action is None or item.action.type in (None, "search"):
                    self._searched.add(index)
            case type_ if type_ not in ITEM_KINDS:
                if index not in self._passed:
                    self._passed.add(index)
                    own = unknown_item(item)
                    opened = yield from self._open(place, Reasoning(text="", provenance=own))
                    opened.provenance = own
                    yield from self._parts.close(place)
            case _:
                raise malformed_error(self._provider, "an item that was not requested")

    def _reasoned(self, index: int, item: Item) -> Iterator[StreamEvent]:
        """Yield the texts that were not streamed, and then the encrypted content as a part."""
        self._thought_ids[index] = item.id
        summaries = [piece.text for piece in item.summary or () if piece.text]
        texts = summaries or [piece.text for piece in item.content or () if piece.text]
        for number, text in enumerate(texts):
            if (index, number) not in self._known:
                yield from self._thought((index, number), text, is_summary=bool(summaries))
            yield from self._parts.close((index, number))
        hidden = (index, _HIDDEN)
        if item.encrypted_content and hidden not in self._known:
            signed = self._provenance(index, data=item.encrypted_content)
            yield from self._open(hidden, Reasoning(text="", provenance=signed))
        yield from self._parts.close(hidden)

    def _provenance(
        self, index: int, *, data: str | None = None, is_summary: bool = False
    ) -> Provenance:
        id_ = self._thought_ids.get(index)
        return Provenance(signer=self._signer, id=id_, data=data, is_summary=is_summary)

    def _thought(self, place: _Place, text: str, *, is_summary: bool) -> Iterator[StreamEvent]:
        """Yield more of a summary or of a thought; each summary and each thought is a part."""
        index, number = place
        if number and place not in self._known:
            # Clients that join all reasoning into one text need a separator between summaries.
            text = BETWEEN_SUMMARIES + text
        signed = self._provenance(index, is_summary=is_summary)
        yield from self._text(place, Reasoning(text="", provenance=signed), text)

    def _content(self, place: _Place, content: Content) -> Iterator[StreamEvent]:
        part: Text | Refusal
        match content.type:
            case "output_text":
                part, text = Text(text=""), content.text
            case "refusal":
                part, text = Refusal(text=""), content.refusal
            case _:
                raise malformed_error(self._provider, "content of unknown kind")
        if not text or place in self._known:
            return
        opened = yield from self._text(place, part, text)
        yield from map(opened.note, _notes(content.logprobs, *(content.annotations or ())))

    def _text_delta(self, event: Event) -> Iterator[StreamEvent]:
        place = (event.output_index, event.content_index)
        if event.delta:
            opened = yield from self._text(place, _TEXT, event.delta)
            if event.logprobs:
                yield from map(opened.note, _notes(event.logprobs))

    def _refusal_delta(self, event: Event) -> Iterator[StreamEvent]:
        place = (event.output_index, event.content_index)
        if event.delta:
            yield from self._text(place, Refusal(text=""), event.delta)

    def _summary_delta(self, event: Event) -> Iterator[StreamEvent]:
        if event.delta:
            place = (event.output_index, event.summary_index)
            yield from self._thought(place, event.delta, is_summary=True)

    def _thought_delta(self, event: Event) -> Iterator[StreamEvent]:
        if event.delta:
            place = (event.output_index, event.content_index)
            yield from self._thought(place, event.delta, is_summary=False)

    def _arguments_delta(self, event: Event) -> Iterator[StreamEvent]:
        opened = self._parts.get((event.output_index, 0))
        if opened is None:
            raise malformed_error(self._provider, "a piece of a call that has no name")
        if event.delta:
            yield opened.add(event.delta)

    def _annotated(self, event: Event) -> Iterator[StreamEvent]:
        opened = self._parts.get((event.output_index, event.content_index))
        if opened is not None and event.annotation is not None:
            yield from map(opened.note, _notes(None, event.annotation))

    def _text(
        self, place: _Place, part: Part, text: str | None
    ) -> Generator[StreamEvent, None, OpenPart]:
        """Yield more text for a place, and return its part, which is opened first if necessary."""
        opened = self._parts.get(place) or (yield from self._open(place, part))
        if text:
            yield opened.add(text)
        return opened

    def _open(self, place: _Place, part: Part) -> Generator[StreamEvent, None, OpenPart]:
        """Return the part at a place, and open it first if necessary."""
        opened = self._parts.get(place)
        if opened is None:
            opened = OpenPart(part=part)
            self._known.add(place)
            yield from self._parts.open(place, opened)
        return opened

    def _item(self, event: Event) -> Item:
        if event.item is None:
            raise malformed_error(self._provider, "an event without its item")
        return event.item

    def _usage_reported(self, raw: dict[str, JsonValue], tier: str | None) -> UsageReported:
        usage = responses_usage_of(raw)
        if self._searched:
            # OpenAI's usage report does not include searches.
            usage = replace(usage, web_searches=len(self._searched))
        return UsageReported(usage=usage, raw=raw, service_tier=tier)

    def _call(self, item: Item) -> ToolCall:
        if not item.call_id or not item.name:
            raise malformed_error(self._provider, "a call that has no name")
        is_text = item.type == "custom_tool_call"
        return ToolCall(id=item.call_id, name=item.name, arguments="", is_text=is_text)


def _notes(
    logprobs: list[dict[str, JsonValue]] | None, *annotations: Annotation
) -> Iterator[LogProbs | Citation]:
    """Yield the log probabilities and the citations."""
    if (probabilities := log_probs(logprobs)) is not None:
        yield probabilities
    for annotation in annotations:
        if (cited := citation(annotation)) is not None:
            yield cited
