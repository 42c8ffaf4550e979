"""C6: whatever the body, a request for a response is understood or refused as the caller's fault.

Keeps C6, C80.
"""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.ingress.responses_samples import FORMAT
from tests.unit.ingress.test_parse_anything import REFUSALS, json_values
from tollgate.core.errors import RequestError
from tollgate.core.response_items import ITEM_KINDS
from tollgate.ingress.responses.wire.response_request import ResponsesRequest

TYPES = ("zz_item", *ITEM_KINDS)
texts = st.just("call_1") | json_values
parts = st.fixed_dictionaries(
    {"type": st.sampled_from(["input_text", "refusal", "input_image", "input_file"])},
    optional=dict.fromkeys(["text", "refusal", "image_url", "file_data", "file_url"], texts),
)
content = texts | st.lists(parts, max_size=2)
tools = st.fixed_dictionaries(
    {"type": st.sampled_from(["function", "custom", "namespace", "web_search", "pdf", "mcp"])},
    optional=dict.fromkeys(["name", "tools", "parameters", "format", "filters", "engine"], texts),
)
items = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES)},
    optional={
        "role": st.sampled_from(["user", "assistant", "developer", "tool"]),
        "content": content,
        "output": content,
        "tools": st.lists(tools, max_size=2),
        **dict.fromkeys(["call_id", "name", "namespace", "arguments", "input", "id"], texts),
        **dict.fromkeys(["summary", "encrypted_content"], texts),
    },
)
others = ResponsesRequest.model_fields.keys() - {"model", "input", "tools"}
requests = st.fixed_dictionaries(
    {"model": st.just("m"), "input": st.just("hi") | st.lists(items, min_size=1, max_size=3)},
    optional={"tools": st.lists(tools, max_size=2), **dict.fromkeys(others, json_values)},
)


@given(request=requests | json_values)
def test_c6_c80_any_json_is_understood_or_refused(request: Any) -> None:
    refused = None
    try:
        FORMAT.parse(json.dumps(request).encode())
    except RequestError as error:
        refused = error
    assert refused is None or refused.code in REFUSALS
