"""C7: requests that real clients sent are understood, or refused with a field that has its reason.

Ten clients' traffic, where it lies beside the recordings.
"""

import json

from tests.references import client_requests
from tollgate.core.errors import RequestError
from tollgate.ingress.chat_completions.parse import parse

# What these clients ask for and is not served yet, by the field that says so.
NOT_SERVED = {
    "response_format.type",
    "messages[0].content[1].type",
}
IGNORED = {"reasoning_effort"}


def test_c7_requests_of_real_clients_are_understood_or_refused_by_name() -> None:
    refused: dict[str, list[str]] = {}
    ignored: set[str] = set()
    understood = 0
    for name, sent in client_requests("/chat/completions"):
        try:
            call = parse(json.dumps(sent).encode())
        except RequestError as error:
            refused.setdefault(str(error.param), []).append(name)
            continue
        understood += 1
        ignored.update(call.ignored)
        assert call.stream == sent.get("stream", False)
        assert len(call.request.messages) == len(sent["messages"])
        assert len(call.request.tools) == len(sent.get("tools", ()))
    assert set(refused) == NOT_SERVED, refused
    assert ignored == IGNORED
    assert understood >= 50
