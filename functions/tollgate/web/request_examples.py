"""Example bodies for the OpenAPI document, keyed by the name of their schema."""

from collections.abc import Mapping
from typing import Any, Final

from tollgate.core.json_value import JsonValue

_ENTRY: Final = {"id": "invoice-2026-11", "amount": 25, "note": "November"}
_LEVEL: Final[Mapping[str, JsonValue]] = {"limits": {"month": 500}, "models": ["anthropic/*"]}
_FILE: Final[Mapping[str, JsonValue]] = {
    "purpose": "user_data",
    "filename": "report.pdf",
    "bytes": 20_480,
}

REQUEST_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "AdjustmentBody": {**_ENTRY, "amount": -3.5},
    "BatchBody": {
        "input_file_id": "file-5g0DOBgUqHItj5x",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    },
    "CompletionBody": {"part_ids": ["part_5g0DOBgUqHItj5x"]},
    "GrantBody": _ENTRY,
    "IdentityTokenBody": {"token": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJl"},
    "KeyChangeBody": {"limits": {"day": 10}, "requests_per_minute": 600},
    "MemberChangeBody": {"role": "developer", "team_id": "search"},
    "MessageBatchBody": {
        "requests": [
            {
                "custom_id": "first",
                "params": {
                    "model": "test/echo",
                    "max_tokens": 100,
                    "messages": [{"role": "user", "content": "Say hello."}],
                },
            }
        ]
    },
    "NewHoldBody": {"kind": "user", "id": "user-17", "reason": "Case 2026-11"},
    "NewKeyBody": {"name": "search", "limits": {"day": 5, "month": 100}, "models": ["openai/*"]},
    "NewMemberBody": {"id": "ana@example.com", "role": "developer", "team_id": "search"},
    "NewTeamBody": {"id": "search", "display_name": "Search", **_LEVEL},
    "NewWorkspaceBody": {"id": "acme", "budget": 1000, "pause_at_budget": True},
    "PaymentBody": _ENTRY,
    "PresignedBody": _FILE,
    "RefundBody": {"generation_id": "gen-5g0DOBgUqHItj5x", "note": "Wrong answer"},
    "RotationBody": {"grace_s": 86_400},
    "ScimPatchBody": {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        "Operations": [{"op": "replace", "path": "active", "value": False}],
    },
    "ScimUserBody": {"userName": "ana@example.com", "displayName": "Ana", "active": True},
    "SecretRotationBody": {"grace_hours": 24},
    "SubjectBody": {"kind": "member", "id": "ana@example.com"},
    "TeamChangeBody": _LEVEL,
    "UploadBody": {**_FILE, "mime_type": "application/pdf"},
    "WebhookBody": {"url": "https://hooks.example/tollgate", "events": ["key.*", "budget.*"]},
    "WebhookChangeBody": {"enabled": False},
    "WorkspaceChangeBody": {"response_days": 30, "usage_on": "finish"},
}
