"""C37: a stream, once accumulated, is the whole reply.

Keeps C6, C37.
"""

from typing import Any

import httpx2
import openai
from hypothesis import given
from openai.lib.streaming.chat import ChatCompletionStreamState

from tests.chat_stream import accumulated, exact
from tests.strategies import event_streams, usages
from tests.unit.ingress.samples import record, renderer
from tollgate.core.events import StreamEvent
from tollgate.core.response import Fold
from tollgate.core.usage import Usage
from tollgate.ingress.chat_completions.wire.response import ChatCompletion, ChatCompletionChunk


def both(
    events: list[StreamEvent], usage: Usage, *, usage_on_finish: bool = False
) -> tuple[bytes, bytes]:
    """The stream of some events, and the whole reply that they fold into."""
    writer = renderer(usage_on_finish=usage_on_finish)
    fold = Fold()
    stream = b""
    for event in events:
        stream += writer.feed(event)
        fold.accept(event)
    written = record(usage=usage)
    return stream + writer.close(written), renderer().whole([fold.response()], written)


@given(events=event_streams(), usage=usages)
def test_c37_a_stream_accumulates_to_the_whole_reply(
    events: list[StreamEvent], usage: Usage
) -> None:
    stream, whole = both(events, usage)
    assert accumulated(stream) == exact(whole)


@given(events=event_streams(), usage=usages)
def test_c37_so_it_does_with_usage_on_the_finish_frame(
    events: list[StreamEvent], usage: Usage
) -> None:
    stream, whole = both(events, usage, usage_on_finish=True)
    assert accumulated(stream) == exact(whole)


@given(events=event_streams(), usage=usages)
def test_c6_what_is_written_is_what_is_published(events: list[StreamEvent], usage: Usage) -> None:
    stream, whole = both(events, usage)
    ChatCompletion.model_validate_json(whole)
    for frame in stream.split(b"\n\n")[:-2]:
        ChatCompletionChunk.model_validate_json(frame.removeprefix(b"data: "))


class Replay:
    """An OpenAI client whose server answers with the bytes it was given last."""

    def __init__(self) -> None:
        self.body = b""
        self.content_type = ""
        self.client = openai.OpenAI(
            api_key="sk-tg-test",
            base_url="http://replay.invalid/v1",
            max_retries=0,
            http_client=httpx2.Client(transport=httpx2.MockTransport(self._answer)),
        )

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=self.body, headers={"content-type": self.content_type})

    def whole(self, body: bytes) -> dict[str, Any]:
        self.body, self.content_type = body, "application/json"
        return self.client.chat.completions.create(model="m", messages=[]).to_dict()

    def streamed(self, body: bytes) -> dict[str, Any]:
        self.body, self.content_type = body, "text/event-stream"
        state = ChatCompletionStreamState()
        for chunk in self.client.chat.completions.create(model="m", messages=[], stream=True):
            state.handle_chunk(chunk)
        return state.current_completion_snapshot.to_dict()


def _comparable(reply: dict[str, Any]) -> dict[str, Any]:
    """What the SDK's accumulator keeps, without the marks of its own bookkeeping."""
    (choice,) = reply["choices"]
    message = {key: value for key, value in choice["message"].items() if value}
    for annotation in message.get("annotations", ()):
        annotation.pop("index", None)
    for call in message.get("tool_calls", ()):
        call.pop("index", None)
        call["function"].pop("parsed_arguments", None)
    message.pop("parsed", None)
    return {
        "message": message,
        "logprobs": choice.get("logprobs"),
        "finish_reason": choice["finish_reason"],
        "usage": reply["usage"],
        "id": reply["id"],
        "model": reply["model"],
        "system_fingerprint": reply.get("system_fingerprint"),
        "episode_id": reply["episode_id"],
    }


REPLAY = Replay()


@given(events=event_streams(), usage=usages)
def test_c37_the_official_sdk_accumulates_a_stream_to_the_whole_reply(
    events: list[StreamEvent], usage: Usage
) -> None:
    stream, whole = both(events, usage)
    assert _comparable(REPLAY.streamed(stream)) == _comparable(REPLAY.whole(whole))
