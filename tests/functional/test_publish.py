"""`tollgate publish`, `canary`, `rollback` and `catalogs` against a stack.

Keeps C54, C57.
"""

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import boto3
import pytest
from click.testing import CliRunner, Result
from moto import mock_aws

from tests.functional.test_first_key import tables
from tests.ministack import ministack_url
from tests.stores import an_entry
from tests.unit.routing.catalogs import NOW_S
from tollgate.cli.main import main
from tollgate.core.clock import SystemClock
from tollgate.core.routing.canary import FigureRead, Look, Terms
from tollgate.core.routing.publication import Publication, Signature, withdraw_canary
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.file.permissions import compile_permissions
from tollgate.settings import Settings
from tollgate.stores.routing.publications import PublicationStore
from tollgate.wiring.stores import wire_stores

__all__ = ["ministack_url", "tables"]

ROUTING = """\
version: 1
providers:
  near:
    codec: openai_chat
    transport: http_sse
    base_url: https://near.example/v1
    key: {{ secret: tollgate/near, env: NEAR_API_KEY }}
models:
  acme/small:
    name: Small
    context: 1000
    max_output: 100
    endpoints:
      - provider: near
        upstream: small-1
        price: {{ input: "{price}", output: "2", source: made up, checked: 2026-11-21 }}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "routing.yaml"
    path.write_text(ROUTING.format(price="1"))
    return path


@pytest.fixture
def stack(
    tables: Settings, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    """A stack whose chat function may read the key of `near`, and nothing else."""
    monkeypatch.setenv("TOLLGATE_OBJECTS_FOLDER", str(tmp_path / "objects"))
    outputs = {
        "ApiUrl": "https://unused.example/api/v1",
        "CoreTableName": tables.core_table,
        "LedgerTableName": tables.ledger_table,
        "GenerationsTableName": tables.generations_table,
        "ObjectsBucketName": "unused",
    }
    needed = compile_permissions(compile_catalog(file).routing)
    [secret] = needed.secrets
    template = {
        "Resources": {
            "T": {
                "Type": "AWS::SNS::Topic",
                "Metadata": {"Resource": {"Fn::Sub": secret}, "KeyHosts": needed.key_hosts},
            }
        },
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    with mock_aws():
        boto3.client("cloudformation", "us-east-1").create_stack(
            StackName="tollgate", TemplateBody=json.dumps(template)
        )
        yield Settings(
            core_table=tables.core_table,
            ledger_table=tables.ledger_table,
            generations_table=tables.generations_table,
        )


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--region", "us-east-1"])


def done(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def live(stack: Settings) -> Publication | None:
    async def read() -> Publication | None:
        stores = wire_stores(stack, SystemClock())
        try:
            return await stores.publications.publication()
        finally:
            await stores.aclose()

    return asyncio.run(read())


def reprice(file: Path, price: str) -> str:
    file.write_text(ROUTING.format(price=price))
    return compile_catalog(file).sha


def test_c54_a_file_is_published_and_rolled_back(stack: Settings, file: Path) -> None:
    first = compile_catalog(file).sha
    assert f"{first[:12]} is live." in done("publish", str(file))
    assert "is live already" in done("publish", str(file))

    second = reprice(file, "3")
    said = done("publish", str(file))
    assert f"`tollgate rollback` returns to {first[:12]}" in said
    publication = live(stack)
    assert publication is not None
    assert (publication.live, publication.previous) == (second, first)
    assert "arn:aws:sts" in publication.by
    assert publication.moved_s > NOW_S - 365 * 86_400

    assert f"{first[:12]} is live again" in done("rollback")
    assert f"{second[:12]} is live again" in done("rollback", second[:10])
    assert f"{second[:12]} is live already" in done("rollback", second[:10])
    head, *rows = done("catalogs").splitlines()
    assert head.split("\t")[:3] == ["revision", "at", "live"]
    assert [row.split("\t")[2] for row in rows] == [
        sha[:12] for sha in (second, first, second, first)
    ]


def test_c54_a_canary_is_tried_grown_and_ended(stack: Settings, file: Path) -> None:
    first = compile_catalog(file).sha
    done("publish", str(file))
    candidate = reprice(file, "3")
    said = done("canary", candidate[:12], "--percent", "5", "--file", str(file))
    assert f"{candidate[:12]} serves 5 % of the keys, {first[:12]} the others." in said
    done("canary", candidate[:12], "--percent", "50")
    publication = live(stack)
    assert publication is not None
    assert (publication.candidate, publication.percent) == (candidate, 50)
    assert "has ended" in done("canary", candidate, "--percent", "0")
    assert "is live for every key already" in run("canary", first, "--percent", "5").output


def test_c54_programs_are_told_whole_shas_and_numbers(stack: Settings, file: Path) -> None:
    first = compile_catalog(file).sha
    done("publish", str(file))
    second = reprice(file, "2")
    done("publish", str(file))
    candidate = reprice(file, "3")
    done("canary", candidate, "--percent", "5", "--file", str(file))
    latest, *_ = json.loads(done("catalogs", "--json"))
    shas = {"live": second, "previous": first, "candidate": candidate}
    assert latest.items() >= {**shas, "percent": 5, "revision": 3}.items()


def test_c54_a_canary_ends_whatever_has_become_of_it_and_of_the_file(
    stack: Settings, file: Path, tmp_path: Path
) -> None:
    first = compile_catalog(file).sha
    done("publish", str(file))
    candidate = reprice(file, "3")
    done("canary", candidate, "--percent", "5", "--file", str(file))
    (tmp_path / "objects" / "catalogs" / f"{candidate}.json").unlink()
    file.write_text("routes: [")
    end = ("canary", candidate[:7], "--percent", "0", "--file", str(file))
    assert f"The canary has ended; {first[:12]} serves every key." in done(*end)
    publication = live(stack)
    assert publication is not None
    assert publication.candidate is None
    assert f"SHA {candidate[:7]} has no running canary" in run(*end).output


def test_c54_a_rollback_says_that_it_ends_the_canary_too(stack: Settings, file: Path) -> None:
    first = compile_catalog(file).sha
    done("publish", str(file))
    reprice(file, "2")
    done("publish", str(file))
    candidate = reprice(file, "3")
    done("canary", candidate, "--percent", "5", "--file", str(file))
    said = done("rollback")
    assert f"{first[:12]} is live again. The canary of {candidate[:12]} has ended." in said


def test_c54_files_that_are_not_committed_are_published_with_a_warning_and_listed_with_a_plus(
    stack: Settings, file: Path
) -> None:
    git = ("git", "-C", str(file.parent), "-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", file.name], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "first"], check=True)
    assert "not committed" not in done("publish", str(file))
    reprice(file, "2")
    assert "Warning: files of this checkout are not committed" in done("publish", str(file))
    _, latest, first = done("catalogs").splitlines()
    commit = latest.split("\t")[4]
    assert (commit[-1], first.split("\t")[4]) == ("+", commit[:-1])


def test_c54_without_git_a_file_is_published_all_the_same(
    stack: Settings, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    done("publish", str(file))
    publication = live(stack)
    assert publication is not None
    assert publication.commit is None


def test_c54_what_the_stack_may_not_use_is_not_published(stack: Settings, file: Path) -> None:
    done("publish", str(file))
    file.write_text(ROUTING.format(price="1").replace("tollgate/near", "tollgate/other"))
    refused = run("publish", str(file))
    assert refused.exit_code == 1
    assert "secret:tollgate/other-??????" in refused.output
    assert "`make deploy`" in refused.output
    assert len(done("catalogs").splitlines()) == 2


@pytest.mark.parametrize(
    "host", ["https://near.example.evil.example", "https://far.example", "https://near.example:444"]
)
def test_c93_a_pair_that_the_stack_does_not_know_is_not_published(
    stack: Settings, file: Path, host: str
) -> None:
    done("publish", str(file))
    file.write_text(ROUTING.format(price="1").replace("https://near.example", host))
    refused = run("publish", str(file))
    assert refused.exit_code == 1
    assert f"  secret:tollgate/near>{host}\n" in refused.output
    assert "Deploy first" in refused.output
    sha = compile_catalog(file).sha
    assert "Deploy first" in run("canary", sha, "--percent", "5", "--file", str(file)).output
    assert len(done("catalogs").splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("rollback",), 1, "Nothing is published yet"),
        (("rollback", "0123456789"), 1, "Nothing is published yet"),
        (("canary", "0123456789", "--percent", "5"), 1, "Nothing is published yet"),
        (("canary", "0123456789", "--percent", "100"), 2, "0<=x<=99"),
        (("publish", "--stack", "elsewhere"), 1, "stack elsewhere"),
    ],
)
def test_c54_what_cannot_be_moved_says_why(
    stack: Settings, arguments: tuple[str, ...], code: int, said: str
) -> None:
    refused = run(*arguments)
    assert refused.exit_code == code, refused.output
    assert said in refused.output


def test_c54_a_sha_must_be_known_and_long_enough(stack: Settings, file: Path) -> None:
    done("publish", str(file))
    assert "names no catalog" in run("rollback", "0123456789").output
    tried = run("canary", "0123456789", "--percent", "5", "--file", str(file)).output
    assert f"{file.as_posix()} here is {compile_catalog(file).sha[:12]}." in tried
    elsewhere = run("canary", "0123456789", "--percent", "5", "--file", "nowhere.yaml").output
    assert "nowhere.yaml here is no file." in elsewhere
    assert run("rollback", "012345").exit_code == 2
    assert "There is no previous catalog" in run("rollback").output


def test_c54_a_broken_file_is_refused_as_check_refuses_it(stack: Settings, file: Path) -> None:
    file.write_text(file.read_text().replace("price:", "prize:"))
    refused = run("publish", str(file))
    assert refused.exit_code == 1
    assert "routing.yaml:" in refused.output
    assert live(stack) is None


def test_c57_a_canary_has_terms_that_catalogs_shows(stack: Settings, file: Path) -> None:
    done("publish", str(file))
    candidate = reprice(file, "3")
    terms = ("--keep", "errors=1", "--keep", "cost=5%", "--false-alarms", "2")
    said = done("canary", candidate, "--percent", "5", "--file", str(file), *terms)
    assert "Its terms: errors at most 1 points more, cost per request at most 5 % more." in said
    done("canary", candidate, "--percent", "50")  # the terms remain
    publication = live(stack)
    assert publication is not None
    kept = Terms(worse_percent={"errors": 1, "cost": 5}, false_alarms_percent=2)
    assert publication.terms == kept
    assert "The first look is 10 minutes after" in done("catalogs")

    look = Look(
        revision=3,
        number=4,
        at_s=1_795_000_000,
        state="broken",
        requests=812,
        live_requests=801,
        keys=20,
        live_keys=21,
        figures={"errors": FigureRead(live=1, candidate=4.1, p=0.0001)},
        broken="errors",
    )
    asyncio.run(change(stack, lambda store: store.keep_look(look)))
    latest, *_ = json.loads(done("catalogs", "--json"))
    assert latest["look"]["state"] == "broken"
    assert latest["terms"]["worse_percent"] == {"errors": 1, "cost": 5}
    reason = look.describe_break(kept)
    assert reason is not None
    back = withdraw_canary(publication, reason, Signature(by="sweeper", at_s=1_795_000_000))
    asyncio.run(change(stack, lambda store: store.move(back, an_entry())))
    shown = done("catalogs")
    assert "\twithdrawn\t" in shown.splitlines()[1]
    line = f"The canary {candidate[:12]} was withdrawn: errors 4.10 % against 1.00 %; allowed:"
    assert line in shown
    assert "Look 4 of 19, 2026-11-18T11:06:40Z: 812 requests of 20 keys" in shown


async def change(stack: Settings, work: Callable[[PublicationStore], Awaitable[object]]) -> None:
    async with aclosing(wire_stores(stack, SystemClock())) as stores:
        await work(stores.publications)


def test_c57_terms_that_cannot_be_are_refused_before_anything_moves(
    stack: Settings, file: Path
) -> None:
    done("publish", str(file))
    candidate = reprice(file, "3")
    before = live(stack)
    to = ("canary", candidate, "--file", str(file), "--percent")
    for arguments, words in (
        (("publish", str(file), "--keep", "errors=1"), "No such option"),
        ((*to, "0", "--keep", "errors=1"), "--percent from 1 to 99"),
        ((*to, "5", "--keep", "speed=1"), "give one of errors, refusals, first_token_p95, cost"),
        ((*to, "5", "--keep", "errors"), "a percentage from 0 to 100"),
        ((*to, "5", "--keep", "errors=-1"), "a percentage from 0 to 100"),
        ((*to, "5", "--keep", "errors=nan"), "a percentage from 0 to 100"),
        ((*to, "5", "--keep", "errors=101"), "a percentage from 0 to 100"),
        ((*to, "5", "--keep", "errors=1", "--keep", "errors=2"), "names errors twice"),
        ((*to, "5", "--false-alarms", "5"), "needs terms"),
        ((*to, "5", "--keep", "errors=1", "--false-alarms", "0"), "from 0.1 to 50"),
        ((*to, "5", "--keep", "errors=1", "--false-alarms", "nan"), "from 0.1 to 50"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert words in " ".join(result.output.split()), (arguments, result.output)
    assert live(stack) == before
