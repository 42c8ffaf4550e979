"""infra/README.md names the functions of the template, and the resources that outlive the stack."""

import re

import pytest

from tests.infra.translation import ROOT

TEMPLATE = (ROOT / "infra" / "template.yaml").read_text(encoding="utf-8")
PAGE = (ROOT / "infra" / "README.md").read_text(encoding="utf-8")
RESOURCE = re.compile(r"^  (\w+):\n    Type: (AWS::\S+)\n((?:    .*\n|\n)*)", re.MULTILINE)
RESOURCES = RESOURCE.findall(TEMPLATE.partition("\nResources:")[2])
# The words for retained resources in the paragraph on teardown.
WORDS = {
    "AWS::DynamoDB::Table": "tables",
    "AWS::S3::Bucket": "bucket",
    "AWS::S3::BucketPolicy": "the bucket with its policy",
    "AWS::IAM::Role": "role",
    "AWS::KMS::Key": "KMS key",
}


def test_every_function_is_in_the_table_and_counted() -> None:
    functions = [name for name, kind, _ in RESOURCES if kind == "AWS::Serverless::Function"]
    assert len(functions) == 8
    assert "eight\nfunctions" in PAGE
    assert [name for name in functions if f"| `{name}` |" not in PAGE] == []


def test_every_streamed_route_is_in_the_row_of_its_function() -> None:
    (row,) = re.findall(r"^\| `ChatFunction` \|(.*)$", PAGE, re.MULTILINE)
    streamed = re.findall(r"^ +(/v1/\S+): [*&]metered$", TEMPLATE, re.MULTILINE)
    assert set(re.findall(r"`(/v1/[^`]+)`", row)) == set(streamed)


def test_the_budgets_of_artefacts_are_those_of_their_tests() -> None:
    source = (ROOT / "tests" / "artefact" / "test_contents.py").read_text(encoding="utf-8")
    budgets = re.findall(r"^ZIPPED_BYTES_MAX\w*: Final = ([0-9_]+)$", source, re.MULTILINE)
    (limits,) = re.findall(r"^Tests limit the zipped sizes: (.*)\.$", PAGE, re.MULTILINE)
    assert sorted(re.findall(r"(\d+) MB", limits)) == sorted(
        str(int(budget) // 1_000_000) for budget in budgets
    )


@pytest.mark.parametrize(
    "kind", sorted({kind for _, kind, body in RESOURCES if "DeletionPolicy: Retain" in body})
)
def test_what_outlives_the_stack_is_told_under_teardown(kind: str) -> None:
    if kind != "AWS::ApiGateway::Account":  # a setting of the account, told by its role
        teardown = PAGE.partition("## Teardown")[2].partition("\n## ")[0]
        assert WORDS[kind] in " ".join(teardown.split())
