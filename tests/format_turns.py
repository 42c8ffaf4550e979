"""Turns of earlier answers that a client sends back, for the lists of docs/formats/."""

from tests.unit.engine.same_conversations import TEXT, Json
from tollgate.core.signers import OPENAI

CALLED = {"type": "tool_use", "id": "c", "name": "weather", "input": {}}
FAILED = {"type": "tool_result", "tool_use_id": "c", "content": "No.", "is_error": True}
REDACTED = {"type": "redacted_thinking", "data": "c2ln"}
SEARCHED = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
ANSWERED: Json = {"role": "assistant", "content": "So."}
RUNS = "server tool runs"
_RUN = {
    "id": "call_1",
    "type": "server_tool",
    "name": "datetime",
    "arguments": "{}",
    "result": "Sunday",
}
IN_CHAT: Json = ANSWERED | {"server_tool_calls": [_RUN]}
_ID = "srvtoolu_tollgate_1"
_USE = {"type": "server_tool_use", "id": _ID, "name": "web_search", "input": {}}
_FOUND = {"type": "web_search_tool_result", "tool_use_id": _ID, "content": []}
IN_MESSAGES: Json = {"role": "assistant", "content": [_USE, _FOUND, TEXT]}
IN_RESPONSES: Json = {
    "type": "mcp_call",
    "id": "mcp_1",
    "server_label": "tollgate",
    "name": "datetime",
    "arguments": "{}",
    "output": "Sunday",
}


def in_details(signer: str, signature: str) -> Json:
    """An answer with reasoning in chat's details."""
    own = {"type": "reasoning.text", "text": "Hm.", "signature": signature, "format": signer}
    if signer == OPENAI:
        own = {"type": "reasoning.encrypted", "data": signature, "format": signer, "id": "rs_1"}
    return {"role": "assistant", "content": "So.", "reasoning_details": [{**own, "index": 0}]}


def in_item(sealed: str) -> Json:
    """An item of reasoning."""
    summary = [{"type": "summary_text", "text": "Hm."}]
    return {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": sealed}
