"""A gateway with guardrails over scripted providers, one of which judges."""

import json
from typing import Any

from tests.gateways import House, house
from tests.scripted import Scripted, frame
from tests.unit.engine.client_formats import exchange
from tests.unit.routing.catalogs import endpoint, model

CARD = "4111 1111 1111 1111"
SECRET = "sk-live-abcdefghijklmnopqrstuvwx"
EMAIL = "ada@example.com"
CLEAN = {"flagged": False, "categories": {"violence": False}, "category_scores": {"violence": 0}}
VIOLENT = {"flagged": True, "categories": {"violence": True}, "category_scores": {"violence": 1}}
MODERATOR = model(
    {"provider": "far", "upstream": "mod-1", "price": {**endpoint("far", "x")["price"]}},  # type: ignore[dict-item]
    kind="moderation",
    context=20_000,
)
del MODERATOR["max_output"], MODERATOR["endpoints"][0]["price"]["output"]  # type: ignore[index]
MODELS = {
    "acme/large": model(
        endpoint("near", "large-1", dollars_in="3", dollars_out="15"), supports=("tools",)
    ),
    "acme/moderator": MODERATOR,
    "acme/judge": model(endpoint("far", "judge-1")),
}


def patterns(*finds: str, **changes: Any) -> dict[str, Any]:
    options = {name: changes.pop(name) for name in ("base64", "restores") if name in changes}
    return {"patterns": {"finds": finds or ("card_number", "secret"), **options}, **changes}


def moderation(**changes: Any) -> dict[str, Any]:
    return {"moderation": {"model": "acme/moderator"}, **changes}


def judge(**changes: Any) -> dict[str, Any]:
    options = {name: changes.pop(name) for name in ("prompt",) if name in changes}
    return {"judge": {"model": "acme/judge", **options}, **changes}


def results(*each: dict[str, Any]) -> list[Any]:
    return [frame({"results": list(each)})]


async def guarded(*near: Any, far: Any = None, sections: Any = None, **rows: Any) -> House:
    """A house with guardrails; `sections` replace those of its routing."""
    return await house(
        near=Scripted(*near) if near else None,
        far=Scripted(*far) if far else None,
        guardrails=rows,
        **{
            "models": MODELS,
            "aliases": {},
            "routes": {"safe": {"description": "Guarded", "try": ("acme/large",)}},
            **(sections or {}),
        },
    )


async def ask(home: House, content: Any = "Hi", **fields: Any) -> Any:
    messages = fields.pop("messages", [{"role": "user", "content": content}])
    return await exchange(home, "/v1/chat/completions", {"messages": messages, **fields})


def sent_messages(provider: Scripted, place: int = 0) -> Any:
    body: Any = provider.requests[place].body
    return body["messages"]


def text_of(reply: Any) -> str:
    if not reply.headers["content-type"].startswith("text/event-stream"):
        return str(reply.json["choices"][0]["message"]["content"] or "")
    deltas = [
        json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
        for line in reply.body.decode().splitlines()
        if line.startswith("data: {") and json.loads(line[6:]).get("choices")
    ]
    return "".join(deltas)
