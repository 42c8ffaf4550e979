"""Generations as spans: OTLP's bytes, GenAI's names, and what is lost when nobody takes them."""

import asyncio
import logging
from typing import Any

import pytest
from msgspec.structs import replace

from tests.clocks import STARTED_S, FixedClock
from tests.gateways import RecordedJournal
from tests.otlp import read_export
from tests.unit.ingress.samples import record
from tollgate.core import tracing
from tollgate.core.ids import IdSource
from tollgate.core.records.generation import RunRecord
from tollgate.core.tracing import CollectorError
from tollgate.core.work.kinds import WorkKind
from tollgate.observability.otlp import WAITING_MAX, SpanJournal

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CLOCK = FixedClock()
IDS = IdSource(CLOCK, entropy=lambda size: bytes(range(1, size + 1)))


class Taken:
    """A collector that keeps what it is sent; `refuses` some first, and waits at a gate."""

    def __init__(self, refuses: int = 0) -> None:
        self.requests: list[Any] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._refuses = refuses

    async def send(self, body: bytes) -> None:
        await self.gate.wait()
        if self._refuses:
            self._refuses -= 1
            raise CollectorError("HTTP 503")
        self.requests.append(read_export(body))

    @property
    def spans(self) -> list[Any]:
        return [span for request in self.requests for span in request["spans"]]


def journal_to(collector: Taken) -> SpanJournal:
    return SpanJournal(RecordedJournal([]), collector, CLOCK, IDS)


def attributes(span: Any) -> dict[str, object]:
    return dict(span["attributes"])


async def test_a_generation_is_a_span_below_its_callers() -> None:
    collector = Taken()
    journal = journal_to(collector)
    tracing.begin(CALLER, IDS)
    journal.settled(record(duration_ms=1500, first_token_ms=250, finish="stop"))
    await journal.flush()
    [span] = collector.spans
    assert span["trace"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert (span["parent"], span["id"]) == ("00f067aa0ba902b7", "0102030405060708")
    assert (span["name"], span["kind"]) == ("chat test/echo", 3)
    assert "status" not in span
    took_ns = span["end_ns"] - span["start_ns"]
    assert (took_ns, span["end_ns"]) == (1_500_000_000, int(STARTED_S * 1e9))
    told = attributes(span)
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.provider.name"] == "simulator"
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (7, 5)
    assert told["gen_ai.usage.cache_read.input_tokens"] == 4
    assert told["gen_ai.response.time_to_first_chunk"] == 0.25
    assert told["gen_ai.response.finish_reasons"] == ["stop"]
    assert told["tollgate.cost.usd"] == "1.234567891"
    assert told["gen_ai.usage.cost"] == 1.234567891
    assert "gen_ai.usage.reasoning.output_tokens" not in told, "null is not zero"


@pytest.mark.parametrize(
    ("kind", "ingress_format", "operation"),
    [
        ("embedding", "embeddings", "embeddings"),
        ("chat", "completions", "text_completion"),
        ("chat", "messages", "chat"),
        ("rerank", "rerank", "rerank"),
    ],
)
async def test_an_operation_has_the_name_of_the_conventions_whose_schema_is_sent(
    kind: WorkKind, ingress_format: str, operation: str
) -> None:
    collector = Taken()
    journal = journal_to(collector)
    plain = record(ingress_format=ingress_format)
    journal.settled(replace(plain, trace=replace(plain.trace, kind=kind)))
    await journal.flush()
    [span] = collector.spans
    assert attributes(span)["gen_ai.operation.name"] == operation
    assert span["name"] == f"{operation} {plain.trace.requested_model}"
    [sent] = collector.requests
    assert (sent["schema"], sent["service"]) == (
        "https://opentelemetry.io/schemas/gen-ai/0.1.0",
        "tollgate",
    )


async def test_each_run_of_a_tool_is_a_span_below_its_generation() -> None:
    collector = Taken()
    journal = journal_to(collector)
    tracing.begin(CALLER, IDS)
    runs = (
        RunRecord(
            tool="web_search",
            engine="tavily",
            round=1,
            query_hash="0123456789abcdef",
            began_ms=400,
            duration_ms=300,
            cost_nano_usd=8_000_000,
        ),
        RunRecord(
            tool="web_fetch",
            engine="",
            round=2,
            query_hash="fedcba9876543210",
            began_ms=900,
            duration_ms=100,
            error="url_not_allowed",
        ),
    )
    journal.settled(record(duration_ms=1500, runs=runs))
    await journal.flush()
    whole, search, fetch = collector.spans
    assert {span["trace"] for span in collector.spans} == {"4bf92f3577b34da6a3ce929d0e0e4736"}
    assert {span["parent"] for span in (search, fetch)} == {whole["id"]}
    assert (search["name"], search["kind"]) == ("execute_tool web_search", 1)
    began_ns = search["start_ns"] - whole["start_ns"]
    took_ns = search["end_ns"] - search["start_ns"]
    assert (began_ns, took_ns) == (400_000_000, 300_000_000)
    told = attributes(search)
    assert told["tollgate.server_tool.engine"] == "tavily"
    assert told["tollgate.server_tool.query_hash"] == "0123456789abcdef"
    assert told["tollgate.cost.usd"] == "0.008"
    assert fetch["status"] == (2, "url_not_allowed")
    assert "tollgate.server_tool.engine" not in attributes(fetch)


async def test_a_failure_has_its_code() -> None:
    collector = Taken()
    journal = journal_to(collector)
    journal.settled(record(outcome="error", error="provider_timeout"))
    await journal.flush()
    [span] = collector.spans
    assert span["status"] == (2, "provider_timeout")
    assert attributes(span)["error.type"] == "provider_timeout"
    assert span["parent"] is None


async def test_a_trace_that_its_caller_does_not_sample_is_not_sent() -> None:
    collector = Taken()
    journal = journal_to(collector)
    tracing.begin(CALLER.removesuffix("01") + "00", IDS)
    journal.settled(record())
    await journal.flush()
    assert collector.requests == []


async def test_those_that_wait_go_in_one_request_and_nobody_waits_for_another() -> None:
    collector = Taken()
    journal = journal_to(collector)
    collector.gate.clear()
    journal.settled(record())
    first = asyncio.create_task(journal.flush())
    await asyncio.sleep(0)
    journal.settled(record())
    journal.settled(record())
    await journal.flush()
    collector.gate.set()
    await first
    await journal.flush()
    assert [len(request["spans"]) for request in collector.requests] == [1, 2]


async def test_what_is_not_taken_is_counted_and_fails_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    collector = Taken(refuses=1)
    journal = journal_to(collector)
    for _ in range(WAITING_MAX + 3):
        journal.settled(record())
    with caplog.at_level(logging.WARNING, "tollgate"):
        await journal.flush()
    [told] = caplog.records
    assert told.__dict__["fields"] == {"failure": "HTTP 503", "spans_lost": WAITING_MAX + 3}
    await journal.flush()
    assert collector.requests == []
