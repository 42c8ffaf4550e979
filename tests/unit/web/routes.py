"""The routes of the api function that need a key, each with a body that it takes."""

ROUTES = [
    ("GET", "/v1/key", None),
    ("POST", "/v1/keys", {"name": "new"}),
    ("GET", "/v1/keys", None),
    ("GET", "/v1/keys/Na1b2c3d4e5f6g7", None),
    ("PATCH", "/v1/keys/Na1b2c3d4e5f6g7", {"disabled": True}),
    ("POST", "/v1/keys/Na1b2c3d4e5f6g7/rotate", {}),
    ("DELETE", "/v1/keys/Na1b2c3d4e5f6g7", None),
    ("POST", "/v1/workspaces", {"id": "new"}),
    ("GET", "/v1/workspaces", None),
    ("GET", "/v1/workspaces/nowhere", None),
    ("PATCH", "/v1/workspaces/nowhere", {"locked": True}),
    ("GET", "/v1/workspaces/nowhere/credits", None),
    ("POST", "/v1/workspaces/nowhere/keys", {"name": "new"}),
    ("GET", "/v1/credits", None),
    ("GET", "/v1/credits/ledger", None),
    ("POST", "/v1/credits/grants", {"id": "g", "amount": 1}),
    ("POST", "/v1/credits/adjustments", {"id": "g", "amount": -1}),
    ("POST", "/v1/credits/refunds", {"generation_id": "gen-x"}),
    ("GET", "/v1/generation?id=x", None),
    ("GET", "/v1/generation/content?id=x", None),
    ("GET", "/v1/generations", None),
    ("GET", "/v1/activity", None),
    ("POST", "/v1/route/explain", {"model": "smart", "messages": []}),
]
EVERY_KEYS_ROUTES = ("/v1/key", "/v1/generation?id=x", "/v1/route/explain")
MANAGEMENT_ROUTES = [route for route in ROUTES if route[1] not in EVERY_KEYS_ROUTES]
