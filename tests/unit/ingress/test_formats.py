"""A client format is one row: its route, its code, its envelope and its description.

Keeps C1, C41.
"""

import pytest
from msgspec.structs import replace
from pydantic_core import to_json

from tests.asgi import request
from tests.gateways import Always, house, request_body
from tollgate.core.errors import GatewayError
from tollgate.core.limits import RateLimit
from tollgate.ingress.base import ErrorReply, Routed
from tollgate.ingress.chat_completions import ChatCompletions
from tollgate.ingress.formats import CHAT_COMPLETIONS, FORMATS
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits
from tollgate.web.http.paths import METERED_PATHS, canonical_path


class OtherFormat(ChatCompletions):
    """Has an envelope and names of headers that are not OpenAI's."""

    @staticmethod
    def limit_headers(
        requests: RateLimit | None, tokens: RateLimit | None, *, request_id: str
    ) -> dict[str, str]:
        return {"other-requests-limit": str(requests.limit)} if requests else {}

    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        return ErrorReply(status=418, body=to_json({"type": "error", "code": error.code.value}))


def test_names_and_paths_of_formats_are_unique_and_every_path_is_metered() -> None:
    assert len({each.name for each in FORMATS}) == len(FORMATS)
    paths = [each.path for each in FORMATS]
    paths += [each.alias.path for each in FORMATS if each.alias]
    assert set(paths) == METERED_PATHS
    assert len(METERED_PATHS) == len(paths)
    assert all(canonical_path(path) == path for path in paths)


@pytest.mark.parametrize("known", [True, False])
async def test_a_reply_has_the_envelope_and_the_limit_headers_of_its_format(known: bool) -> None:
    home = await house()
    other = OtherFormat(home.gateway.ids)
    ingresses = {**home.front.ingresses, CHAT_COMPLETIONS.name: other}
    front = replace(home.front, ingresses=ingresses)
    app = chat_app(front, Always(home.gateway), WebLimits())

    reply = await request(
        app,
        "POST",
        CHAT_COMPLETIONS.path,
        headers={"authorization": f"Bearer {home.secret}"},
        body=request_body("acme/large" if known else "unknown"),
    )

    if known:
        assert reply.status == 200
        assert reply.headers["other-requests-limit"].isdigit()
        assert not any(name.startswith("x-ratelimit") for name in reply.headers)
        assert home.record.ingress_format == CHAT_COMPLETIONS.name
    else:
        assert (reply.status, reply.json) == (418, {"type": "error", "code": "model_not_found"})
