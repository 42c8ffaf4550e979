"""The command line against a running gateway: what people see, what programs read."""

import csv
import io
import json
import re
import subprocess
from collections.abc import Iterator
from decimal import Decimal

import openai
import pytest

from tests.local_server import ROOT, TOLLGATE, LocalServer, environment, local_server

COLUMNS = "id\tcreated_at\tstatus\tmodel\tprovider\tkey\ttokens\tusd\tms"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with local_server(tmp_path_factory.mktemp("dev")) as started:
        with openai.OpenAI(base_url=started.base_url, api_key=started.key, max_retries=0) as client:
            for content in ("one", "two"):
                client.chat.completions.create(
                    model="test/echo", messages=[{"role": "user", "content": content}]
                )
        yield started


def run(server: LocalServer, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    reached = {"TOLLGATE_URL": server.base_url, "TOLLGATE_KEY": server.management_key}
    return subprocess.run(
        [TOLLGATE, *arguments],
        cwd=ROOT,
        env={**environment(), **reached, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def printed(server: LocalServer, *arguments: str) -> str:
    done = run(server, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_list_is_tsv_in_a_pipe_csv_and_json_if_asked(server: LocalServer) -> None:
    head, *rows = printed(server, "generations", "ls").splitlines()
    assert head == COLUMNS
    assert len(rows) == 2
    assert all(
        row.split("\t")[2:6] == ["ok", "test/echo", "simulator", "local inference"] for row in rows
    )

    table = list(csv.DictReader(io.StringIO(printed(server, "generations", "ls", "--csv"))))
    told = json.loads(printed(server, "generations", "ls", "--json"))
    assert [row["id"] for row in table] == [record["id"] for record in told]
    assert printed(server, "generations", "ls", "--outcome", "error") == f"{COLUMNS}\n"


def test_a_bill_is_explained_line_by_line(server: LocalServer) -> None:
    newest = printed(server, "generations", "ls", "--limit", "1").splitlines()[1].split("\t")[0]
    head, *lines = printed(server, "generations", "show", newest).splitlines()

    assert re.fullmatch(
        r"\$\d+\.\d{5}  test/echo via simulator  key local inference  \S+Z  "
        r"TTFT \d+\.\d s, \d+\.\d s  catalog [0-9a-f]{7}",
        head,
    )
    pattern = r"  (fresh input|output) +[\d,]+ × \$\d+\.\d\d/M +(\d+\.\d{9})"
    costs = [Decimal(found[2]) for line in lines if (found := re.fullmatch(pattern, line))]
    assert len(costs) == 2
    record = json.loads(
        printed(server, "generations", "show", newest, "--json"), parse_float=Decimal
    )
    assert sum(costs) == record["total_cost"]


def test_spend_by_key_and_model_adds_up_to_the_month(server: LocalServer) -> None:
    head, row = printed(server, "spend", "--by", "key,model").splitlines()
    assert head == "key\tmodel\trequests\tprompt_tokens\tcompletion_tokens\tusd"
    assert row.split("\t")[:3] == ["local inference", "test/echo", "2"]
    balance = json.loads(printed(server, "credits", "show", "--json"), parse_float=Decimal)
    assert Decimal(row.split("\t")[-1]) == balance["total_usage"]


def test_c64_credit_is_added_once_a_name(server: LocalServer) -> None:
    before = printed(server, "credits", "show").splitlines()[1].split("\t")
    added = run(server, "credits", "add", "2.5", "--id", "invoice-7")
    again = run(server, "credits", "add", "2.5", "--id", "invoice-7")

    assert added.stdout == again.stdout
    assert "was granted before" in again.stderr
    assert Decimal(added.stdout.splitlines()[1].split("\t")[0]) == Decimal(before[0]) + Decimal(
        "2.5"
    )


def test_c60_a_key_prints_its_secret_alone_and_can_be_stopped(server: LocalServer) -> None:
    secret = printed(server, "keys", "create", "ci", "--limit", "day=5", "--model", "test/*")
    assert re.fullmatch(r"sk-tg-\S+\n", secret)
    shown = dict(
        zip(
            *(line.split("\t") for line in printed(server, "keys", "show", "ci").splitlines()),
            strict=True,
        )
    )
    assert (shown["name"], shown["state"], shown["limits"]) == ("ci", "on", "day 5")
    assert secret.strip() not in printed(server, "keys", "ls", "--json")

    assert "disabled" in printed(server, "keys", "disable", "ci")
    refused = run(server, "generations", "ls", TOLLGATE_KEY=secret.strip())
    assert refused.returncode == 1
    assert "(invalid_api_key, request " in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "said"),
    [
        (("keys", "ls"), {"TOLLGATE_KEY": ""}, 1, "There is no key.\nSet TOLLGATE_KEY"),
        (("keys", "ls"), {"TOLLGATE_URL": "http://127.0.0.1:9"}, 1, "start one: `tollgate dev`"),
        (("keys", "ls"), {"TOLLGATE_URL": "file:///etc/passwd"}, 1, "no http or https URL"),
        (("keys", "show", "nobody"), {}, 1, "`tollgate keys ls` shows them all."),
        (("generations", "show", "gen-x"), {}, 1, "`tollgate generations ls` show"),
        (("spend", "--month", "11/2026"), {}, 2, "write '11/2026' as 2026-11"),
        (("keys", "create", "x", "--limit", "5"), {}, 2, "write '5' as name=value"),
    ],
)
def test_every_error_ends_with_what_to_do_next(
    server: LocalServer, arguments: tuple[str, ...], variables: dict[str, str], code: int, said: str
) -> None:
    done = run(server, *arguments, **variables)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_inference_key_is_told_to_use_a_management_key(server: LocalServer) -> None:
    refused = run(server, "keys", "ls", TOLLGATE_KEY=server.key)
    assert refused.returncode == 1
    assert "Set TOLLGATE_KEY to a management key" in refused.stderr


def test_c68_the_local_gateway_keeps_answers_too(server: LocalServer) -> None:
    with openai.OpenAI(base_url=server.base_url, api_key=server.key, max_retries=0) as client:
        replies = [
            client.chat.completions.with_raw_response.create(
                model="test/echo",
                messages=[{"role": "user", "content": "once"}],
                extra_headers={"Idempotency-Key": "local"},
            )
            for _ in range(2)
        ]
    first, again = replies
    assert again.headers["x-idempotent-replay"] == "true"
    assert first.content == again.content
