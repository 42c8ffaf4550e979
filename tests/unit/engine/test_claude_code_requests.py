"""What Claude Code sends, in its shape, at the hosts of Claude and elsewhere; measured 2026-11-22.

Keeps C11, C20, C53, C69, C80.
"""

import json
from typing import Any

import pytest

from tests.asgi import request
from tests.gateways import Always, house
from tests.unit.engine.test_every_format import framed, home_of
from tests.unit.engine.test_messages import HI, Json, ask
from tests.unit.engine.test_single_call import Contents
from tests.unit.providers.shared_cases import ANSWERS
from tests.upstream.wires import WIRES, Wire
from tollgate.ingress.formats import MESSAGES
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

MARK = {"type": "ephemeral", "ttl": "1h"}
BILLING = "x-anthropic-billing-header: cc_version=2.1.197; cc_entrypoint=sdk-cli;"
EDITS = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
BETAS = ("context-management-2025-06-27", "prompt-caching-scope-2026-01-05", "effort-2025-11-24")
ASKED: Json = {
    "max_tokens": 32_000,
    "system": [
        {"type": "text", "text": BILLING},
        {"type": "text", "text": "You are an agent.", "cache_control": MARK},
        {"type": "text", "text": "Be careful.", "cache_control": MARK},
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": MARK}]},
        {"role": "system", "content": "The date is today."},
    ],
    "tools": [{"name": "weather", "description": "Tells.", "input_schema": {"type": "object"}}],
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "high"},
    "context_management": EDITS,
    "metadata": {"user_id": '{"device_id":"d","account_uuid":"","session_id":"s"}'},
    "stream": True,
}
OF_CLAUDE = [wire for wire in WIRES if wire.codec_name in ("anthropic", "bedrock")]


async def sent_by(wire: Wire) -> tuple[Any, Any]:
    """The request of the provider, and what the record says of the request."""
    home = await home_of(wire, framed(wire, wire.write(ANSWERS["text"])))
    reply = await ask(home, ASKED, anthropic_beta=",".join(BETAS), x_claude_code_session_id="s-1")
    assert reply.status == 200, reply.body
    [upstream] = home.near.requests
    return upstream, home.record


@pytest.mark.parametrize("wire", OF_CLAUDE, ids=lambda wire: wire.name)
async def test_c11_c80_the_first_block_of_the_system_prompt_stays_first_and_apart(
    wire: Wire,
) -> None:
    upstream, _ = await sent_by(wire)
    texts = [block["text"] for block in upstream.body["system"] if "text" in block]
    assert texts == [BILLING, "You are an agent.", "Be careful."]
    assert json.dumps(upstream.body).count('"1h"') == 3


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_c20_c80_what_a_provider_lacks_is_named_and_nothing_is_refused(wire: Wire) -> None:
    upstream, record = await sent_by(wire)
    sent = json.dumps(upstream.body)
    assert "The date is today." in sent
    named = set(record.adapted)
    if wire.name == "anthropic":
        assert upstream.headers["anthropic-beta"] == ",".join(BETAS)
        assert upstream.body["context_management"] == EDITS
        assert not [name for name in named if "beta" in name or "context" in name]
    elif wire.codec_name == "anthropic":
        assert upstream.body["context_management"] == EDITS
        assert named >= {f"anthropic-beta:{beta}" for beta in BETAS[1:]}
    elif wire.name == "bedrock":
        assert upstream.body["additionalModelRequestFields"]["context_management"] == EDITS
        assert named >= {f"anthropic-beta:{beta}" for beta in BETAS[1:]}
    else:
        assert named >= {"context_management", *(f"anthropic-beta:{beta}" for beta in BETAS)}


async def test_c69_content_that_is_kept_is_that_of_a_message() -> None:
    contents = Contents()
    home = await house(key=NewKey(workspace_id="acme", label="kept", content_days=1))
    app = chat_app(home.front, Always(home.gateway), WebLimits(), contents=contents)
    body = json.dumps({"model": "acme/large", **HI}).encode()
    reply = await request(app, "POST", MESSAGES.path, headers={"x-api-key": home.secret}, body=body)
    assert reply.status == 200
    [content] = contents.kept.values()
    assert content["request"]["messages"] == HI["messages"]
    assert "Hello" in json.dumps(content["choices"])
