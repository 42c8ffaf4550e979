"""The gateway's own errors as a template words them: "Gateway responses in API Gateway"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_HEADER = "gatewayresponse.header."
_REQUEST_ID = re.compile(r"\$?context\.requestId")


def render(
    configured: Mapping[str, Any], response_type: str, status: int, request_id: str
) -> tuple[int, list[tuple[str, str]], bytes] | None:
    """Return status, headers and JSON body of an error; None where the template words none.

    A type without a response of its own has that of its default. Raises ValueError for a value
    that is neither a literal nor the request's id.
    """
    default = "DEFAULT_4XX" if status < 500 else "DEFAULT_5XX"
    response = configured.get(response_type, configured.get(default))
    if response is None:
        return None
    headers = []
    for name, value in response.get("responseParameters", {}).items():
        if not name.startswith(_HEADER):
            raise ValueError(f"{name} is no header of a gateway response")
        headers.append((name.removeprefix(_HEADER), _value(value, request_id)))
    body = response["responseTemplates"]["application/json"]
    headers.append(("Content-Type", "application/json"))
    stated = int(response.get("statusCode") or status)
    return stated, headers, _REQUEST_ID.sub(request_id, body).encode()


def _value(text: str, request_id: str) -> str:
    if text == "context.requestId":
        return request_id
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1]
    raise ValueError(f"{text} is neither a literal nor context.requestId")
