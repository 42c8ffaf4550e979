"""Running a decoder over frames as the engine does, with the grammar watching."""

from collections.abc import Iterable
from itertools import pairwise

from tollgate.core.events import StreamEvent, StreamGrammar
from tollgate.core.response import Fold, GenerationResponse
from tollgate.providers.ports.base import Decoder, Frame
from tollgate.providers.transports.sse import SseDecoder


def decoded(decoder: Decoder, frames: Iterable[Frame]) -> list[StreamEvent]:
    """All events of a stream; raises what the decoder raises."""
    grammar = StreamGrammar()
    events: list[StreamEvent] = []
    for frame in frames:
        for event in decoder.feed(frame):
            grammar.accept(event)
            events.append(event)
    for event in decoder.end():
        grammar.accept(event)
        events.append(event)
    return events


def folded(events: Iterable[StreamEvent]) -> GenerationResponse:
    """The whole answer."""
    fold = Fold()
    for event in events:
        fold.accept(event)
    return fold.response()


def sse_frames(chunks: Iterable[bytes]) -> list[Frame]:
    """The frames of an SSE stream, from its bytes in any pieces."""
    decoder = SseDecoder()
    return [*(frame for chunk in chunks for frame in decoder.feed(chunk)), *decoder.end()]


def pieces(body: bytes, cuts: Iterable[int]) -> list[bytes]:
    """The body cut at the offsets given."""
    offsets = [0, *sorted({cut % (len(body) + 1) for cut in cuts}), len(body)]
    return [body[start:end] for start, end in pairwise(offsets)]
