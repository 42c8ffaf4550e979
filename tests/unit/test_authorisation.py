"""The rules by which tests refuse what AWS would: policies, and what requests need.

"IAM JSON policy elements: Condition operators" and "Multivalued context keys" in the AWS Identity
and Access Management user guide (seen 2026-11-22).
"""

import json
from typing import Any

import pytest

from tests.iam.calls import Call, Signature, UnknownCall, read_accesses, read_signature
from tests.iam.policy import LEADING_KEYS, Access, UnknownPolicy, decide, parse_statements

TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/core"
DYNAMODB = Signature(access_key_id="ASIACHAT00000000", region="us-east-1", service="dynamodb")


def statement(**more: object) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "dynamodb:PutItem", "Resource": TABLE, **more}


def is_allowed(condition: dict[str, Any], leading_keys: tuple[str, ...] | None) -> bool:
    statements = parse_statements("role", [statement(Condition=condition)])
    access = Access("dynamodb:PutItem", TABLE, {LEADING_KEYS: leading_keys})
    return decide(statements, access).refusal is None


@pytest.mark.parametrize(
    ("operator", "expected", "leading_keys", "allowed"),
    [
        ("ForAllValues:StringLike", "I#*", ("I#1", "I#2"), True),
        ("ForAllValues:StringLike", "I#*", ("I#1", "W#2"), False),
        ("ForAllValues:StringLike", "I#*", None, True),
        ("ForAllValues:StringEquals", "I#*", ("I#1",), False),
        ("ForAnyValue:StringEquals", "CATALOG", ("W#2", "CATALOG"), True),
        ("ForAnyValue:StringEquals", "CATALOG", ("W#2",), False),
        ("ForAnyValue:StringEquals", "CATALOG", None, False),
        ("StringLike", "I#?", ("I#1",), True),
        ("StringLike", "I#?", ("I#12",), False),
        ("StringEquals", "I#1", ("I#1", "I#1"), False),
        ("StringEquals", "I#1", None, False),
        ("Null", "false", ("I#1",), True),
        ("Null", "false", None, False),
        ("Null", "true", None, True),
    ],
)
def test_a_condition_holds_as_it_does_in_aws(
    operator: str, expected: str, leading_keys: tuple[str, ...] | None, allowed: bool
) -> None:
    assert is_allowed({operator: {LEADING_KEYS: [expected]}}, leading_keys) is allowed


def test_all_conditions_of_a_statement_must_hold() -> None:
    both = {"ForAllValues:StringLike": {LEADING_KEYS: "I#*"}, "Null": {LEADING_KEYS: "false"}}
    assert is_allowed(both, ("I#1",))
    assert not is_allowed(both, None)


@pytest.mark.parametrize(
    "unknown",
    [
        {"Condition": {"StringNotEquals": {LEADING_KEYS: "I#1"}}},
        {"Condition": {"StringEqualsIfExists": {LEADING_KEYS: "I#1"}}},
        {"Condition": {"ForSomeValues:StringEquals": {LEADING_KEYS: "I#1"}}},
        {"Condition": {"StringEquals": {"aws:SourceArn": "arn"}}},
        {"Condition": {"Null": {LEADING_KEYS: "perhaps"}}},
        {"NotResource": TABLE},
        {"Principal": "*"},
        {"Effect": "Perhaps"},
        {"Resource": "arn:aws:s3:::${aws:username}"},
        {"Resource": {"Ref": "CoreTable"}},
    ],
)
def test_what_a_policy_says_and_nobody_knows_is_an_error(unknown: dict[str, object]) -> None:
    with pytest.raises(UnknownPolicy):
        parse_statements("role", [statement(**unknown)])


def test_a_key_that_a_service_never_sets_is_no_pass() -> None:
    condition = {"StringEquals": {"kms:ViaService": "dynamodb.us-east-1.amazonaws.com"}}
    with pytest.raises(UnknownPolicy):
        is_allowed(condition, ("I#1",))


def test_a_deny_wins_over_every_allow() -> None:
    never = {"ForAnyValue:StringEquals": {LEADING_KEYS: ["CATALOG"]}}
    statements = parse_statements(
        "role", [statement(Action="dynamodb:*"), statement(Effect="Deny", Condition=never)]
    )
    for leading_key, allowed in (("CATALOG", False), ("CATALOGS", True)):
        access = Access("dynamodb:PutItem", TABLE, {LEADING_KEYS: (leading_key,)})
        assert (decide(statements, access).refusal is None) is allowed


def test_a_resource_is_matched_whole_and_in_its_case() -> None:
    statements = parse_statements("role", [statement(Resource=f"{TABLE[:-1]}?")])
    for resource, allowed in ((TABLE, True), (f"{TABLE}s", False), (TABLE.upper(), False)):
        access = Access("dynamodb:putitem", resource, {})
        assert (decide(statements, access).refusal is None) is allowed


def call(operation: str, body: object, **more: Any) -> Call:
    headers = {"x-amz-target": f"DynamoDB_20120810.{operation}"}
    asked = {"method": "POST", "path": "/", "query": "", "headers": headers}
    return Call(**asked | {"body": json.dumps(body).encode()} | more)


def key(partition: str) -> dict[str, object]:
    return {"pk": {"S": partition}, "sk": {"S": "s"}}


QUERY = {
    "TableName": "core",
    "KeyConditionExpression": "#p = :p AND begins_with(sk, :s)",
    "ExpressionAttributeNames": {"#p": "pk"},
    "ExpressionAttributeValues": {":p": {"S": "W#1"}, ":s": {"S": "K#"}},
}
TRANSACTION = {
    "TransactItems": [
        {"Put": {"TableName": "core", "Item": key("A")}},
        {"ConditionCheck": {"TableName": "core", "Key": key("B")}},
    ]
}
BATCH = {"RequestItems": {"core": {"Keys": [key("A"), key("B")]}}}


@pytest.mark.parametrize(
    ("operation", "body", "needed"),
    [
        ("GetItem", {"TableName": "core", "Key": key("A")}, [("GetItem", ("A",))]),
        ("PutItem", {"TableName": "core", "Item": key("A")}, [("PutItem", ("A",))]),
        ("Query", QUERY, [("Query", ("W#1",))]),
        ("Scan", {"TableName": "core"}, [("Scan", None)]),
        ("BatchGetItem", BATCH, [("BatchGetItem", ("A", "B"))]),
        (
            "TransactWriteItems",
            TRANSACTION,
            [("PutItem", ("A",)), ("ConditionCheckItem", ("B",))],
        ),
    ],
)
def test_a_request_needs_its_actions_on_its_tables_and_keys(
    operation: str, body: object, needed: list[tuple[str, tuple[str, ...] | None]]
) -> None:
    assert list(read_accesses(call(operation, body), DYNAMODB)) == [
        Access(f"dynamodb:{action}", TABLE, {LEADING_KEYS: keys}) for action, keys in needed
    ]


def test_an_index_is_a_resource_of_its_own() -> None:
    (access,) = read_accesses(call("Query", QUERY | {"IndexName": "by-day"}), DYNAMODB)
    assert access.resource == f"{TABLE}/index/by-day"


S3 = Signature(access_key_id="ASIACHAT00000000", region="us-east-1", service="s3")
UNKNOWN = [
    (DYNAMODB, call("DeleteTable", {"TableName": "core"})),
    (DYNAMODB, call("PutItem", {"TableName": "core", "Item": {"id": {"S": "A"}}})),
    (DYNAMODB, call("Query", QUERY | {"KeyConditionExpression": "sk = :s"})),
    (DYNAMODB, call("TransactWriteItems", {"TransactItems": [{"Replace": {}}]})),
    (S3, call("", {}, method="GET", path="/bucket/key", query="acl")),
    (S3, call("", {}, method="POST", path="/bucket/key")),
    (S3, call("", {}, method="GET", path="/bucket")),
    (Signature(access_key_id="A", region="us-east-1", service="sqs"), call("SendMessage", {})),
    (Signature(access_key_id="A", region="eu-west-1", service="dynamodb"), call("Scan", {})),
]


@pytest.mark.parametrize(("signature", "request_"), UNKNOWN)
def test_a_request_that_nobody_knows_is_refused(signature: Signature, request_: Call) -> None:
    with pytest.raises(UnknownCall):
        read_accesses(request_, signature)


def test_a_request_without_a_signature_is_refused() -> None:
    with pytest.raises(UnknownCall):
        read_signature(call("Scan", {"TableName": "core"}))
