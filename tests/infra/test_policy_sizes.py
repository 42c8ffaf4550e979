"""The roles' policies are within IAM's limits of size."""

import json
import re
from typing import Any, Final

from tests.infra.translation import JsonObject, Stack

# "IAM and AWS STS quotas" (2026-11): all inline policies of a role, and one managed policy, without
# white space.
INLINE_CHARACTERS_MAX: Final = 10_240
MANAGED_CHARACTERS_MAX: Final = 6_144
LONG: Final = {
    "AWS::Partition": "aws",
    "AWS::Region": "ap-southeast-2",
    "AWS::AccountId": "1" * 12,
}


# The parameters that add statements to the role with the most statements.
EVERYTHING: Final = {"KmsKeyArn": "arn:aws:kms:k", "XRay": "true", "OtlpHeaders": "true"}


def resolved(value: Any) -> Any:
    """Return a value as IAM gets it, with names as long as those of a stack called tollgate."""
    match value:
        case {"Ref": name}:
            return LONG.get(name, f"arn:aws:kms:ap-southeast-2:{'1' * 12}:key/{'k' * 36}")
        case {"Fn::GetAtt": [name, "Arn"]}:
            return f"arn:aws:dynamodb:ap-southeast-2:{'1' * 12}:table/tollgate-{name}-{'T' * 13}"
        case {"Fn::Sub": text}:
            return re.sub(r"\$\{([\w:]+)\}", lambda it: LONG[it[1]], bucket_named(text))
        case dict():
            return {key: resolved(it) for key, it in value.items()}
        case list():
            return [resolved(it) for it in value]
    return value


def bucket_named(text: str) -> str:
    return text.replace("${ObjectsBucket.Arn}", f"arn:aws:s3:::tollgate-objectsbucket-{'b' * 12}")


def characters(policy: JsonObject) -> int:
    return len(json.dumps(resolved(policy["PolicyDocument"]), separators=(",", ":")))


def test_the_policies_of_a_role_are_no_longer_than_iam_takes(any_stack: Stack) -> None:
    stack = any_stack.given(**EVERYTHING)
    for name, role in stack.properties("AWS::IAM::Role").items():
        size = sum(map(characters, role.get("Policies", ())))
        assert size <= INLINE_CHARACTERS_MAX, (name, size)
    for name, policy in stack.properties("AWS::IAM::ManagedPolicy").items():
        assert characters(policy) <= MANAGED_CHARACTERS_MAX, name
