"""Measurement of gateways in interleaved rounds, so that noise on the machine affects all alike."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.ministack import running_ministack
from tests.stores import aws_client, fresh_tables

from bench.children import Child, child
from bench.figures import FLOOR, IN_MEMORY, PASSTHROUGH, SERVED, WITH_LEDGER, Sample, Scenario
from bench.load import Question, ask
from bench.upstream import SHORT_CHUNKS
from tollgate.core.clock import SystemClock
from tollgate.stores.aws.tables import wallet_key


@contextmanager
def run_gateways(
    names: Sequence[str], *, emulated: bool = True, peers: Sequence[str] = ()
) -> Iterator[tuple[dict[str, Child], str | None]]:
    """Run the gateways of these names, and those of others (`peers`), until the block ends.

    Yields the gateways by name, and the URL of the DynamoDB of gateways with a ledger, or None.
    DynamoDB is an emulator if `emulated`, and otherwise the engine of the simulation, which handles
    more calls per second.
    """
    with ExitStack() as stack:
        upstream = stack.enter_context(child("bench.upstream", measured=False))
        port = str(upstream.port)
        dynamodb_url = None
        running: dict[str, Child] = {}
        for name in names:
            module, arguments = _COMMANDS[name], [port]
            if name in _LEDGERS:
                dynamodb_url = stack.enter_context(_run_dynamodb(emulated=emulated))
                arguments.append(dynamodb_url)
            running[name] = stack.enter_context(child(module, *arguments))
        for name in peers:
            running[name] = stack.enter_context(child("bench.compare.peer", port, name))
        yield running, dynamodb_url


_COMMANDS = {
    FLOOR: "bench.gateways.floor",
    PASSTHROUGH: "bench.gateways.passthrough",
    IN_MEMORY: "bench.gateways.ours",
    WITH_LEDGER: "bench.gateways.ours",
    SERVED: "bench.gateways.served",
}
_LEDGERS = (WITH_LEDGER, SERVED)


@contextmanager
def _run_dynamodb(*, emulated: bool) -> Iterator[str]:
    """Yield the URL of an empty DynamoDB."""
    if emulated:
        with tempfile.TemporaryDirectory() as folder, running_ministack(Path(folder)) as url:
            yield url
    else:
        with child("bench.gateways.dynamodb", measured=False) as store:
            yield f"http://127.0.0.1:{store.port}"


async def measure_rounds(
    scenarios: Sequence[Scenario], running: dict[str, Child], rounds: int
) -> dict[tuple[str, str], list[Sample]]:
    """Return the samples of `rounds` rounds, by scenario and gateway.

    The first calls of each gateway warm it up, and are not sampled.
    """
    samples: dict[tuple[str, str], list[Sample]] = {}
    for number in range(rounds):
        for scenario in scenarios:
            names = [name for name in scenario.gateways if name in running]
            first = number % len(names)
            for name in names[first:] + names[:first]:
                if number == 0:
                    await take_sample(scenario, name, running[name], times=scenario.at_once)
                sample = await take_sample(scenario, name, running[name], times=scenario.times)
                samples.setdefault((scenario.name, name), []).append(sample)
        print(f"  round {number + 1} of {rounds}", file=sys.stderr)
    return samples


async def take_sample(scenario: Scenario, name: str, gateway: Child, *, times: int) -> Sample:
    question = _question(scenario, name, gateway)
    before_s = gateway.cpu_s()
    answers = await ask(gateway.port, question, times=times, at_once=scenario.at_once)
    cpu_s = (gateway.cpu_s() - before_s) / answers.count
    return Sample(cpu_s=cpu_s, first_token_s=answers.median_first_token_s)


def _question(scenario: Scenario, name: str, gateway: Child) -> Question:
    """Return the request, in OpenAI's format for a gateway and in the upstream's for a proxy."""
    provider = "bedrock" if scenario.event_stream else "sse"
    doors = gateway.facts.get("doors")
    door = doors[provider] if doors else None
    if door is None and "key" in gateway.facts:
        # Tollgate streams from each provider, so its whole answers have the marks of a stream.
        door, marks = {"prefix": f"{provider}/", "headers": {}}, scenario.marks
    elif scenario.stream or (door is None and scenario.event_stream):
        marks = scenario.marks
    else:
        marks = SHORT_CHUNKS
    question = Question.chat(
        scenario.model if door is None else f"{door['prefix']}{scenario.model}",
        marks,
        stream=scenario.stream,
        prompt_bytes=scenario.prompt_bytes,
        key=gateway.facts.get("key", ""),
        headers=None if door is None else door["headers"],
    )
    if scenario.event_stream and door is None:
        return question.to(f"/model/{scenario.model}/converse-stream")
    return question


async def measure_round_trip_s(dynamodb_url: str) -> float:
    """Return the median seconds of one write to a DynamoDB, on an open connection."""
    client = aws_client(dynamodb_url, clock=SystemClock())
    try:
        tables = await fresh_tables(client)
        taken: list[float] = []
        for _ in range(40):
            start_s = perf_counter()
            await client.call(
                "UpdateItem",
                {
                    "TableName": tables.ledger,
                    "Key": wallet_key("bench", 0),
                    "UpdateExpression": "SET av = :one",
                    "ExpressionAttributeValues": {":one": {"N": "1"}},
                },
            )
            taken.append(perf_counter() - start_s)
        return median(taken)
    finally:
        await client.close()
