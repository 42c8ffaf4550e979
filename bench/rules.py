"""CPU of a request under each rule of the gate, as ratios to the CPU of a request without rules.

`PYTHONPATH=functions:. python -m bench.rules` prints the table. Every request is streamed through
the whole chat app in this process, with stores in memory and a scripted provider, so the table has
the rules alone, without the network and DynamoDB. Rounds are interleaved; a ratio is the median of
the ratios within each round.
"""

import asyncio
import gc
import json
import time
from collections.abc import Mapping
from decimal import Decimal
from statistics import median
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from tests.gateways import Always, House, house
from tests.memory.answer_cache import MemoryAnswerCache
from tests.unit.routing.catalogs import RECENTLY, endpoint, model, provider

from tollgate.core.routing.endpoint_status import AnswerTime
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

ROUNDS: Final = 15
TIMES: Final = 8
PLAIN: Final = "none"
PATH: Final = "/v1/chat/completions"
PROMPT: Final = "word " * 1_600
PAGE: Final = {"source": "https://example.com", "checked": RECENTLY}
PROVIDERS: Final = {
    name: provider(countries=("DE",), prompt_use={"training": "none", "retention_days": 0, **PAGE})
    for name in ("near", "far")
}
CACHEABLE: Final = {"cacheable": {"tokens_min": 512, **PAGE}}
SECRETS: Final = {"patterns": {"finds": ("card_number", "secret")}, "stages": ("input", "output")}
PRESET: Final = {"model": "acme/large", "system": "Be brief.", "max_tokens": 50}


class Rule(Struct, frozen=True, kw_only=True):
    """A rule: settings of the key, sections of routing.yaml, and fields of the request."""

    key: Mapping[str, Any] = {}
    sections: Mapping[str, Any] = {}
    model: Mapping[str, Any] = {}
    body: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    write_units: int = 5
    """Write units of a request, as the tests of the contract count them."""


RULES: Final = {
    PLAIN: Rule(),
    "guardrail of patterns": Rule(sections={"guardrails": {"secrets": SECRETS}}),
    "quotas": Rule(key={"quotas": "requests/hour=1000000,tokens/day=1000000000,usd/day=500"}),
    "quotas of models": Rule(key={"quotas": "requests/minute=1000000@acme/*,usd/day=500@acme/*"}),
    "limit of a run": Rule(
        key={"session_budget": Decimal(500)}, headers={"x-session-id": "run"}, write_units=7
    ),
    "max_cost": Rule(key={"max_cost": Decimal(5)}),
    "sort: latency": Rule(body={"provider": {"sort": "latency"}}),
    "conversation at one endpoint": Rule(model=CACHEABLE),
    "prompt policy": Rule(key={"prompt_policy": "eu,no_training"}),
    "candidate catalog": Rule(),
    "preset": Rule(sections={"presets": {"brief": PRESET}}, body={"model": "preset/brief"}),
    "answer from the cache": Rule(key={"answer_cache": "key"}, body={"model": "faq"}),
}


class Measured(Struct, frozen=True):
    """CPU seconds of a request: all, and those until its first byte."""

    cpu_s: float
    first_s: float


class Ruled(Struct, frozen=True):
    """A gateway with one rule, and the request that meets the rule."""

    home: House
    rule: Rule

    async def ask(self) -> Measured:
        """Send the request, and read the whole answer."""
        app = chat_app(self.home.front, Always(self.home.gateway), WebLimits())
        fields = {"model": "acme/large", "max_tokens": 50, "stream": True, **self.rule.body}
        body = json.dumps({"messages": [{"role": "user", "content": PROMPT}], **fields}).encode()
        sent = {"authorization": f"Bearer {self.home.secret}", **self.rule.headers}
        scope = {
            "type": "http",
            "method": "POST",
            "path": PATH,
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": ("127.0.0.1", 1),
        }
        unread, pieces = [body], list[bytes]()
        first_s = 0.0

        async def receive() -> dict[str, Any]:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Any) -> None:
            nonlocal first_s
            if message.get("body"):
                first_s = first_s or time.process_time()
                pieces.append(message["body"])

        began_s = time.process_time()
        await app(scope, receive, send)
        cpu_s = time.process_time() - began_s
        if not b"".join(pieces).endswith(b"data: [DONE]\n\n"):
            raise RuntimeError(f"no complete answer: {pieces}")
        return Measured(cpu_s, first_s - began_s)


async def open_rule(name: str) -> Ruled:
    """Return a gateway with a rule."""
    rule = RULES[name]
    ends = (endpoint("near", "large-1"), endpoint("far", "L"))
    route = {"description": "Cached", "try": ("acme/large",), "cache": {"ttl_s": 600}}
    home = await house(
        funds_nano_usd=10**15,
        key=NewKey(
            workspace_id="acme", label="k", requests_per_minute=6_000, burst=1_000, **rule.key
        ),
        providers=PROVIDERS,
        models={"acme/large": model(*ends, **rule.model)},
        aliases={},
        routes={"faq": route},
        **rule.sections,
    )
    if name == "candidate catalog":
        home.gateway = home.gateway.as_candidate()
    home.gateway = replace(home.gateway, answer_cache=MemoryAnswerCache())
    for slug in ("near/large-1", "far/L"):
        times = AnswerTime(answers=20, first_token_ms=20_000, output_tokens=400, output_ms=20_000)
        home.stores.cooldowns.add_answer(f"{slug} <=2000", times)
        await home.stores.cooldowns.write_speed(f"{slug} <=2000")
    return Ruled(home, rule)


async def measure() -> Mapping[str, list[Measured]]:
    """Return the medians of each round, by rule."""
    ruled = {name: await open_rule(name) for name in RULES}
    rounds: dict[str, list[Measured]] = {name: [] for name in RULES}
    for number in range(ROUNDS + 1):
        for name, gateway in ruled.items():
            gc.collect()
            asked = [await gateway.ask() for _ in range(TIMES)]
            if number:
                cpu_s = median(each.cpu_s for each in asked)
                rounds[name].append(Measured(cpu_s, median(each.first_s for each in asked)))
    return rounds


def write_table(rounds: Mapping[str, list[Measured]]) -> list[str]:
    """Return the table in Markdown."""
    plain = rounds[PLAIN]
    lines = ["| rule | CPU | CPU until the first byte | write units |", "|---|---|---|---|"]
    for name, measured in rounds.items():
        cpu = median(a.cpu_s / b.cpu_s for a, b in zip(measured, plain, strict=True))
        first = median(a.first_s / b.first_s for a, b in zip(measured, plain, strict=True))
        cells = (f"{cpu:.2f} ×", f"{first:.2f} ×", str(RULES[name].write_units))
        if name == PLAIN:
            ms = (1_000 * median(getattr(a, it) for a in plain) for it in ("cpu_s", "first_s"))
            cells = (*(f"{each:.2f} ms" for each in ms), cells[2])
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    print("\n".join(write_table(asyncio.run(measure()))))
