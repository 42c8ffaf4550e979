"""Metrics of a server: their readers, what they count, and the names in the examples."""

import asyncio
import json
import re
from collections.abc import Iterable
from pathlib import Path

import httpx2
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.clocks import FixedClock
from tests.unit.ingress.samples import RECORD
from tests.unit.observability.test_emf import FAILED, SERVED
from tollgate.cli.server.measured_app import MeasuredApp, MetricsAccess
from tollgate.cli.server.metrics import MeasuringJournal, ServerMetrics, prometheus_name
from tollgate.core.errors import AccessError, ErrorCode
from tollgate.core.prompt_policy import PromptPolicy
from tollgate.core.records.generation import JudgementRecord, ReusedAnswer, ShadowTrace
from tollgate.ingress.errors import openai_reply
from tollgate.observability import emf
from tollgate.observability.emf import EmbeddedMetrics
from tollgate.observability.log import LogJournal

TOKEN = "a-token-of-the-metrics"
PROMETHEUS = Path(__file__).parents[3] / "docs" / "prometheus"
CHAT = "/v1/chat/completions"


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that answers as a gateway that lacks credit does."""
    rendered = openai_reply(AccessError(ErrorCode.INSUFFICIENT_CREDITS, "No credit."), "r-1")
    await Response(rendered.body, rendered.status)(scope, receive, send)


def client(
    access: MetricsAccess, metrics: ServerMetrics | None = None, address: str = "127.0.0.1"
) -> httpx2.AsyncClient:
    app = MeasuredApp(refuse, metrics or ServerMetrics(), access)
    transport = httpx2.ASGITransport(app=app, client=(address, 1))
    return httpx2.AsyncClient(transport=transport, base_url="http://gateway")


def samples(metrics: ServerMetrics) -> dict[tuple[str, ...], float]:
    """Values by the name of a sample and the values of its labels, in the order of their names."""
    return {
        (sample.name, *(it for _, it in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def journal(metrics: ServerMetrics) -> MeasuringJournal:
    return MeasuringJournal(LogJournal(EmbeddedMetrics("Tollgate/test", FixedClock())), metrics)


async def test_without_a_setting_there_is_no_such_route() -> None:
    async with client(MetricsAccess()) as http:
        reply = await http.get("/metrics")
    assert reply.status_code == 402
    assert "tollgate_" not in reply.text


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"authorization": f"Bearer {TOKEN}"}, 200),
        ({"authorization": f"bearer {TOKEN} "}, 200),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": "Bearer é".encode()}, 401),
        ({"authorization": TOKEN}, 401),
        ({}, 401),
    ],
)
async def test_a_token_is_required_from_every_address(sent: dict[str, str], status: int) -> None:
    for address in ("127.0.0.1", "203.0.113.9"):
        async with client(MetricsAccess(token=TOKEN), address=address) as http:
            assert (await http.get("/metrics", headers=sent)).status_code == status


@pytest.mark.parametrize(
    ("address", "sent", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("10.0.0.7", {}, 401),
        ("", {}, 401),
        ("127.0.0.1", {"x-forwarded-for": "127.0.0.1"}, 401),
        ("127.0.0.1", {"forwarded": "for=203.0.113.9"}, 401),
    ],
)
async def test_programs_of_the_machine_read_them_but_not_through_a_proxy(
    address: str, sent: dict[str, str], status: int
) -> None:
    async with client(MetricsAccess(loopback=True), address=address) as http:
        reply = await http.get("/metrics", headers=sent)
        assert reply.status_code == status
        assert ("process_cpu_seconds_total" in reply.text) == (status == 200)
        assert (await http.post("/metrics")).status_code == 405


async def test_replies_are_counted_by_route_status_and_code() -> None:
    metrics = ServerMetrics()
    async with client(MetricsAccess(loopback=True), metrics) as http:
        for path in (CHAT, f"/api{CHAT}/", "/v1/anything", "/v1/keys?token=secret"):
            await http.post(path)
    found = samples(metrics)
    assert found["tollgate_requests_total", CHAT, "402"] == 2
    assert found["tollgate_requests_total", "api", "402"] == 2
    assert found["tollgate_refusals_total", "insufficient_credits", CHAT] == 2
    assert found["tollgate_requests_in_flight",] == 0
    assert "anything" not in metrics.render().decode()


async def test_the_tasks_of_the_process_are_counted_when_they_are_read() -> None:
    metrics = ServerMetrics()
    forgotten = [asyncio.create_task(asyncio.Event().wait()) for _ in range(3)]
    async with client(MetricsAccess(loopback=True), metrics) as http:
        await http.get("/metrics")
        with_them = samples(metrics)["tollgate_tasks",]
        for task in forgotten:
            task.cancel()
        await asyncio.wait(forgotten)
        await http.get("/metrics")
    assert with_them - samples(metrics)["tollgate_tasks",] == len(forgotten)


def test_a_generation_counts_as_its_log_line_does() -> None:
    metrics = ServerMetrics()
    record = replace(
        RECORD,
        attempts=(FAILED, SERVED),
        usage_source="bounded",
        duration_ms=1_500,
        first_token_ms=300,
    )
    written = journal(metrics)
    written.settled(record)
    written.endpoint_cooled_down("acme/large@near")
    found = samples(metrics)
    for metric, value in emf.measure(record).items():
        name = prometheus_name(metric)
        if metric.unit == "Milliseconds":
            assert found[f"{name}_sum", "test/echo", "ok", "simulator"] == value / 1_000
        else:
            assert found[f"{name}_total", "test/echo", "ok", "simulator"] == value
    assert found["tollgate_usage_total", "output_tokens", "test/echo", "simulator"] == 5
    assert found["tollgate_attempts_total", "provider_rate_limit", "acme/large", "near"] == 1
    assert found["tollgate_attempts_failed_total", "provider_rate_limit", "near"] == 1
    assert found["tollgate_usage_bounded_total", "simulator"] == 1
    assert found["tollgate_endpoints_rested_total", "acme/large@near"] == 1
    text = metrics.render().decode()
    assert record.key_id not in re.findall(r'="([^"]*)"', text)


def test_a_callers_words_are_no_labels_and_labels_are_bounded() -> None:
    metrics = ServerMetrics()
    trace = replace(RECORD.trace, requested_model="nobody/has-this")
    metrics.count_generation(replace(RECORD, trace=trace, model=None, provider=None))
    for number in range(600):
        metrics.count_generation(replace(RECORD, model=f"m/{number}"))
    models = {key[1] for key in samples(metrics) if key[0] == "tollgate_generations_total"}
    assert len(models) == 502
    assert {"other", ""} < models
    assert "has-this" not in metrics.render().decode()


def named(texts: Iterable[str]) -> set[str]:
    return {it for text in texts for it in re.findall(r"\btollgate_[a-z_]+", text)}


def test_the_examples_name_metrics_that_exist() -> None:
    metrics = ServerMetrics()
    written = journal(metrics)
    reused = ReusedAnswer(generation_id="a", saved_nano_usd=1)
    shadow = ShadowTrace(
        generation_id="a",
        route="r",
        model=None,
        cost_nano_usd=1,
        duration_ms=1,
        first_token_ms=1,
        output_tokens=1,
    )
    record = replace(
        RECORD,
        attempts=(FAILED,),
        usage_source="bounded",
        first_token_ms=1,
        reused=reused,
        shadow=shadow,
        limit_warning="day 85%",
        trace=replace(
            RECORD.trace,
            probe="near/large-1",
            sorted_by="latency",
            bent=True,
            quotas_used_up=("usd/day=5",),
            prompt_policies=(PromptPolicy(no_training=True),),
            is_candidate=True,
        ),
    )
    judgement = JudgementRecord(guardrail="secrets", stage="input")
    written.settled(replace(record, judgements=(judgement,)))
    written.unsettled(record, ValueError())
    written.endpoint_cooled_down("a@b")
    written.catalog_rejected("live", ValueError(), serving="sha")
    metrics.count_reply(CHAT, "200")
    metrics.count_refusal(CHAT, "internal_error")
    metrics.count_defect()
    known = {key[0] for key in samples(metrics)}
    dashboard = (PROMETHEUS / "grafana.json").read_text()
    panels = json.loads(dashboard)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    rules = (PROMETHEUS / "rules.yaml").read_text()
    page = (PROMETHEUS.parent / "metrics.md").read_text()
    assert named([dashboard, rules]) <= known
    ends = ("_bucket", "_count", "_created")
    of_ours = {re.sub("_(sum|total)$", "", it) for it in known if not it.endswith(ends)}
    written_out = {it.removesuffix("_total") for it in named([page])}
    assert written_out == {it for it in of_ours if it.startswith("tollgate_")}
