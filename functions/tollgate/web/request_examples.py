"""Examples of request bodies for the OpenAPI document, by the name of their schema.

The models are those of `make run`.
"""

from collections.abc import Mapping
from typing import Any, Final

from tollgate.core.json_value import JsonValue

_CHAT: Final[Mapping[str, JsonValue]] = {
    "model": "test/echo",
    "messages": [{"role": "user", "content": "Say hello."}],
    "max_tokens": 100,
}
_MESSAGES: Final = [{"role": "user", "content": "Say hello."}]
_SOUND: Final = {"model": "test/transcribe", "url": "https://files.example/meeting.mp3"}
_PICTURE: Final = {"model": "test/image", "prompt": "A red bridge in fog"}
_ENTRY: Final = {"id": "invoice-2026-11", "amount": 25, "note": "November"}
_LEVEL: Final[Mapping[str, JsonValue]] = {"limits": {"month": 500}, "models": ["anthropic/*"]}
_FILE: Final[Mapping[str, JsonValue]] = {
    "purpose": "user_data",
    "filename": "report.pdf",
    "bytes": 20_480,
}

REQUEST_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "AdjustmentBody": {**_ENTRY, "amount": -3.5},
    "ChatRequest": _CHAT,
    "CompletionBody": {"part_ids": ["part_5g0DOBgUqHItj5x"]},
    "CompletionRequest": {"model": "test/complete", "prompt": "Once upon a time"},
    "CountTokensRequest": {"model": "test/echo", "messages": _MESSAGES},
    "EditBody": {**_PICTURE, "images": [{"image_url": "https://files.example/bridge.png"}]},
    "EmbeddingsRequest": {"model": "test/embed", "input": ["A red bridge", "A blue boat"]},
    "GenerationBody": _PICTURE,
    "GrantBody": _ENTRY,
    "IdentityTokenBody": {"token": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJl"},
    "KeyChangeBody": {"limits": {"day": 10}, "requests_per_minute": 600},
    "MemberChangeBody": {"role": "developer", "team_id": "search"},
    "MessagesRequest": {"model": "test/echo", "messages": _MESSAGES, "max_tokens": 100},
    "ModerationBody": {"model": "test/moderate", "input": "Say hello."},
    "NewKeyBody": {"name": "search", "limits": {"day": 5, "month": 100}, "models": ["openai/*"]},
    "NewMemberBody": {"id": "ana@example.com", "role": "developer", "team_id": "search"},
    "NewTeamBody": {"id": "search", "display_name": "Search", **_LEVEL},
    "NewWorkspaceBody": {"id": "acme", "budget": 1000, "pause_at_budget": True},
    "PaymentBody": _ENTRY,
    "PresignedBody": _FILE,
    "RefundBody": {"generation_id": "gen-5g0DOBgUqHItj5x", "note": "Wrong answer"},
    "RerankBody": {
        "model": "test/rerank",
        "query": "Where is the bridge?",
        "documents": ["The bridge is in the north.", "The boat is blue."],
        "top_n": 1,
    },
    "ResponsesRequest": {"model": "test/echo", "input": "Say hello."},
    "RotationBody": {"grace_s": 86_400},
    "ScimPatchBody": {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        "Operations": [{"op": "replace", "path": "active", "value": False}],
    },
    "ScimUserBody": {"userName": "ana@example.com", "displayName": "Ana", "active": True},
    "SecretRotationBody": {"grace_hours": 24},
    "SpeechBody": {"model": "test/speech", "input": "Hello.", "voice": "alloy"},
    "TeamChangeBody": _LEVEL,
    "TranscriptionBody": _SOUND,
    "TranslationBody": _SOUND,
    "UploadBody": {**_FILE, "mime_type": "application/pdf"},
    "WebhookBody": {"url": "https://hooks.example/tollgate", "events": ["key.*", "budget.*"]},
    "WebhookChangeBody": {"enabled": False},
    "WorkspaceChangeBody": {"response_days": 30, "usage_on": "finish"},
}
# The body of a route that takes a request in any client format.
ANY_FORMAT_EXAMPLE: Final = _CHAT
