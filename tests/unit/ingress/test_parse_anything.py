"""C6: whatever the body, a request is understood or refused with invalid_request.

Keeps C6.
"""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.ingress.chat_completions.parse import parse
from tollgate.ingress.chat_completions.wire.messages import AssistantMessage
from tollgate.ingress.chat_completions.wire.plugins import ChatRequest

REFUSALS = (ErrorCode.INVALID_REQUEST, ErrorCode.FILE_NOT_FOUND)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "role", "function", "name", "content", "id"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
        "content": st.just("hi") | json_values,
    },
    optional=dict.fromkeys(AssistantMessage.model_fields.keys() - {"role", "content"}, json_values),
)
requests = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": st.lists(messages, min_size=1, max_size=3)},
    optional=dict.fromkeys(ChatRequest.model_fields.keys() - {"model", "messages"}, json_values),
)


def survives(body: bytes) -> None:
    refused = None
    try:
        parse(body)
    except RequestError as error:
        refused = error
    assert refused is None or refused.code in REFUSALS


@given(body=st.binary(max_size=40))
def test_c6_any_bytes_are_understood_or_refused(body: bytes) -> None:
    survives(body)


@given(request=requests | json_values)
def test_c6_any_json_is_understood_or_refused(request: Any) -> None:
    survives(json.dumps(request).encode())
