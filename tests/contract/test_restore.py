"""The restore drill of infra/restore.md: its commands run against moto, as they stand.

Keeps C64. Moto restores the present, whichever second it is given, so the damage is done after it.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Final

import boto3
import pytest

from tests.local_server import ROOT, TOLLGATE
from tests.local_server import environment as plain
from tests.moto_server import running_moto
from tests.stores import TESTER, HandClock, record_of
from tollgate.core.clock import SystemClock
from tollgate.settings import Settings
from tollgate.stores.aws.items import WalletItem
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.stores import wire_stores

REGION: Final = "us-east-1"
PAGE: Final = (ROOT / "infra" / "restore.md").read_text(encoding="utf-8")
STEPS: Final[dict[str, str]] = dict(
    re.findall(r"^\*\*(\d)\..*?```sh\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
)
FUNCTIONS: Final = tuple(
    f"{name}_FUNCTION" for name in ("CHAT", "BATCH", "API", "LOGIN", "SWEEPER", "ROLLUP")
)
ROLE: Final = "arn:aws:iam::123456789012:role/function"


@pytest.fixture
def account() -> Iterator[str]:
    """An account with nothing else in it: the drill's tables have the names of the page."""
    with running_moto() as url:
        yield url
        for table in client(url, "dynamodb").list_tables()["TableNames"]:
            client(url, "dynamodb").update_table(TableName=table, DeletionProtectionEnabled=False)
            client(url, "dynamodb").delete_table(TableName=table)


def client(url: str, service: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


class Shell:
    """Runs the lines of a block: `aws` through boto3, `tollgate` as a process, `export` at once."""

    def __init__(self, url: str, when: str) -> None:
        self._url = url
        self._words = {"WHEN": when}
        self._variables = {
            "TOLLGATE_DYNAMODB_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
        }

    def run(self, block: str) -> None:
        for line in block.splitlines():
            match shlex.split(line):
                case ["aws", service, *words]:
                    self._aws(service, words)
                case ["export", *pairs]:
                    self._variables |= dict(pair.split("=", 1) for pair in pairs)
                case ["tollgate", *words]:
                    ended = self.tollgate(*words)
                    assert ended.returncode == 0, (line, ended.stdout)
                case _:
                    raise AssertionError(f"not a command of the drill: {line}")

    def tollgate(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(TOLLGATE), *words],
            env=plain() | self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def _aws(self, service: str, words: list[str]) -> None:
        caller = client(self._url, service)
        if words[0] == "wait":
            _, waiter, option, value = words
            assert option == "--table-name"
            caller.get_waiter(waiter.replace("-", "_")).wait(TableName=value)
            return
        operation, *options = words
        name = "".join(part.title() for part in operation.split("-"))
        shapes = caller.meta.service_model.operation_model(name).input_shape.members
        answer = getattr(caller, operation.replace("-", "_"))(**self._parameters(options, shapes))
        if operation == "create-backup":
            details = answer["BackupDetails"]
            self._words[f"ARN-OF-{details['BackupName']}"] = details["BackupArn"]

    def _parameters(self, options: list[str], shapes: dict[str, Any]) -> dict[str, Any]:
        by_option = {f"--{'-'.join(re.findall('[A-Z][a-z]*', it))}".lower(): it for it in shapes}
        found: dict[str, Any] = {}
        words = iter(options)
        for option in words:
            if (flag := option.replace("--no-", "--", 1)) != option:
                found[by_option[flag]] = False
                continue
            name = by_option[option]
            if shapes[name].type_name == "boolean":
                found[name] = True
                continue
            value = next(words)
            match shapes[name].type_name:
                case "integer":
                    found[name] = int(value)
                case "structure":
                    pairs = dict(pair.split("=") for pair in value.split(","))
                    found[name] = {it: pairs[it] == "true" or pairs[it] for it in pairs}
                case _:
                    found[name] = self._words.get(value, value)
        return found


@pytest.mark.nightly
async def test_c64_the_restore_drill_brings_back_the_money(account: str) -> None:
    settings = Settings(
        core_table="CORE",
        ledger_table="LEDGER",
        generations_table="GENERATIONS",
        dynamodb_endpoint_url=account,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    # A process was killed in the middle of a generation, longer ago than a hold lives.
    clock = HandClock(SystemClock().now_s() - HOLD_LIFETIME_S - 60)
    dynamodb = client(account, "dynamodb")
    make_functions(account)
    async with aclosing(wire_stores(settings, clock)) as stores:
        await stores.create_tables()
        for table in ("CORE", "LEDGER", "GENERATIONS"):
            dynamodb.update_table(TableName=table, DeletionProtectionEnabled=True)
        books = wire_administration(settings, stores, clock)
        await books.credits.grant("acme", "first", 1_000, "test", by=TESTER)
        key = await books.keys.create(NewKey(workspace_id="acme", label="one"), by=TESTER)
        leaked = await books.keys.create(NewKey(workspace_id="acme", label="leaked"), by=TESTER)
        principal = await books.keys.authenticate(key.secret)
        for cost in (100, 20):
            hold = await stores.ledger.hold(principal, 400)
            await stores.ledger.settle(hold, record_of(hold, cost))
        await stores.ledger.hold(principal, 400)

        shell = Shell(account, datetime.now(UTC).isoformat())
        assert sorted(STEPS) == ["0", "1", "2", "3", "4", "5", "6", "7"]
        assert "tollgate audit ls --since WHEN" in STEPS["0"]
        shell.run(STEPS["1"])
        assert concurrency(account) == [0] * len(FUNCTIONS)
        shell.run(STEPS["2"])
        assert await books.keys.delete("acme", leaked.summary.id, by=TESTER)
        damage(dynamodb)
        shell.run(STEPS["6"].partition("tollgate")[0])
        assert shell.tollgate("upkeep", "audit").returncode == 1
        for step in ("3", "4", "5", "6"):
            shell.run(STEPS[step])
        # No generation runs yet: what was revoked after the restored second is valid again.
        assert concurrency(account) == [0, 0, *[None] * (len(FUNCTIONS) - 2)]

        balance = await books.credits.balance("acme")
        assert (balance.available_nano_usd, balance.spent_nano_usd) == (880, 120)
        assert balance.held_nano_usd == 0
        again = wire_stores(settings, clock)
        assert (await again.keys.authenticate(key.secret)).key_id == principal.key_id
        assert (await again.keys.authenticate(leaked.secret)).key_id == leaked.summary.id
        await again.aclose()
        shell.run(STEPS["7"])
    assert concurrency(account) == [None] * len(FUNCTIONS)
    assert {name: remade(dynamodb, name) for name in ("CORE", "LEDGER", "GENERATIONS")} == {
        "CORE": (True, True, True),
        "LEDGER": (False, True, True),
        "GENERATIONS": (True, True, True),
    }


def make_functions(url: str) -> None:
    client(url, "iam").create_role(RoleName="function", AssumeRolePolicyDocument="{}")
    for name in FUNCTIONS:
        client(url, "lambda").create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=ROLE,
            Handler="chat.main",
            Code={"ZipFile": b"nothing runs"},
        )


def concurrency(url: str) -> list[int | None]:
    asked = [client(url, "lambda").get_function_concurrency(FunctionName=it) for it in FUNCTIONS]
    return [it.get("ReservedConcurrentExecutions") for it in asked]


def damage(dynamodb: Any) -> None:
    """Make money of nothing, and lose the keys."""
    for wallet in dynamodb.scan(TableName="LEDGER")["Items"]:
        if WalletItem.GRANTED in wallet:
            wallet[WalletItem.AVAILABLE] = {"N": "1000000"}
            dynamodb.put_item(TableName="LEDGER", Item=wallet)
    for row in dynamodb.scan(TableName="CORE")["Items"]:
        if "hash" in row:
            dynamodb.delete_item(TableName="CORE", Key={it: row[it] for it in ("pk", "sk")})


def remade(dynamodb: Any, table: str) -> tuple[bool, bool, bool]:
    """Whether a table has expiry, recovery and protection."""
    ttl = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    backups = dynamodb.describe_continuous_backups(TableName=table)
    recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    described = dynamodb.describe_table(TableName=table)["Table"]
    return (
        ttl["TimeToLiveStatus"] == "ENABLED",
        recovery["PointInTimeRecoveryStatus"] == "ENABLED",
        described["DeletionProtectionEnabled"],
    )
