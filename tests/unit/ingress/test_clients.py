"""C7: requests that real clients sent are understood, every one of them.

Ten clients' traffic, where it lies beside the recordings.

Keeps C7, C80.
"""

import json

from tests.references import client_requests
from tollgate.ingress.chat_completions.parse import parse
from tollgate.ingress.responses.parse import parse_response_request


def test_c7_requests_of_real_clients_are_understood() -> None:
    understood = 0
    for _, sent in client_requests("/chat/completions"):
        call = parse(json.dumps(sent).encode())
        understood += 1
        assert call.ignored == ()
        assert call.stream == sent.get("stream", False)
        assert len(call.request.messages) == len(sent["messages"])
        assert len(call.request.tools) == len(sent.get("tools", ()))
        plain = sent.get("response_format", {"type": "text"})["type"] == "text"
        assert (call.request.output_format is None) == plain
    assert understood >= 70


def test_c7_c80_their_requests_for_responses_are_understood() -> None:
    understood = 0
    for _, sent in client_requests("/responses"):
        call = parse_response_request(json.dumps(sent).encode(), {})
        understood += 1
        assert call.ignored == ()
        assert call.stream == sent.get("stream", False)
        assert len(call.request.tools) == len(sent.get("tools", ()))
    assert understood >= 6
