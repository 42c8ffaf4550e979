"""`tollgate spend` of the running month against a gateway with closed days.

Keeps C67.
"""

import json
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner

from tollgate.cli.main import main
from tollgate.cli.options import utc_today

ROW = {
    "model": None,
    "provider_name": None,
    "key_id": None,
    "key_name": None,
    "labels": {},
    "requests": 1,
    "prompt_tokens": 1,
    "completion_tokens": 1,
}


class _Gateway(BaseHTTPRequestHandler):
    """A gateway whose every day cost $2, and is closed except today."""

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        today, reply = utc_today(), {"data": [], "next_cursor": None}
        if "/activity" in self.path:
            first = date.fromisoformat(query["since"][0][:10])
            days = [first + timedelta(days=day) for day in range((today - first).days + 1)]
            reply |= {
                "data": [ROW | {"date": f"{day}", "usage": 2} for day in days],
                "total": f"{2 * len(days)}",
                "closed_days": [f"{day}" for day in days[:-1]],
                "live_days": [f"{today}"],
                "partial_days": [],
                "missing_days": [],
                "last_record_at": None,
            }
        content = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Gateway)
    Thread(target=server.serve_forever, daemon=True).start()
    yield {
        "TOLLGATE_KEY": "sk-x",
        "TOLLGATE_URL": f"http://127.0.0.1:{server.server_port}/v1",
    }
    server.shutdown()
    server.server_close()


def test_c67_the_running_month_has_a_forecast_and_other_days_have_none(
    environment: dict[str, str],
) -> None:
    runner, today = CliRunner(), utc_today()
    after = (today.replace(day=28) + timedelta(days=4)).replace(day=1)
    whole = Decimal(2 * (after - timedelta(days=1)).day)
    shown = runner.invoke(main, ["spend"], env=environment)
    assert f"Forecast of {today:%Y-%m}: ${whole:.2f}, at the mean of" in shown.stderr
    summary = json.loads(
        runner.invoke(main, ["spend", "--json"], env=environment).stdout, parse_float=Decimal
    )
    assert {Decimal(it) for it in summary["forecast"].values()} == {whole}
    for options in (["--month", "last"], ["--since", "30d"]):
        other = runner.invoke(main, ["spend", *options], env=environment)
        assert other.exit_code == 0
        assert "Forecast" not in other.stderr
