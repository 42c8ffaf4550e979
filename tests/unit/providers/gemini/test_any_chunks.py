"""Whatever chunks come, in whatever order: a valid stream or an UpstreamError."""

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.decoding import decoded, folded, sse_frames
from tests.upstream import gemini_chunks as gemini
from tests.upstream.gemini_chunks import SIGNATURE
from tollgate.core.content import ToolCall
from tollgate.core.errors import UpstreamError
from tollgate.providers.codecs.gemini.decode import GeminiDecoder
from tollgate.providers.ports.base import Frame

texts = st.builds(
    lambda text, more: {"text": text, **more},
    st.sampled_from(["", "text"]),
    st.sampled_from([{}, {"thought": True}, {"thoughtSignature": SIGNATURE}]),
)
calls = st.builds(
    lambda name, more: gemini.call(name, **more),
    st.sampled_from([None, "add"]),
    st.sampled_from(
        [
            {},
            {"args": {"a": 1}},
            {"willContinue": True},
            {"signature": SIGNATURE},
            {"partialArgs": [{"jsonPath": "$.a[0]", "stringValue": "x"}], "willContinue": True},
            {"partialArgs": [{"jsonPath": "$.a.b", "numberValue": 1}]},
        ]
    ),
)
notes = st.sampled_from(
    [
        {},
        {"citationMetadata": {"citations": [{"uri": "https://a.example", "endIndex": 3}]}},
        {"logprobsResult": {"chosenCandidates": [{"token": "x", "logProbability": -1}]}},
    ]
)
chunks = st.one_of(
    st.builds(
        lambda parts, finish, more: gemini.chunk(*parts, finish=finish, **more),
        st.lists(texts | calls | st.just({}), max_size=3),
        st.sampled_from([None, None, "STOP", "MAX_TOKENS", "OTHER", "NEW"]),
        notes,
    ),
    st.sampled_from([gemini.usage(), {"promptFeedback": {"blockReason": "SAFETY"}}]),
)


def holds(frames: list[Frame]) -> None:
    with suppress(UpstreamError):
        response = folded(decoded(GeminiDecoder("google"), frames))
        for part in response.parts:
            if isinstance(part, ToolCall):
                assert isinstance(json.loads(part.arguments), dict)
        assert response.finish


@given(st.lists(chunks, max_size=8))
def test_any_order_of_chunks(sent: list[dict[str, Any]]) -> None:
    holds(sse_frames([gemini.sse(chunk) for chunk in sent]))
    holds([Frame(data=json.dumps(sent).encode())])


@given(st.lists(st.binary(max_size=40), max_size=4))
def test_any_bytes_in_a_frame(payloads: list[bytes]) -> None:
    holds([Frame(data=payload) for payload in payloads])
