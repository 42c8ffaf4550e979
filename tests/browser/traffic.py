"""What the views show: keys with traffic that was served and refused, and texts that are markup."""

import json

import httpx2

_MARKUP = "<img src=x onerror=\"window.owned='%s'\"><script>window.owned=1</script>{{7*7}}"


def attack(place: str) -> str:
    """Return markup that names its place."""
    return _MARKUP % place


def make_attacks(api: httpx2.Client) -> dict[str, str]:
    """A key, a label, a request, an error and a credit entry whose texts are markup."""
    labels = {"team": attack("label")[:64], "environment": "x'\"><svg onload=window.owned=2>"}
    made = api.post("keys", json={"name": attack("name")[:100], "labels": labels}).json()
    bearer = {"authorization": f"Bearer {made['key']}"}
    said = [{"role": "user", "content": attack("output")}]
    body = {"messages": said, "user": attack("user")}
    served = api.post("chat/completions", json={"model": "test/echo", **body}, headers=bearer)
    assert served.status_code == 200
    unknown = {"model": "test/echo", "messages": said, attack("adapted")[:60]: 1}
    adapted = api.post("chat/completions", json=unknown, headers=bearer)
    grant = {"id": "attack", "amount": 1, "note": attack("note")}
    assert api.post("credits/grants", json=grant).status_code == 200
    return {
        "secret": made["key"],
        "served": served.headers["x-generation-id"],
        "adapted": adapted.headers["x-generation-id"],
    }


def make_traffic(api: httpx2.Client) -> dict[str, str]:
    """Keys with limits, and traffic of theirs that was served and that failed."""
    for team, name, budget in (
        ("search", "Search", {"day": 0.04, "month": 2}),
        ("support", "Support", {"month": 0.02}),
        ("research", "Research", {"week": 0.5}),
    ):
        api.post("teams", json={"id": team, "display_name": name, "limits": budget})
    secrets = []
    for name, team, limits in (
        ("search production", "search", {"day": 5, "month": 50}),
        ("search staging", "search", {"day": 0.002}),
        ("support bot", "support", {"month": 0.05}),
        ("notebooks", "research", {}),
    ):
        labels = {"environment": "production"}
        body = {"name": name, "labels": labels, "limits": limits, "team_id": team}
        secrets.append(api.post("keys", json=body).json()["key"])
    ceilings = {"name": "agents", "max_cost": 0.5, "session_budget": 2, "session_requests": 90}
    assert api.post("keys", json=ceilings).status_code == 201
    answers = {}
    for index, secret in enumerate(secrets * 3):
        models = {"SERVED": "test/echo"}
        if secret == secrets[0]:
            # Two seconds each: it is repeated before it fails.
            models["FAILED"] = "test/echo:429"
        for outcome, model in models.items():
            said = {"role": "user", "content": "Hello there " * (40 + 30 * index)}
            answer = api.post(
                "chat/completions",
                json={"model": model, "messages": [said], "max_tokens": 300},
                headers={"authorization": f"Bearer {secret}"},
            )
            answers.setdefault(outcome, answer.headers.get("x-generation-id", ""))
    assert all(answers.values())
    make_batch(api, secrets[0])
    return answers


def make_batch(api: httpx2.Client, secret: str) -> None:
    """A batch of one line that is served, and one for whose model no provider has a key."""
    lines = b"".join(
        json.dumps(
            {
                "custom_id": model,
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {"model": model, "messages": [{"role": "user", "content": "Hello"}]},
            }
        ).encode()
        + b"\n"
        for model in ("test/echo", "smart")
    )
    bearer = {"authorization": f"Bearer {secret}"}
    sent = {"file": ("lines.jsonl", lines)}
    file = api.post("files", files=sent, data={"purpose": "batch"}, headers=bearer).json()
    batch = {
        "input_file_id": file["id"],
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "metadata": {"job": attack("metadata")[:200]},
    }
    assert api.post("batches", json=batch, headers=bearer).status_code == 200
