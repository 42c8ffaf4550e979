"""The routes of the api function that need a key, by the key they need, each with a body it takes.

A key of the role `read` may use the lists; contents are beside the changes, which it may not use.

The names in capitals stand for a resource: none of that name exists, and a test that needs an
existing one replaces them.
"""

KEY_ID = "Na1b2c3d4e5f6g7"
WORKSPACE = "nowhere"
GENERATION_ID = "gen-x"
RESPONSE_ID = "resp_x"
FILE_ID = "file-x"
UPLOAD_ID = "upload_x"
BATCH_ID = "batch_x"
VIDEO_ID = "video_x"
SESSION_ID = "session-x"
TEAM_ID = "team-x"
MEMBER_ID = "member-x"
# The hold on the end user `eve`, whose id is a hash.
HOLD_ID = "user-85262adf74518bbb70c7cb94cd6159d9"
WEBHOOK = "/v1/webhooks/Nx1b2c3d4e5f6g7"

EVERY_KEYS_ROUTES = [
    ("GET", "/v1/key", None),
    ("GET", f"/v1/generation?id={GENERATION_ID}", None),
    (
        "POST",
        "/v1/route/explain",
        {"model": "smart", "messages": [{"role": "user", "content": "Hi"}]},
    ),
    ("GET", "/v1/generations", None),
]
RESPONSE_ROUTES = [
    ("GET", f"/v1/responses/{RESPONSE_ID}", None),
    ("GET", f"/v1/responses/{RESPONSE_ID}/input_items", None),
    ("POST", f"/v1/responses/{RESPONSE_ID}/cancel", None),
    ("DELETE", f"/v1/responses/{RESPONSE_ID}", None),
]
FILE_ROUTES = [
    ("GET", "/v1/files", None),
    ("POST", "/v1/files", {}),
    (
        "POST",
        "/v1/files/presigned",
        {"filename": "a.txt", "purpose": "user_data", "bytes": 5},
    ),
    ("GET", f"/v1/files/{FILE_ID}", None),
    ("GET", f"/v1/files/{FILE_ID}/content", None),
    ("DELETE", f"/v1/files/{FILE_ID}", None),
    (
        "POST",
        "/v1/uploads",
        {"filename": "a.txt", "purpose": "user_data", "bytes": 5, "mime_type": "text/plain"},
    ),
    ("POST", f"/v1/uploads/{UPLOAD_ID}/parts", {}),
    ("POST", f"/v1/uploads/{UPLOAD_ID}/complete", {"part_ids": ["part_x"]}),
    ("POST", f"/v1/uploads/{UPLOAD_ID}/cancel", None),
]
BATCH_ROUTES = [
    ("GET", "/v1/batches", None),
    ("GET", f"/v1/batches/{BATCH_ID}", None),
    ("POST", f"/v1/batches/{BATCH_ID}/cancel", None),
    ("GET", "/v1/videos", None),
    ("GET", f"/v1/videos/{VIDEO_ID}", None),
    ("GET", f"/v1/videos/{VIDEO_ID}/content", None),
    ("DELETE", f"/v1/videos/{VIDEO_ID}", None),
    ("GET", "/v1/messages/batches", None),
    ("GET", f"/v1/messages/batches/{BATCH_ID}", None),
    ("GET", f"/v1/messages/batches/{BATCH_ID}/results", None),
    ("POST", f"/v1/messages/batches/{BATCH_ID}/cancel", None),
    ("DELETE", f"/v1/messages/batches/{BATCH_ID}", None),
]
NEW_BATCHES = [
    (
        "POST",
        "/v1/batches",
        {
            "input_file_id": FILE_ID,
            "endpoint": "/v1/embeddings",
            "completion_window": "24h",
        },
    ),
    (
        "POST",
        "/v1/messages/batches",
        {"requests": [{"custom_id": "a", "params": {"model": "test/echo"}}]},
    ),
]
PLAYGROUND_ROUTES = [("POST", "/v1/playground", None)]
SETUP_LISTS = [
    ("GET", "/v1/catalog", None),
]
KEY_LISTS = [
    ("GET", "/v1/keys", None),
    ("GET", f"/v1/keys/{KEY_ID}", None),
]
PEOPLE_LISTS = [
    ("GET", "/v1/teams", None),
    ("GET", f"/v1/teams/{TEAM_ID}", None),
    ("GET", "/v1/members", None),
    ("GET", f"/v1/members/{MEMBER_ID}", None),
    ("GET", "/v1/activity", None),
]
SESSION_LISTS = [
    ("GET", f"/v1/members/{MEMBER_ID}/sessions", None),
]
SESSION_CHANGES = [
    ("DELETE", f"/v1/members/{MEMBER_ID}/sessions", None),
    ("DELETE", f"/v1/members/{MEMBER_ID}/sessions/{SESSION_ID}", None),
]
MONEY_LISTS = [
    ("GET", "/v1/statement", None),
    ("GET", "/v1/workspace", None),
    ("GET", "/v1/credits", None),
    ("GET", "/v1/credits/ledger", None),
    ("GET", "/v1/audit", None),
    ("GET", "/v1/audit/days", None),
]
WORKSPACE_LISTS = SETUP_LISTS + KEY_LISTS + PEOPLE_LISTS + SESSION_LISTS + MONEY_LISTS
KEY_CHANGES = [
    ("POST", "/v1/keys", {"name": "new"}),
    ("PATCH", f"/v1/keys/{KEY_ID}", {"disabled": True}),
    ("POST", f"/v1/keys/{KEY_ID}/rotate", {}),
    ("DELETE", f"/v1/keys/{KEY_ID}", None),
    ("GET", f"/v1/generation/content?id={GENERATION_ID}", None),
]
PEOPLE_CHANGES = [
    ("POST", "/v1/teams", {"id": "new"}),
    ("PATCH", f"/v1/teams/{TEAM_ID}", {"limits": {"day": 5}}),
    ("DELETE", f"/v1/teams/{TEAM_ID}", None),
    ("POST", "/v1/members", {"id": "new"}),
    ("PATCH", f"/v1/members/{MEMBER_ID}", {"limits": {"day": 5}}),
    ("DELETE", f"/v1/members/{MEMBER_ID}", None),
]
SCIM_USER = f"/v1/scim/v2/Users/{MEMBER_ID}"
SCIM_ROUTES = [
    ("GET", "/v1/scim/v2/Users", None),
    ("POST", "/v1/scim/v2/Users", {"userName": "new"}),
    ("GET", SCIM_USER, None),
    (
        "PATCH",
        SCIM_USER,
        {
            "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
            "Operations": [{"op": "replace", "value": {"active": False}}],
        },
    ),
    ("PUT", SCIM_USER, {"userName": "ana", "active": False}),
    ("DELETE", SCIM_USER, None),
]
CACHE_CHANGES = [("DELETE", "/v1/cache", None)]
WORKSPACE_CHANGES = CACHE_CHANGES + KEY_CHANGES + PEOPLE_CHANGES + SESSION_CHANGES
WEBHOOK_ROUTES = [
    ("GET", "/v1/webhooks", None),
    ("POST", "/v1/webhooks", {"url": "https://hooks.example/"}),
    ("GET", WEBHOOK, None),
    ("PATCH", WEBHOOK, {"enabled": False}),
    ("DELETE", WEBHOOK, None),
    ("POST", f"{WEBHOOK}/rotate", {}),
    ("POST", f"{WEBHOOK}/test", None),
    ("GET", f"{WEBHOOK}/deliveries", None),
    ("POST", f"{WEBHOOK}/deliveries/evt_x/redeliver", None),
]
_USER = {"kind": "user", "id": "new"}
SUBJECT_ROUTES = [
    ("GET", "/v1/holds", None),
    ("POST", "/v1/holds", {**_USER, "reason": "case 7"}),
    ("DELETE", f"/v1/holds/{HOLD_ID}", None),
    ("GET", "/v1/erasures", None),
    ("POST", "/v1/erasures", _USER),
]
OPERATOR_LISTS = [
    ("GET", "/v1/workspaces", None),
    ("GET", f"/v1/workspaces/{WORKSPACE}", None),
    ("GET", f"/v1/workspaces/{WORKSPACE}/credits", None),
    ("GET", f"/v1/workspaces/{WORKSPACE}/statement", None),
    ("GET", f"/v1/workspaces/{WORKSPACE}/activity", None),
    ("GET", f"/v1/workspaces/{WORKSPACE}/keys", None),
    ("GET", f"/v1/workspaces/{WORKSPACE}/members", None),
]
OPERATOR_CHANGES = [
    ("POST", "/v1/workspaces", {"id": "new"}),
    ("PATCH", f"/v1/workspaces/{WORKSPACE}", {"locked": True}),
    ("POST", f"/v1/workspaces/{WORKSPACE}/keys", {"name": "new"}),
    ("PATCH", f"/v1/workspaces/{WORKSPACE}/keys/{KEY_ID}", {"disabled": True}),
    ("POST", f"/v1/workspaces/{WORKSPACE}/members", {"id": "new", "role": "owner"}),
    ("PATCH", f"/v1/workspaces/{WORKSPACE}/members/{MEMBER_ID}", {"role": "billing"}),
    ("GET", f"/v1/workspaces/{WORKSPACE}/holds", None),
    ("POST", f"/v1/workspaces/{WORKSPACE}/holds", {**_USER, "reason": "case 7"}),
    ("DELETE", f"/v1/workspaces/{WORKSPACE}/holds/{HOLD_ID}", None),
    ("GET", f"/v1/workspaces/{WORKSPACE}/erasures", None),
    ("POST", f"/v1/workspaces/{WORKSPACE}/erasures", _USER),
    ("POST", "/v1/credits/grants", {"id": "g", "amount": 1, "workspace_id": WORKSPACE}),
    ("POST", "/v1/credits/payments", {"id": "p", "amount": 1, "workspace_id": WORKSPACE}),
    ("POST", "/v1/credits/adjustments", {"id": "a", "amount": -1, "workspace_id": WORKSPACE}),
    (
        "POST",
        "/v1/credits/refunds",
        {"generation_id": GENERATION_ID, "workspace_id": WORKSPACE},
    ),
]
WORKSPACE_ROUTES = WORKSPACE_LISTS + WORKSPACE_CHANGES
OPERATOR_ROUTES = OPERATOR_LISTS + OPERATOR_CHANGES
MANAGEMENT_ROUTES = (
    WORKSPACE_ROUTES + WEBHOOK_ROUTES + SCIM_ROUTES + SUBJECT_ROUTES + OPERATOR_ROUTES
)
ROUTES = (
    EVERY_KEYS_ROUTES
    + RESPONSE_ROUTES
    + FILE_ROUTES
    + BATCH_ROUTES
    + NEW_BATCHES
    + PLAYGROUND_ROUTES
    + MANAGEMENT_ROUTES
)
