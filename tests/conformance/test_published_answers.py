"""Whatever a provider's published schema lets it send is read, or is an error that says what it is.

Each branch of each choice and each word of each enum is sent once.

Keeps C25, C33.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conformance.instances import Instances
from tests.references import aws_service_model, google_schema, published_schema
from tests.unit.providers.decoding import decoded
from tests.upstream import converse_events as converse
from tests.upstream import messages_events as messages
from tollgate.core.errors import UpstreamError
from tollgate.core.events import Ended, StreamEvent
from tollgate.providers.codecs.anthropic.decode import MessagesDecoder
from tollgate.providers.codecs.bedrock.decode import ConverseDecoder
from tollgate.providers.codecs.gemini.decode import GeminiDecoder
from tollgate.providers.codecs.gemini.wire import Chunk
from tollgate.providers.codecs.openai_chat.decode import ChatDecoder
from tollgate.providers.codecs.openai_responses.decode import ResponsesDecoder
from tollgate.providers.ports.base import Decoder, Frame
from tollgate.providers.transports.bedrock_runtime import EventStreamFrames


def failures(
    instances: Iterator[Any], decoder: Callable[[], Decoder], *before: Any
) -> Iterator[tuple[Any, str]]:
    """The instances that are errors, each with its words; nothing else may be raised."""
    for instance in instances:
        reading = decoder()
        try:
            for payload in (*before, instance):
                list(reading.feed(Frame(data=json.dumps(payload).encode())))
        except UpstreamError as error:
            yield instance, error.message


def test_every_event_of_messages_is_read() -> None:
    events = Instances(published_schema("anthropic.messages.stream_event"))
    broken = failures(iter(events), lambda: MessagesDecoder("a"), messages.start())
    in_their_place = ("in the wrong place", "has not begun", "without a stop reason")
    assert [words for _, words in broken if not any(each in words for each in in_their_place)] == []


def first_choice(chunk: dict[str, Any]) -> dict[str, Any]:
    return chunk | {"choices": [choice | {"index": 0} for choice in chunk.get("choices", ())]}


def test_every_chunk_of_chat_completions_is_read() -> None:
    schema = published_schema("openai.chat_completions.stream_chunk")
    whole = map(first_choice, Instances(schema))
    broken = {words for _, words in failures(whole, lambda: ChatDecoder("a"))}
    assert all("a call in the deprecated function_call" in words for words in broken)


def test_every_event_of_responses_is_read_or_told_as_what_nobody_asked_for() -> None:
    events = Instances(published_schema("openai.responses.stream_event"))
    failed = failures(iter(events), lambda: ResponsesDecoder("a", signer=None))
    broken = {json.dumps(event) for event, _ in failed}
    read = {event["type"] for event in events if json.dumps(event) not in broken}
    assert read == {
        "response.completed",
        "response.content_part.added",
        "response.content_part.done",
        "response.created",
        "response.custom_tool_call_input.done",
        "response.function_call_arguments.done",
        "response.in_progress",
        "response.incomplete",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.annotation.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.queued",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
        "response.refusal.delta",
        "response.refusal.done",
    }


def test_every_chunk_of_gemini_is_read_unless_it_holds_what_no_answer_can() -> None:
    chunks = map(first_candidate, Instances(google_schema("GenerateContentResponse")))
    broken = {words for _, words in failures(chunks, lambda: GeminiDecoder("g"))}
    told = ("which an answer cannot have", "of unknown form", "a piece of a call")
    assert [words for words in broken if not any(each in words for each in told)] == []


def first_candidate(chunk: dict[str, Any]) -> dict[str, Any]:
    return chunk | {"candidates": [each | {"index": 0} for each in chunk.get("candidates", ())]}


def ended(decoder: Decoder, *frames: Frame) -> str:
    """The finish, or `error`."""
    try:
        events: list[StreamEvent] = decoded(decoder, frames)
    except UpstreamError:
        return "error"
    return next(event.finish for event in events if isinstance(event, Ended))


def words_of(schema: dict[str, Any], type_: str, field: str) -> list[str]:
    return list(schema["$defs"][f"GoogleCloudAiplatformV1{type_}"]["properties"][field]["enum"])


def test_every_reason_of_gemini_has_a_meaning() -> None:
    schema = google_schema("GenerateContentResponse")
    said = {"content": {"parts": [{"text": "Hi"}]}}
    meanings = {
        reason: ended(
            GeminiDecoder("g"),
            Frame(data=json.dumps({"candidates": [said | {"finishReason": reason}]}).encode()),
        )
        for reason in words_of(schema, "Candidate", "finishReason")
    }
    unclear = {"FINISH_REASON_UNSPECIFIED", "OTHER", "IMAGE_OTHER", "NO_IMAGE", "CONTINUATION"}
    assert {reason for reason, finish in meanings.items() if finish == "stop"} == {"STOP"} | unclear
    assert {reason for reason, finish in meanings.items() if finish == "error"} == {
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
    }


def test_every_reason_for_which_gemini_blocks_a_prompt_is_a_filter() -> None:
    schema = google_schema("GenerateContentResponse")
    feedback = "GenerateContentResponsePromptFeedback"
    for reason in words_of(schema, feedback, "blockReason"):
        blocked = json.dumps({"promptFeedback": {"blockReason": reason}}).encode()
        assert Chunk.model_validate_json(blocked).feedback is not None
        assert ended(GeminiDecoder("g"), Frame(data=blocked)) == "content_filter"


@pytest.fixture(scope="module")
def shapes() -> dict[str, Any]:
    """The shapes of Bedrock's runtime."""
    found: dict[str, Any] = aws_service_model("bedrock-runtime")["shapes"]
    return found


def test_every_stop_reason_of_converse_has_a_meaning(shapes: dict[str, Any]) -> None:
    meanings = {}
    for reason in shapes["StopReason"]["enum"]:
        framing = EventStreamFrames()
        frames = framing.feed(converse.text_delta("Hi") + converse.message_stop(reason))
        meanings[reason] = ended(ConverseDecoder("aws", signer=None), *frames)
    assert {reason for reason, finish in meanings.items() if finish == "stop"} == {
        "end_turn",
        "stop_sequence",
    }


def test_every_exception_in_a_stream_of_converse_is_an_error(shapes: dict[str, Any]) -> None:
    members = shapes["ConverseStreamOutput"]["members"]
    exceptions = [name for name in members if name.endswith("Exception")]
    assert len(exceptions) >= 5
    for name in exceptions:
        frames = EventStreamFrames().feed(converse.exception(name, "no"))
        assert ended(ConverseDecoder("aws", signer=None), *frames) == "error"


@pytest.mark.parametrize("piece", ["toolResult", "image"])
def test_what_converse_may_send_and_nobody_asked_for_is_an_error(
    shapes: dict[str, Any], piece: str
) -> None:
    for shape in ("ContentBlockStart", "ContentBlockDelta"):
        assert piece in shapes[shape]["members"]
        kind, field = {
            "ContentBlockStart": ("contentBlockStart", "start"),
            "ContentBlockDelta": ("contentBlockDelta", "delta"),
        }[shape]
        event = converse.event(kind, {"contentBlockIndex": 0, field: {piece: {}}})
        frames = EventStreamFrames().feed(event + converse.message_stop())
        assert ended(ConverseDecoder("aws", signer=None), *frames) == "error"
