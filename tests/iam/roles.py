"""The statements of each function's role, as SAM's translator and CloudFormation make them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from tests.emulator.event import ACCOUNT_ID, REGION
from tests.iam.policy import Access, Grant, Statement, decide, parse_statements
from tests.infra.translation import BEDROCK_ROLE, Stack, load_template, translate
from tollgate.settings import Settings

_PSEUDO: Final = {
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT_ID,
}
_REFERENCE: Final = re.compile(r"\$\{([\w:.]+)\}")

# Grants that no call of a function can show, and why.
USED_BY_AWS: Final = {
    "logs:CreateLogStream": "Lambda itself writes the logs, with the function's role",
    "logs:PutLogEvents": "Lambda itself writes the logs, with the function's role",
    "sqs:DeleteMessage": "Lambda itself polls the queue, with the function's role",
    "sqs:GetQueueAttributes": "Lambda itself polls the queue, with the function's role",
    "sqs:ReceiveMessage": "Lambda itself polls the queue, with the function's role",
}


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The resources of a deployment, which the template knows by their logical ids."""

    settings: Settings
    parameters: Mapping[str, str] = field(default_factory=dict)

    def arn(self, logical_id: str) -> str:
        """Return the ARN of a resource; KeyError for one that no policy should name."""
        tables = {
            "CoreTable": self.settings.core_table,
            "LedgerTable": self.settings.ledger_table,
            "GenerationsTable": self.settings.generations_table,
        }
        if logical_id in tables:
            return f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{tables[logical_id]}"
        if logical_id == "SecretsKey":
            return self.settings.secrets_kms_key or f"arn:aws:kms:{REGION}:{ACCOUNT_ID}:key/none"
        if logical_id.endswith("Function"):
            name = logical_id.removesuffix("Function").lower()
            return f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{name}"
        if logical_id.endswith("Logs"):
            return f"arn:aws:logs:{REGION}:{ACCOUNT_ID}:log-group:{logical_id}:*"
        if logical_id == BEDROCK_ROLE:
            return f"arn:aws:iam::{ACCOUNT_ID}:role/{logical_id}"
        if logical_id.endswith("Queue"):
            name = {"BatchQueue": "batches", "BackgroundQueue": "background"}[logical_id]
            return f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{name}"
        return {"ObjectsBucket": f"arn:aws:s3:::{self.settings.objects_bucket}"}[logical_id]

    def resolve(self, value: Any) -> Any:
        """Return a value with its references replaced; KeyError for an unknown one."""
        match value:
            case {"Fn::GetAtt": [name, "Arn"]}:
                return self.arn(name)
            case {"Fn::Sub": str(text)}:
                return _REFERENCE.sub(lambda found: self._named(found[1]), text)
            case {"Ref": name}:
                return self._named(name)
            case dict():
                return {key: self.resolve(it) for key, it in value.items()}
            case list():
                return [self.resolve(it) for it in value]
            case _:
                return value

    def _named(self, name: str) -> str:
        if name.endswith(".Arn"):
            return self.arn(name.removesuffix(".Arn"))
        return _PSEUDO[name] if name in _PSEUDO else self.parameters[name]


@cache
def template_stack() -> Stack:
    """Return the template as it is, translated once."""
    return translate(load_template())


def function_statements(stack: Stack, resources: Resources) -> dict[str, tuple[Statement, ...]]:
    """Return the statements of each function's role, by the function's name in small letters."""
    chosen = stack.given(**resources.parameters)
    roles = chosen.roles
    found = {}
    for function, properties in chosen.functions.items():
        (role, _) = properties["Role"]["Fn::GetAtt"]
        documents = [policy["PolicyDocument"] for policy in roles[role]["Policies"]]
        statements = [it for document in documents for it in document["Statement"]]
        name = function.removesuffix("Function").lower()
        found[name] = parse_statements(role, resources.resolve(statements))
    return found


def without_batches(
    roles: Mapping[str, tuple[Statement, ...]],
) -> dict[str, tuple[Statement, ...]]:
    """Return the roles without what only batches need, which test_batch_function.py shows."""
    return {
        name: tuple(it for it in statements if set(it.actions) != {"sqs:SendMessage"})
        for name, statements in roles.items()
        if name != "batch"
    }


def unneeded_grants(
    roles: Mapping[str, tuple[Statement, ...]], accesses: Iterable[tuple[str, Access]]
) -> set[Grant]:
    """Return the grants of which no access had need: unused ones, and those that others repeat."""
    grants = {
        grant
        for statements in roles.values()
        for statement in statements
        if statement.effect == "Allow"
        for grant in statement.grants
        if grant.action not in USED_BY_AWS
    }
    for function, access in accesses:
        granted = decide(roles[function], access).grants
        if len(granted) == 1:
            grants.discard(granted[0])
    return grants
