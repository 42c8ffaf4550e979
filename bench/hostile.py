"""Measurement of hostile requests on real hosts: `tollgate serve`, and Lambda on the emulator."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from statistics import median

import aiohttp
from tests.hostile.shapes import CHAT, JSON, SHAPES, Shape

from bench.starts import run_function
from bench.tenants import Served, Tenants, open_tenants, serving

# Lambda accepts events of 6 MB, which contain the body as an escaped string; a byte of sound may
# need six characters.
_LAMBDA_BODY_BYTES_MAX = 4_000_000
_LAMBDA_SOUND_BYTES_MAX = 900_000
# Shapes that a tenant with credit also sends, with the fraction of their size that fits in a
# context of two million tokens, and the name of that smaller request.
_PAID = {
    "a stored conversation of 60,000 messages": (1.0, "a stored conversation of 60,000 messages"),
    "100,000 short messages": (1.0, "100,000 short messages"),
    "49 MB of text": (1 / 6, "8 MB of text"),
}
# A refused short request shows the cost of a refusal that does not depend on the body.
_SHORT = Shape(
    "a short request",
    CHAT,
    lambda _: b'{"model":"acme/large","messages":[{"role":"user","content":"Hello"}]}',
)
_REFUSED = (_SHORT, *SHAPES)
_COLUMNS = ("request", "CPU on serve", "others wait", "CPU on Lambda")
_SETTLE_REQUESTS = 3


@dataclass(kw_only=True)
class Cost:
    """Measured times for one kind of request, in seconds."""

    cpu_s: list[float] = field(default_factory=list)
    wait_s: list[float] = field(default_factory=list)
    lambda_cpu_s: list[float] = field(default_factory=list)


async def measure_hostile(rounds: int) -> str:
    """Return the table of hostile requests, both refused for lack of credit and paid."""
    costs: dict[str, Cost] = {}
    async with open_tenants() as tenants:
        async with serving(tenants) as served:
            for shape in _REFUSED:
                sending = _sending(served, tenants, shape, tenants.penniless)
                costs[shape.name] = await _measure_served(served, sending, rounds)
            for shape in SHAPES:
                if shape.name in _PAID:
                    part, name = _PAID[shape.name]
                    sending = _sending(served, tenants, shape, tenants.spender, part=part)
                    costs[f"{name}, paid"] = await _measure_served(served, sending, rounds)
        await _measure_lambda(tenants, costs, rounds)
    heading = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    return "\n".join([*heading, *(_format(name, cost) for name, cost in costs.items())])


def _sending(
    served: Served, tenants: Tenants, shape: Shape, secret: str, *, part: float = 1.0
) -> Callable[[], Awaitable[None]]:
    body = tenants.body(shape, part)

    async def send() -> None:
        status, reply = await served.send(shape.path, body, secret, content_type=shape.content_type)
        _check(shape, status, reply, refused=secret == tenants.penniless)

    return send


async def _measure_served(served: Served, send: Callable[[], Awaitable[None]], rounds: int) -> Cost:
    cost = Cost()
    await send()
    for _ in range(rounds):
        before_s = served.process.cpu_s()
        await send()
        cost.cpu_s.append(served.process.cpu_s() - before_s)
        cost.wait_s.append(max(await served.waits_s(send())))
    return cost


async def _measure_lambda(tenants: Tenants, costs: dict[str, Cost], rounds: int) -> None:
    folder = tenants.stage.settings.objects_folder
    variables = {"TOLLGATE_BODY_BYTES_MAX": "6000000", "TOLLGATE_OBJECTS_FOLDER": str(folder)}
    async with (
        run_function(tenants.stage, variables) as (port, function),
        aiohttp.ClientSession() as http,
    ):
        for shape in _REFUSED:
            is_sound = shape.content_type != JSON
            most = _LAMBDA_SOUND_BYTES_MAX if is_sound else _LAMBDA_BODY_BYTES_MAX
            body = tenants.body(shape, min(1.0, most / len(shape.make(1.0))))
            headers = {
                "authorization": f"Bearer {tenants.penniless}",
                "content-type": shape.content_type,
            }
            url = f"http://127.0.0.1:{port}/api{shape.path}"
            for number in range(-_SETTLE_REQUESTS, rounds):
                before_s = function.cpu_s()
                async with http.post(url, data=body, headers=headers) as reply:
                    content = await reply.read()
                _check(shape, reply.status, content, refused=True)
                if number >= 0:
                    costs[shape.name].lambda_cpu_s.append(function.cpu_s() - before_s)


def _check(shape: Shape, status: int, reply: bytes, *, refused: bool) -> None:
    """Raise RuntimeError unless the request was refused for lack of credit, or served."""
    if (b"no credit available" in reply) is not refused or (status == 200) is refused:
        raise RuntimeError(f"{shape.name}: {status}: {reply[:300]!r}")


def _format(name: str, cost: Cost) -> str:
    on_lambda = f"{median(cost.lambda_cpu_s) * 1e3:.1f} ms" if cost.lambda_cpu_s else ""
    # On a busy machine, waits include the time of other processes; the shortest includes the least.
    cells = (f"{median(cost.cpu_s) * 1e3:.1f} ms", f"{min(cost.wait_s) * 1e3:.0f} ms", on_lambda)
    return f"| {name} | {' | '.join(cells)} |"
