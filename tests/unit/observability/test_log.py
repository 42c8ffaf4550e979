"""The log: one JSON object a line."""

import json
import logging
from collections.abc import Iterator
from decimal import Decimal

import msgspec
import pytest
from msgspec.structs import replace

from tests.clocks import FixedClock
from tests.unit.ingress.samples import record
from tollgate.core.records.generation import AttemptRecord, BillLine, GenerationRecord, RunRecord
from tollgate.core.usage import Usage
from tollgate.observability.emf import EmbeddedMetrics
from tollgate.observability.log import JsonFormatter, LogJournal

LINE = BillLine(item="output", quantity=2, usd_per_million=Decimal("0.5"), cost_nano_usd=1000)
ATTEMPT = AttemptRecord(
    model="test/echo", provider="simulator", error=None, status=None, duration_ms=7
)


JOURNAL = LogJournal(EmbeddedMetrics("Tollgate/test", FixedClock()))


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What the journal writes from now on."""
    written: list[str] = []

    class Kept(logging.Handler):
        def emit(self, told: logging.LogRecord) -> None:
            written.append(JsonFormatter().format(told))

    logger, handler = logging.getLogger("tollgate"), Kept()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield written
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_a_generation_is_one_line_without_what_was_said(lines: list[str]) -> None:
    JOURNAL.settled(record(attempts=(ATTEMPT,), lines=(LINE,)))
    [line] = lines
    assert "\n" not in line
    told = json.loads(line)
    assert (told["level"], told["message"]) == ("INFO", "generation")
    assert told["generation_id"] == record().id
    assert (told["outcome"], told["attempts"], told["cost_usd"]) == ("ok", 1, "1.234567891")
    assert (told["input_tokens"], told["output_tokens"]) == (7, 5)


def test_c73_a_generation_says_how_many_rounds_it_had_and_each_failed_run_has_a_line(
    lines: list[str],
) -> None:
    run = RunRecord(
        tool="web_search", engine="tavily", round=1, query_hash="ab", duration_ms=7, cost_nano_usd=1
    )
    failed = replace(run, tool="web_fetch", error="url_not_accessible")
    JOURNAL.settled(record(rounds=(Usage(), Usage()), runs=(run, failed)))
    JOURNAL.settled(record())
    told, broken, plain = map(json.loads, lines)
    assert (told["rounds"], told["server_tools"]) == (2, ["web_search", "web_fetch"])
    assert (broken["message"], broken["tool"], broken["error"], broken["engine"]) == (
        "tool failed",
        "web_fetch",
        "url_not_accessible",
        "tavily",
    )
    assert (plain["rounds"], plain["server_tools"]) == (1, [])


def test_the_line_of_a_generation_has_the_ids_of_the_platforms(lines: list[str]) -> None:
    JOURNAL.settled(record(api_gateway_request_id="41b45ea3", lambda_request_id="8476a536"))
    line = json.loads(lines[0])
    assert line["api_gateway_request_id"] == "41b45ea3"
    assert line["lambda_request_id"] == "8476a536"


def test_usage_that_nobody_has_priced_is_a_warning_of_its_own(lines: list[str]) -> None:
    searched = replace(LINE, item="unpriced_web_search", quantity=3, cost_nano_usd=0)
    JOURNAL.settled(record(attempts=(ATTEMPT,), lines=(LINE, searched)))
    told = json.loads(lines[1])
    assert (told["level"], told["message"]) == ("WARNING", "usage without a price")
    assert (told["item"], told["quantity"]) == ("unpriced_web_search", 3)
    assert (told["generation_id"], told["provider"]) == (record().id, record().provider)
    assert len(lines) == 2


def test_what_could_not_be_settled_is_there_whole(lines: list[str]) -> None:
    JOURNAL.unsettled(record(attempts=(ATTEMPT,), lines=(LINE,)), TimeoutError())
    told = json.loads(lines[0])
    assert (told["level"], told["failure"]) == ("ERROR", "TimeoutError")
    logged = msgspec.json.decode(told["record"], type=GenerationRecord)
    assert logged == record(attempts=(ATTEMPT,), lines=(LINE,))


def test_a_defect_has_its_traceback_in_one_line(lines: list[str]) -> None:
    try:
        raise KeyError("missing")
    except KeyError as unexpected_error:
        JOURNAL.unexpected_error(unexpected_error, "Na1b2c3d4e5f6g7")
    [line] = lines
    assert "\n" not in line
    told = json.loads(line)
    assert told["request_id"] == "Na1b2c3d4e5f6g7"
    assert told["exception"].endswith("KeyError: 'missing'")
