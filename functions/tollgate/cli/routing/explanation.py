"""Text output for an explained plan: the route, its candidates and the simulated attempts."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

_PLACES_MIN: Final = 3
_HEADS: Final = (
    *("", "model", "share", "draw", "endpoint", "share", "draw", "costs at most"),
    *("first token", "tokens/s", ""),
)
_GAP: Final = "  "


def render_explanation(answer: Any) -> list[str]:
    """Render a reply of `POST /v1/route/explain` as lines."""
    lines = [_headline(answer), _sizes(answer), *_preset(answer.get("preset")), ""]
    lines += _aligned([_HEADS, *(_row(each) for each in _in_order(answer["candidates"]))])
    lines += ["", *_catalog_and_order(answer), *map(_quota, answer.get("quotas", ()))]
    for name in answer["unmet"]:
        lines.append(f"{name} has no effect: no measurements of these endpoints are available.")
    if answer["error"] is None:
        lines.append(f"Holds {_dollars(answer['hold'])}. Next on: {', '.join(answer['next_on'])}.")
        if rounds := answer.get("rounds"):
            lines.append(_rounds(rounds))
            lines += map(_tool, rounds["tools"])
        lines += map(_guardrail, answer.get("guardrails", ()))
        if cache := answer.get("cache"):
            lines.append(_cache(cache))
        if shadow := answer.get("shadow"):
            lines.append(_shadow(shadow))
        if any(each["reads"] and each["attempt"] for each in answer["candidates"]):
            lines.append(
                "Documents are not read here: a real request also holds the cost of their pages."
            )
    else:
        lines.append(f"Refused: {answer['error']['message']} ({answer['error']['code']})")
    if answer["simulation"] is not None:
        lines += _simulation(answer["simulation"])
    return lines


def _headline(answer: Any) -> str:
    name = answer["requested"]
    target = answer.get("target") or answer["route"]
    if target not in (None, name):
        name = f"{name} → {target}"
    rule = f" → rule {answer['rule']}" if answer["rule"] else ""
    skipped = "; ".join(f"rule {each['rule']}: {each['reason']}" for each in answer["skipped"])
    because = f" (not {skipped})" if skipped else ""
    return f"{name}{rule}{because}{_GAP}catalog {answer['catalog_sha'][:7]}"


def _preset(preset: Any) -> Iterator[str]:
    """Yield the request's values with its preset, and the system prompt line by line."""
    if preset is None:
        return
    values = {name: preset[name] for name in ("max_tokens", "reasoning")} | preset["parameters"]
    stated = [f"{name} {value}" for name, value in values.items() if value is not None]
    yield f"preset {preset['name']}: {', '.join(stated) or 'no parameters'}"
    yield from (f"  | {line}" for line in (preset["system"] or "").splitlines())


def _rounds(rounds: Any) -> str:
    results, fees = rounds["result_tokens"], _dollars(rounds["fees"])
    return (
        f"That covers {rounds['rounds_max']} rounds with {results:,} tokens of results, and "
        f"{fees} for tool runs."
    )


def _tool(tool: Any) -> str:
    by = f"{tool['engine']}, or by a provider that can" if tool["by_provider"] else tool["engine"]
    cost = (
        f"for {_dollars(tool['fees'])} at most" if Decimal(str(tool["fees"])) else "at most, free"
    )
    return f"  {tool['id']} by {by}: {tool['uses_max']} runs {cost}"


def _guardrail(guardrail: Any) -> str:
    stages = ", ".join(guardrail["stages"]).replace("_", " ")
    cost = Decimal(str(guardrail["cost_max"]))
    return (
        f"Guardrail {guardrail['name']} ({guardrail['kind']}): {guardrail['action']} on {stages}"
        + (f", for {_dollars(cost)} at most." if cost else ".")
    )


def _catalog_and_order(answer: Any) -> Iterator[str]:
    """Yield the candidate catalog, the rule that bends the route, and the order by measurements."""
    if candidate := answer.get("candidate"):
        serves = "serves" if candidate["serves"] else "does not serve"
        sha, percent = candidate["catalog_sha"][:7], candidate["percent"]
        yield f"The candidate catalog {sha}, which {percent} % of the keys get, {serves} this key."
    if bend := answer.get("bend"):
        yield f"Bent by the budget: {bend}."
    if measure := answer.get("sorted_by"):
        yield f"Endpoints are sorted by {measure}, as measured here."


def _quota(quota: Any) -> str:
    models = f" of {quota['models']}" if quota["models"] else ""
    in_usd = quota["unit"] == "usd"
    used, limit = (
        _dollars(quota[name]) if in_usd else f"{quota[name]:,}" for name in ("used", "limit")
    )
    unit = "" if in_usd else f" {quota['unit']}"
    state = "is used up" if quota["used_up"] else "counts the request"
    until = f"until {quota['resets_at']}"
    return f"Quota {limit}{unit} per {quota['per']}{models}: {used} used {until}; it {state}."


def _cache(cache: Any) -> str:
    if cache["unused"]:
        return f"The cache of the route is not used: {cache['unused']}."
    price = f"{cache['price_percent']} % of their cost" if cache["price_percent"] else "nothing"
    reuse = f"get this answer, for {price}, if the key has answer_cache."
    return f"Identical requests within {cache['ttl_s']:,} s {reuse}"


def _shadow(shadow: Any) -> str:
    judge = f", judged by {shadow['judge']}" if shadow["judge"] else ""
    line = (
        f"{shadow['share']} % of the route's requests from keys with content_days also go to "
        f"{shadow['model']} as a shadow{judge}, at no cost to the caller."
    )
    if shadow["unused"]:
        return f"{line} This request does not: {shadow['unused']}."
    return f"{line} This request does." if shadow["used"] else line


def _sizes(answer: Any) -> str:
    about, upper = answer["prompt_tokens"], answer["prompt_tokens_max"]
    conversation = answer["conversation"]
    cached = f" (by {conversation} if its model's providers cache it)" if conversation else ""
    drawn_by = f"{answer['drawn_by']}{cached}"
    return f"about {about:,} prompt tokens, {upper:,} at most; drawn by {drawn_by}"


def _in_order(candidates: Sequence[Any]) -> list[Any]:
    """Return the candidates in the order of attempts; candidates without an attempt come last."""
    return sorted(candidates, key=lambda each: each["attempt"] or len(candidates) + 1)


def _row(candidate: Any) -> tuple[str, ...]:
    return (
        str(candidate["attempt"] or "-"),
        candidate["model"],
        _percent(candidate["model_weight"]),
        _score(candidate["model_draw"]),
        _endpoint(candidate),
        _percent(candidate["weight"]),
        _score(candidate["draw"]),
        _dollars(candidate["cost_max"]),
        "" if candidate["latency_ms"] is None else f"{candidate['latency_ms']:,} ms",
        "" if candidate["tokens_per_s"] is None else f"{candidate['tokens_per_s']:,}",
        candidate["removed"] or _remark(candidate),
    )


def _endpoint(attempt: Any) -> str:
    tier = attempt.get("service_tier")
    name = f"{attempt['provider']}/{attempt['upstream']}"
    return f"{name} ({tier})" if tier else name


def _remark(candidate: Any) -> str:
    """Return the remarks on a candidate that was not excluded."""
    until = candidate["resting_until"]
    reads = "documents are read for it" if candidate["reads"] else ""
    rests = f"rests until {until}" if until else ""
    if candidate.get("probes"):
        rests = "one request probes it after its rest"
    percent = candidate["batch_percent"] if candidate["attempt"] == 1 else None
    batched = f"{percent}% of the price in batches" if percent else ""
    lack = candidate["batch_lack"] if candidate["attempt"] == 1 else None
    batched = f"in batches {lack}" if lack else batched
    thin = candidate.get("thin")
    percent = candidate.get("cached_percent")
    cached = f"{percent}% of prompts cached" if percent else ""
    remarks = (_key_fault(candidate), reads, rests, thin, cached, batched)
    return ", ".join(filter(None, remarks))


def _key_fault(candidate: Any) -> str:
    """Return the fault of the provider's key, with the last request that found it."""
    fault, seen_at = candidate.get("key"), candidate.get("key_seen_at")
    if fault is None:
        return ""
    words = "the provider has no key" if fault == "absent" else "the provider rejected its key"
    return f"{words} ({seen_at})" if seen_at else words


def _simulation(simulation: Any) -> Iterator[str]:
    """Yield a line for each simulated attempt, and the error if no endpoint serves."""
    yield f"With {', '.join(simulation['faults'])}:"
    elapsed_s = Decimal(0)
    for attempt in simulation["attempts"]:
        elapsed_s += Decimal(str(attempt["took_s"]))
        endpoint = f"{attempt['model']} at {_endpoint(attempt)}"
        yield f"  {elapsed_s:>8.2f} s  {endpoint}  {attempt['error'] or 'serves'}"
        elapsed_s += Decimal(str(attempt["pause_s"]))
    if simulation["error"] is not None:
        yield f"No endpoint serves: the caller gets {simulation['error']}."


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows aligned in columns; columns without content are left out."""
    heads, *body = rows
    used = [index for index in range(len(heads)) if any(row[index] for row in body)]
    widths = {index: max(len(row[index]) for row in rows) for index in used}
    return [
        _GAP.join(row[index].ljust(widths[index]) for index in used).rstrip()
        for row in (rows if body else [])
    ]


def _percent(weight: int | None) -> str:
    return "" if weight is None else f"{weight} %"


def _score(draw: Any) -> str:
    return "" if draw is None else f"{Decimal(str(draw)):.2f}"


def _dollars(amount: Any) -> str:
    """Return dollars with three decimals, or two significant digits if the amount is smaller."""
    exact = Decimal(str(amount))
    places = max(_PLACES_MIN, 2 - exact.adjusted()) if exact else _PLACES_MIN
    return f"${exact:,.{places}f}"
