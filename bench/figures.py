"""The figures of `make bench`, with their requests, baselines and targets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.upstream import SHORT_CHUNKS, STREAM_CHUNKS

FLOOR, PASSTHROUGH = "floor", "pass-through"
IN_MEMORY, WITH_LEDGER = "ours, in memory", "ours, ledger"
# `make scale` measures this command itself.
SERVED = "tollgate serve"
GATEWAYS = (FLOOR, PASSTHROUGH, IN_MEMORY, WITH_LEDGER)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Requests that are sent to several gateways in each round, in the same way."""

    name: str
    model: str
    """The model that is requested; bench/upstream.py chooses its answer by this name."""
    stream: bool
    gateways: Sequence[str]
    """The gateways that get the requests."""
    times: int
    """The number of requests in a round."""
    at_once: int = 1
    """The number of concurrent requests."""
    prompt_bytes: int = 200
    event_stream: bool = False
    """True if the upstream answers with Bedrock's event stream instead of SSE."""

    @property
    def marks(self) -> int:
        """Number of content pieces in a complete answer."""
        return SHORT_CHUNKS if self.model == "short" else STREAM_CHUNKS


SCENARIOS = (
    Scenario(name="small", model="quick", stream=False, gateways=GATEWAYS, times=160, at_once=8),
    Scenario(
        name="few-events",
        model="short",
        stream=False,
        gateways=(IN_MEMORY, WITH_LEDGER),
        times=80,
        at_once=8,
    ),
    Scenario(
        name="event-stream",
        model="quick",
        stream=False,
        gateways=(PASSTHROUGH, IN_MEMORY),
        times=80,
        at_once=8,
        event_stream=True,
    ),
    Scenario(
        name="large-prompt",
        model="quick",
        stream=False,
        gateways=(PASSTHROUGH, IN_MEMORY, WITH_LEDGER),
        times=80,
        at_once=8,
        prompt_bytes=64_000,
    ),
    Scenario(
        name="burst",
        model="quick",
        stream=True,
        gateways=(PASSTHROUGH, IN_MEMORY, WITH_LEDGER),
        times=40,
    ),
    Scenario(
        name="paced-sse",
        model="paced",
        stream=True,
        gateways=(FLOOR, PASSTHROUGH, IN_MEMORY),
        times=1,
    ),
    Scenario(
        name="paced-event-stream",
        model="paced",
        stream=True,
        gateways=(FLOOR, PASSTHROUGH, IN_MEMORY),
        times=1,
        event_stream=True,
    ),
    Scenario(
        name="first-token",
        model="short",
        stream=True,
        gateways=(FLOOR, PASSTHROUGH, IN_MEMORY, WITH_LEDGER),
        times=40,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One gateway in one round of a scenario: mean CPU and median first token, in seconds."""

    cpu_s: float
    first_token_s: float


# Samples by scenario and gateway, one for each round; equal indices are from the same round.
Samples = Mapping[tuple[str, str], Sequence[Sample]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table; `met` is None for a figure without a target."""

    figure: str
    floor: str = ""
    passthrough: str = ""
    ours: str
    ratio: str = ""
    target: str = ""
    met: bool | None = None


def compare_samples(samples: Samples, round_trip_s: float) -> list[Row]:
    """Return a line for each figure that has samples.

    `round_trip_s` is the time of one write to DynamoDB, which the ledger adds to the first token.
    """
    rows: list[Row] = []
    for scenario, base, ours, figure, target in (
        ("small", "small", WITH_LEDGER, "CPU, whole ~1 KB answer, 8 at once, ledger on", 11.2),
        ("small", "small", IN_MEMORY, "CPU, the same, ledger in memory", 5.2),
        (
            "few-events",
            "small",
            IN_MEMORY,
            "CPU, the same, 16 events instead of 200",
            None,
        ),
        ("event-stream", "event-stream", IN_MEMORY, "CPU, the same, Bedrock event stream", 4.6),
        ("large-prompt", "large-prompt", WITH_LEDGER, "CPU, 64 KB prompt, ledger on", 9.7),
        ("large-prompt", "large-prompt", IN_MEMORY, "CPU, 64 KB prompt, ledger in memory", 5.2),
        ("burst", "burst", IN_MEMORY, "CPU, stream of 200 chunks without pauses", None),
    ):
        if (scenario, ours) in samples:
            compared = (scenario, ours), (base, PASSTHROUGH)
            rows.append(_request_row(samples, *compared, figure=figure, target=target))
    for ours, where in ((WITH_LEDGER, "ledger on"), (IN_MEMORY, "in memory")):
        if ("large-prompt", ours) in samples and ("small", ours) in samples:
            rows.append(_prompt_row(samples, ours, where))
    for scenario, figure, target in (
        ("paced-sse", "CPU a chunk, paced stream of 200, SSE", 1.25),
        ("paced-event-stream", "CPU a chunk, the same, Bedrock event stream", 1.35),
    ):
        if (scenario, IN_MEMORY) in samples:
            rows.append(_chunk_row(samples, scenario, figure, target))
    for ours, where, extra_s in (
        (IN_MEMORY, "in memory", 0.0),
        (WITH_LEDGER, "ledger on", round_trip_s),
    ):
        if ("first-token", ours) in samples:
            rows.append(_first_token_row(samples, ours, where, extra_s))
    return rows


def _request_row(
    samples: Samples,
    measured: tuple[str, str],
    base: tuple[str, str],
    *,
    figure: str,
    target: float | None,
) -> Row:
    scenario, ours = measured
    ratio = _ratio(samples, measured, base)
    return Row(
        figure=figure,
        floor=_cpu_ms(samples, scenario, FLOOR),
        passthrough=_cpu_ms(samples, scenario, PASSTHROUGH),
        ours=_cpu_ms(samples, scenario, ours),
        ratio=f"{ratio:.1f} ×" if ratio else "",
        target=f"≤ {target:g} ×" if target else "",
        met=ratio <= target if target and ratio else None,
    )


def _prompt_row(samples: Samples, ours: str, where: str) -> Row:
    ratio = _ratio(samples, ("large-prompt", ours), ("small", ours)) or 0.0
    return Row(
        figure=f"CPU, 64 KB prompt against a small one, {where}",
        ours=_cpu_ms(samples, "large-prompt", ours),
        ratio=f"{ratio:.1f} × small",
        target="≤ 2 × small",
        met=ratio <= 2.0,
    )


def _chunk_row(samples: Samples, scenario: str, figure: str, target: float) -> Row:
    ratio = _ratio(samples, (scenario, IN_MEMORY), (scenario, PASSTHROUGH)) or 0.0
    return Row(
        figure=figure,
        floor=_chunk_us(samples, scenario, FLOOR),
        passthrough=_chunk_us(samples, scenario, PASSTHROUGH),
        ours=_chunk_us(samples, scenario, IN_MEMORY),
        ratio=f"{ratio:.2f} ×",
        target=f"≤ {target:g} ×",
        met=ratio <= target,
    )


def _first_token_row(samples: Samples, ours: str, where: str, extra_s: float) -> Row:
    bare = samples["first-token", PASSTHROUGH]
    added_s = median(
        sample.first_token_s - baseline.first_token_s
        for sample, baseline in zip(samples["first-token", ours], bare, strict=True)
    )
    limit_s = 0.002 + extra_s
    return Row(
        figure=f"Added time to first token, one at a time, {where}",
        passthrough=f"{median(sample.first_token_s for sample in bare) * 1e3:.2f} ms",
        ours=f"+ {added_s * 1e3:.2f} ms",
        target=f"≤ {limit_s * 1e3:.2f} ms",
        met=added_s <= limit_s,
    )


def _cpu_ms(samples: Samples, scenario: str, gateway: str) -> str:
    return _median(samples, scenario, gateway, lambda cpu_s: f"{cpu_s * 1e3:.2f} ms")


def _chunk_us(samples: Samples, scenario: str, gateway: str) -> str:
    return _median(
        samples, scenario, gateway, lambda cpu_s: f"{cpu_s / STREAM_CHUNKS * 1e6:.0f} µs"
    )


def _median(samples: Samples, scenario: str, gateway: str, show: Callable[[float], str]) -> str:
    taken = samples.get((scenario, gateway))
    return show(median(sample.cpu_s for sample in taken)) if taken else ""


def _ratio(samples: Samples, ours: tuple[str, str], base: tuple[str, str]) -> float | None:
    """Return the median of the ratios in each round, so that noise on the machine cancels out."""
    if base not in samples:
        return None
    pairs = zip(samples[ours], samples[base], strict=True)
    return median(sample.cpu_s / baseline.cpu_s for sample, baseline in pairs)
