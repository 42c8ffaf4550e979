"""docs/security.md and infra/restore.md against the code: times, and commands that exist.

Keeps C60, C64, C68, C69: their times, as the page states them.
"""

import ast
import re
import shlex
from collections.abc import Mapping
from typing import Final

import click
import pytest

from tests.infra.translation import Stack
from tests.local_server import ROOT
from tollgate.cli.main import main
from tollgate.core.clock import DAY_S
from tollgate.engine.documents.document_reading import DOCUMENTS_MAX
from tollgate.settings import Settings
from tollgate.stores.aws import items, record_items, secrets
from tollgate.stores.keys import lookup
from tollgate.stores.money import budgets
from tollgate.stores.records.kept_answers import KEPT_FOR_S
from tollgate.stores.rules.account import HOLDS_MAX
from tollgate.stores.rules.key_settings import CONTENT_DAYS, KeySettings
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S

PAGE: Final = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
# What expires never is kept until a hand deletes it, if anything does.
GOOD: Final = ("for good", "until they are deleted")
RESTORE: Final = (ROOT / "infra" / "restore.md").read_text(encoding="utf-8")
STORED: Final = PAGE.partition("\n## What is stored")[2].partition("\n## ")[0]
ROWS: Final = {
    data: (where, stays)
    for data, where, stays in re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", STORED, re.MULTILINE)
    if data not in ("data", "---")
}
COMMANDS: Final = sorted(
    {
        line.partition("#")[0].partition(" > ")[0].strip()
        for block in re.findall(r"```sh\n(.*?)```", PAGE + RESTORE, re.DOTALL)
        for line in block.splitlines()
        if line.startswith("tollgate ")
    }
    | set(re.findall(r"`(tollgate [a-z][^`]*)`", PAGE + RESTORE))
)
# The row of the page for each kind of item; the kinds that share attributes are no items.
ROW_OF_ITEM: Final[Mapping[str, str]] = {
    "WalletItem": "wallets",
    "KeyStateItem": "wallets",
    "SessionStateItem": "what limited sessions",
    "SecretItem": "keys",
    "KeyPointerItem": "keys",
    "KeyNameItem": "keys",
    "WorkspaceItem": "workspaces",
    "AuditItem": "audit log",
    "AuditSealItem": "seals of the audit log",
    "StandingItem": "erasures and legal holds",
    "CreditIdItem": "credit",
    "CreditEntryItem": "credit",
    "CreditLotsItem": "credit",
    "TeamItem": "teams and members",
    "MemberItem": "teams and members",
    "SubjectItem": "teams and members",
    "SessionItem": "secrets of members' sessions",
    "SignInItem": "sessions of members",
    "WebhookItem": "webhooks",
    "DeliveryItem": "deliveries",
    "BudgetAlertItem": "alerts",
    "PublicationItem": "published catalogs",
    "CooldownItem": "failures",
    "SpeedItem": "failures",
    "AnswerClaimItem": "claims",
    "DeletedResponseItem": "marks of deleted responses",
    "SealKeyItem": "the key that encrypts a workspace",
    "BatchItem": "batches",
    "JobEventItem": "the ends of jobs",
    "OpenBatchItem": "the list of batches",
    "ItemVersionItem": "the version of the stored items",
    "FileItem": "uploaded files",
    "LoginCodeItem": "codes of sign-ins",
    "LoginCountItem": "counts of sign-ins",
    "FileUsageItem": "counts of uploaded",
    "ActivityItem": "sums",
    "ClosedDayItem": "sums",
    "GenerationItem": "records",
    "BillsItem": "bills",
}
SHARED: Final = {"AnyItem", "HoldingItem", "KeyRow", "LevelItem"}
# Items that some code gives a time to be deleted at.
EXPIRING: Final = {
    "AnswerClaimItem",
    "DeletedResponseItem",
    "BatchItem",
    "BillsItem",
    "JobEventItem",
    "BudgetAlertItem",
    "DeliveryItem",
    "GenerationItem",
    "LoginCodeItem",
    "LoginCountItem",
    "SecretItem",
    "SessionItem",
    "SessionStateItem",
    "SignInItem",
}


def row(beginning: str) -> tuple[str, str]:
    (found,) = (row for data, row in ROWS.items() if data.startswith(beginning))
    return found


def test_every_prefix_of_the_bucket_that_expires_has_a_row() -> None:
    template = (ROOT / "infra" / "template.yaml").read_text(encoding="utf-8")
    prefixes = set(re.findall(r"Prefix: (\w+/)", template))
    assert len(prefixes) > 4
    assert [
        it for it in prefixes if not any(f"`{it}`" in where for where, _ in ROWS.values())
    ] == []


def test_every_kind_of_item_has_a_row() -> None:
    every = vars(items) | vars(record_items)
    kinds = {name for name, kind in every.items() if isinstance(kind, type)} - SHARED
    assert set(ROW_OF_ITEM) == kinds
    for beginning in ROW_OF_ITEM.values():
        assert row(beginning)


def test_what_expires_is_what_the_page_does_not_keep_for_good() -> None:
    found = {
        node.value.id
        for file in sorted((ROOT / "functions" / "tollgate" / "stores").rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr == "DELETE_AT"
        and isinstance(node.value, ast.Name)
    }
    assert found == EXPIRING
    # A secret expires only by a rotation, which has a row of its own.
    assert row("a rotated key's old secret")[1] == "until its grace ends"
    for item in set(ROW_OF_ITEM) - EXPIRING:
        assert row(ROW_OF_ITEM[item])[1].startswith(GOOD), item


def test_times_are_those_of_code_and_template(stack: Stack) -> None:
    *most, last = map(str, CONTENT_DAYS)
    assert row("prompts and answers")[1] == f"{', '.join(most)} or {last} days"
    assert row("responses of keys")[1] == row("prompts and answers")[1]
    (bucket,) = stack.properties("AWS::S3::Bucket").values()
    days = {
        it["Prefix"]: it["ExpirationInDays"]
        for it in bucket["LifecycleConfiguration"]["Rules"]
        if "ExpirationInDays" in it
    }
    assert row("answers under")[1] == f"{days['answers/']} days"
    assert not any(prefix.startswith("catalogs") for prefix in days)
    assert row("claims")[1] == f"{KEPT_FOR_S // DAY_S} day"
    kept = Settings().record_days
    assert row("records of generations")[1] == f"`RecordRetentionDays`, {kept} days by default"
    bills = Settings().bill_days
    assert row("bills of generations")[1] == f"`BillRetentionDays`, {bills} days by default"
    logs = stack.parameters["LogRetentionDays"]["Default"]
    assert row("log lines")[1] == f"`LogRetentionDays`, {logs} days by default"
    assert row("alerts of budgets")[1] == f"{budgets.KEPT_S // DAY_S} days"
    assert row("provider keys")[1] == f"{int(secrets.CACHED_FOR_S) // 60} minutes in memory"


def test_c67_bills_are_kept_as_long_as_the_parameter_says(stack: Stack) -> None:
    parameter = stack.parameters["BillRetentionDays"]
    (least, most) = Settings.model_fields["bill_days"].metadata
    assert Settings().bill_days == parameter["Default"] == 400
    assert (parameter["MinValue"], parameter["MaxValue"]) == (least.ge, most.le)
    told = stack.environment("RollupFunction")["TOLLGATE_BILL_DAYS"]
    assert told == {"Ref": "BillRetentionDays"}


def test_what_one_key_may_cost_is_computed_from_code_and_template(stack: Stack) -> None:
    settings = KeySettings(label="new")
    assert f"{settings.requests_per_minute} requests a minute" in PAGE
    assert f"bursts of {settings.burst}, have {HOLDS_MAX:,} requests in flight" in PAGE
    chat, reader = stack.functions["ChatFunction"], stack.functions["ReaderFunction"]
    memory = int(stack.parameters["ChatMemoryMb"]["Default"])
    second = 0.0000133334 * memory / 1024
    whole = second * chat["Timeout"]
    assert f"{chat['Timeout']} s × {memory} MB, ${whole:.4f} |" in PAGE
    assert f"`--concurrency 10` | ${second * 10 * DAY_S:.2f}, and 100 times" in PAGE
    reads = f"{DOCUMENTS_MAX} × {reader['Timeout']} s × {reader['MemorySize']:,} MB"
    cost = 0.0000133334 * DOCUMENTS_MAX * reader["Timeout"] * reader["MemorySize"] / 1024
    assert f"{reads}, ${cost:.4f} |" in PAGE


def test_every_proof_of_the_page_exists() -> None:
    proofs = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", PAGE)
    assert len(proofs) > 12
    for path, name in proofs:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert not name or f"def {name}(" in text, (path, name)
    answers = PAGE.partition("## What a reviewer asks")[2].partition("\n## ")[0]
    for row_ in re.findall(r"^\| .+\? \| .+ \| (.+) \|$", answers, re.MULTILINE):
        assert "tests/" in row_, row_


def test_moments_of_the_runbook_are_those_of_the_code() -> None:
    assert f"within {lookup.FOUND_FOR_S:g} s" in PAGE
    assert f"{-(-HOLD_LIFETIME_S // 60)} minutes after it was made" in RESTORE


def test_c64_the_restore_stops_and_starts_every_function(stack: Stack) -> None:
    # The reader writes no table.
    writers = stack.functions.keys() - {"ReaderFunction"}
    named = {it.removesuffix("Function").upper() + "_FUNCTION" for it in writers}
    for call in ("put", "delete"):
        command = rf"^aws lambda {call}-function-concurrency --function-name (\w+)"
        assert set(re.findall(command, RESTORE, re.MULTILINE)) == named


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_exists_with_its_options(line: str) -> None:
    assert parsed(main, shlex.split(line)[1:])


def parsed(command: click.Command, words: list[str]) -> bool:
    """Whether the command and its options exist; nothing is run."""
    if isinstance(command, click.Group) and (words or not command.invoke_without_command):
        inner = command.get_command(click.Context(command), words[0])
        assert inner is not None, words
        return parsed(inner, words[1:])
    return bool(command.make_context(command.name, words))
