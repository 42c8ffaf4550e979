"""Each function's role: exactly these actions on exactly these resources."""

import re
from typing import Final

from tests.infra.generating import GENERATES, NEEDED
from tests.infra.translation import BEDROCK_ROLE, JsonObject, Stack
from tollgate.settings import Settings
from tollgate.stores.aws.decoding import read_text
from tollgate.stores.aws.tables import PUBLICATION_KEY, audit_workspace

LOGS: Final = {"logs:CreateLogStream", "logs:PutLogEvents"}

# The prefixes of the bucket.
STORED: Final = (
    "answers",
    "batches",
    "catalogs",
    "content",
    "files",
    "reading",
    "responses",
    "uploads",
)
OIDC_SECRET: Final = (
    "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:"
    "tollgate/oidc-??????"
)
WORKS_ON_QUEUE: Final = {
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
    "sqs:SendMessage",
}

PERMISSIONS: Final = {
    "ChatRole": {
        **GENERATES,
        "ChatLogs": LOGS,
        "CoreTable": {"dynamodb:BatchGetItem", "dynamodb:GetItem"},
        "CoreTable where pk begins with I#": {
            "dynamodb:DeleteItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
        },
        "CoreTable where pk begins with B#, BATCHES, E#": {"dynamodb:PutItem"},
        "CoreTable where pk begins with F#": {"dynamodb:UpdateItem"},
        "CoreTable where pk begins with T#M#, T#W#": {"dynamodb:PutItem"},
        "${ObjectsBucket.Arn}/files/*": {"s3:GetObject", "s3:PutObject"},
        "${ObjectsBucket.Arn}/uploads/*": {"s3:GetObject", "s3:PutObject"},
        "ReaderFunction": {"lambda:InvokeFunction"},
        "${ObjectsBucket.Arn}/reading/*": {"s3:DeleteObject", "s3:PutObject"},
        "${ObjectsBucket.Arn}/answers/*": {"s3:GetObject", "s3:PutObject"},
        "${ObjectsBucket.Arn}/catalogs/*": {"s3:GetObject"},
        "${ObjectsBucket.Arn}/content/*": {"s3:PutObject"},
        "${ObjectsBucket.Arn}/responses/*": {"s3:GetObject", "s3:PutObject"},
        "ObjectsBucket": {"s3:ListBucket"},
        "BackgroundQueue": {"sqs:SendMessage"},
    },
    "ApiRole": {
        "ApiLogs": LOGS,
        "CoreTable": {
            "dynamodb:BatchGetItem",
            "dynamodb:ConditionCheckItem",
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        },
        "LedgerTable": {
            "dynamodb:BatchGetItem",
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
        },
        "GenerationsTable": {"dynamodb:GetItem", "dynamodb:Query"},
        "${ObjectsBucket.Arn}/catalogs/*": {"s3:GetObject"},
        "${ObjectsBucket.Arn}/content/*": {"s3:GetObject"},
        "${ObjectsBucket.Arn}/responses/*": {"s3:DeleteObject", "s3:GetObject"},
        "${ObjectsBucket.Arn}/files/*": {"s3:DeleteObject", "s3:GetObject", "s3:PutObject"},
        "${ObjectsBucket.Arn}/uploads/*": {"s3:DeleteObject", "s3:GetObject", "s3:PutObject"},
        "${ObjectsBucket.Arn}/answers/*": {"s3:GetObject", "s3:PutObject"},
        "${ObjectsBucket.Arn}/answers/*/cached/*": {"s3:DeleteObject"},
        "ObjectsBucket": {"s3:ListBucket"},
        "SecretsKey": {"kms:Decrypt", "kms:Encrypt"},
        "BatchQueue": {"sqs:SendMessage"},
    },
    "BatchRole": {
        **GENERATES,
        "BatchLogs": LOGS,
        "CoreTable": {"dynamodb:BatchGetItem", "dynamodb:GetItem"},
        "CoreTable where pk begins with B#, F#": {"dynamodb:PutItem"},
        "CoreTable where pk begins with BATCHES": {"dynamodb:DeleteItem"},
        "CoreTable where pk begins with F#": {"dynamodb:UpdateItem"},
        "GenerationsTable": {"dynamodb:GetItem", "dynamodb:PutItem"},
        "${ObjectsBucket.Arn}/batches/*": {"s3:DeleteObject", "s3:GetObject", "s3:PutObject"},
        "${ObjectsBucket.Arn}/files/*": {"s3:GetObject", "s3:PutObject"},
        "${ObjectsBucket.Arn}/catalogs/*": {"s3:GetObject"},
        "${ObjectsBucket.Arn}/content/*": {"s3:GetObject", "s3:PutObject"},
        "${ObjectsBucket.Arn}/responses/*": {"s3:GetObject", "s3:PutObject"},
        "ObjectsBucket": {"s3:ListBucket"},
        "BackgroundQueue": WORKS_ON_QUEUE,
        "BatchQueue": WORKS_ON_QUEUE,
        **{
            model: {*GENERATES[model], "bedrock:CreateModelInvocationJob"}
            for model in NEEDED.batch_models
        },
        **{
            jobs: {
                "bedrock:CreateModelInvocationJob",
                "bedrock:GetModelInvocationJob",
                "bedrock:StopModelInvocationJob",
            }
            for jobs in NEEDED.batch_jobs
        },
        "*": {"bedrock:ListModelInvocationJobs"},
        f"{BEDROCK_ROLE} for bedrock.amazonaws.com": {"iam:PassRole"},
    },
    "SweeperRole": {
        "SweeperLogs": LOGS,
        "CoreTable": {
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        },
        "CoreTable where pk begins with J#": {"dynamodb:DeleteItem"},
        "LedgerTable": {
            "dynamodb:BatchGetItem",
            "dynamodb:PutItem",
            "dynamodb:Scan",
            "dynamodb:UpdateItem",
        },
        "GenerationsTable": {"dynamodb:PutItem", "dynamodb:Query"},
        "ObjectsBucket": {"s3:ListBucket"},
        "${ObjectsBucket.Arn}/uploads/*": {"s3:DeleteObject"},
        "SecretsKey": {"kms:Decrypt"},
        "BackgroundQueue": {"sqs:SendMessage"},
        "BatchQueue": {"sqs:SendMessage"},
    },
    "ReaderRole": {
        "ReaderLogs": LOGS,
        "${ObjectsBucket.Arn}/reading/*": {"s3:GetObject"},
    },
    "LoginRole": {
        "LoginLogs": LOGS,
        "CoreTable": {
            "dynamodb:BatchGetItem",
            "dynamodb:ConditionCheckItem",
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        },
        "LedgerTable": {"dynamodb:BatchGetItem", "dynamodb:PutItem"},
        OIDC_SECRET: {"secretsmanager:GetSecretValue"},
    },
    "RollupRole": {
        "RollupLogs": LOGS,
        "CoreTable": {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"},
        "GenerationsTable": {"dynamodb:Query"},
    },
}


def statements(role: JsonObject) -> list[JsonObject]:
    return [it for policy in role["Policies"] for it in policy["PolicyDocument"]["Statement"]]


def resource_name(resource: JsonObject | str) -> str:
    """A resource by its logical id, a parameter by its name, a pattern as it is."""
    match resource:
        case {"Fn::GetAtt": [name, "Arn"]} | {"Ref": name} | {"Fn::Sub": name}:
            return str(name)
        case "*":
            return "*"
        case _:
            raise AssertionError(f"the table of permissions cannot name {resource}")


def partitions(condition: JsonObject | None) -> str:
    """The kinds of conditions there are: on the partitions of a table, and on models."""
    match condition:
        case None:
            return ""
        case {
            "ForAllValues:StringLike": {"dynamodb:LeadingKeys": patterns},
            # ForAllValues alone is also true for a request that names no key.
            "Null": {"dynamodb:LeadingKeys": "false"},
        }:
            assert all(pattern.count("*") == 1 for pattern in patterns)
            begins = ", ".join(pattern.removesuffix("*") for pattern in patterns)
            return f" where pk begins with {begins}"
        case {"StringEquals": {"bedrock-mantle:Model": models}}:
            return f" for {', '.join(models)}"
        case {"StringEquals": {"iam:PassedToService": service}}:
            return f" for {service}"
        case _:
            raise AssertionError(f"the table of permissions cannot name {condition}")


def compile_permissions(role: JsonObject) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for statement in statements(role):
        if statement["Effect"] == "Deny":
            continue
        assert statement["Effect"] == "Allow"
        assert set(statement) - {"Condition"} == {"Effect", "Action", "Resource"}
        actions = statement["Action"]
        resources = statement["Resource"]
        where = partitions(statement.get("Condition"))
        for resource in resources if isinstance(resources, list) else [resources]:
            name = resource_name(resource) + where
            taken = {actions} if isinstance(actions, str) else set(actions)
            assert not taken & found.get(name, set()), f"two statements for {name}"
            found[name] = found.get(name, set()) | taken
    return found


def test_every_function_has_a_role_of_its_own(stack: Stack) -> None:
    assert {name: function["Role"] for name, function in stack.functions.items()} == {
        "ChatFunction": {"Fn::GetAtt": ["ChatRole", "Arn"]},
        "ApiFunction": {"Fn::GetAtt": ["ApiRole", "Arn"]},
        "SweeperFunction": {"Fn::GetAtt": ["SweeperRole", "Arn"]},
        "BatchFunction": {"Fn::GetAtt": ["BatchRole", "Arn"]},
        "ReaderFunction": {"Fn::GetAtt": ["ReaderRole", "Arn"]},
        "RollupFunction": {"Fn::GetAtt": ["RollupRole", "Arn"]},
        "LoginFunction": {"Fn::GetAtt": ["LoginRole", "Arn"]},
    }
    assert set(stack.roles) == set(PERMISSIONS)


def test_roles_allow_exactly_what_their_functions_do(stack: Stack) -> None:
    roles = stack.roles
    assert {name: compile_permissions(role) for name, role in roles.items()} == PERMISSIONS


def test_c90_the_key_of_webhooks_secrets_is_rotated_and_outlives_the_stack(stack: Stack) -> None:
    (key,) = stack.resources("AWS::KMS::Key").values()
    assert key["Properties"]["EnableKeyRotation"]
    assert key["DeletionPolicy"] == "RetainExceptOnCreate"
    assert key["UpdateReplacePolicy"] == "Retain"
    named = {
        name
        for name, function in stack.functions.items()
        if "TOLLGATE_SECRETS_KMS_KEY" in function["Environment"]["Variables"]
    }
    assert named == {"ApiFunction", "SweeperFunction"}


def test_no_condition_on_all_keys_is_true_without_any(any_stack: Stack) -> None:
    conditions = [
        statement["Condition"]
        for role in any_stack.roles.values()
        if "Policies" in role
        for statement in statements(role)
        if any("ForAllValues" in it for it in statement.get("Condition", ()))
    ]
    assert len(conditions) == 12
    for condition in conditions:
        (keys,) = (it for name, it in condition.items() if name.startswith("ForAllValues"))
        assert condition["Null"] == dict.fromkeys(keys, "false")


def test_c54_c57_only_the_sweeper_moves_what_is_published(stack: Stack) -> None:
    partition = read_text(PUBLICATION_KEY, "pk")
    writes = {f"dynamodb:{verb}Item" for verb in ("BatchWrite", "Delete", "Put", "Update")}
    for name, role in stack.roles.items():
        denied = {
            action
            for statement in statements(role)
            if statement["Effect"] == "Deny"
            and statement["Resource"] == {"Fn::GetAtt": ["CoreTable", "Arn"]}
            and statement["Condition"]
            == {"ForAnyValue:StringEquals": {"dynamodb:LeadingKeys": [partition]}}
            for action in statement["Action"]
        }
        for resource, actions in compile_permissions(role).items():
            if not resource.startswith("CoreTable"):
                continue
            _, _, prefix = resource.partition(" where pk begins with ")
            if partition.startswith(tuple(prefix.split(", "))):
                puts = {"dynamodb:PutItem"} if name == "SweeperRole" else set()
                assert (actions & writes) - denied == puts, name
        catalogs = compile_permissions(role).get("${ObjectsBucket.Arn}/catalogs/*", set())
        assert catalogs <= {"s3:GetObject"}, name


def test_c90_no_role_changes_or_deletes_an_entry_of_the_audit_log(stack: Stack) -> None:
    partition = audit_workspace("acme")
    changes = {f"dynamodb:{verb}Item" for verb in ("BatchWrite", "Delete", "Update")}
    for name, role in stack.roles.items():
        denied = {
            action
            for statement in statements(role)
            if statement["Effect"] == "Deny"
            and statement["Resource"] == {"Fn::GetAtt": ["CoreTable", "Arn"]}
            and statement["Condition"]
            == {"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": [f"{partition[:2]}*"]}}
            for action in statement["Action"]
        }
        for resource, actions in compile_permissions(role).items():
            table, _, prefix = resource.partition(" where pk begins with ")
            if table == "CoreTable" and partition.startswith(prefix):
                assert not (actions & changes) - denied, name


def test_roles_get_nothing_by_other_ways(stack: Stack) -> None:
    attached = {name: role.get("ManagedPolicyArns") for name, role in stack.roles.items()}
    assert {name: it for name, it in attached.items() if it} == {
        "ChatRole": [{"Ref": "ChatObjectsPolicy"}],
        "BatchRole": [{"Ref": "BatchPolicy"}],
    }
    assert not stack.resources("AWS::IAM::Policy")
    for managed in stack.properties("AWS::IAM::ManagedPolicy").values():
        assert set(managed) == {"Description", "PolicyDocument"}


def test_only_lambda_assumes_the_roles(stack: Stack) -> None:
    for name, role in stack.roles.items():
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}, name


def test_the_catalog_needs_no_wildcard_but_the_regions_of_a_profile(stack: Stack) -> None:
    for name, role in stack.roles.items():
        for resource in compile_permissions(role):
            exact = resource.replace(":bedrock:*::foundation-model/", "")
            for prefix in ("answers/*/cached", *STORED):
                exact = exact.removesuffix(f"${{ObjectsBucket.Arn}}/{prefix}/*")
            # Requests name no project, and the models are exact.
            exact = re.sub(r"(?<=:project/)\*(?= for )", "", exact)
            # AWS draws the ids of jobs, and no list of jobs has a resource.
            exact = re.sub(r"(?<=:model-invocation-job/)\*$|^\*$", "", exact)
            assert "*" not in exact.partition(" where ")[0], name


def test_the_rollup_alone_may_write_exports_and_only_where_they_are_wanted(
    any_stack: Stack,
) -> None:
    folder = "${ObjectsBucket.Arn}/exports/*"
    stack = any_stack.given(DailyExport="true")
    for name, role in stack.roles.items():
        may = compile_permissions(role).get(folder)
        assert may == ({"s3:PutObject"} if name == "RollupRole" else None), name
        usual = any_stack.given().roles[name]
        assert folder not in compile_permissions(usual), name
    variables = stack.environment("RollupFunction")
    assert variables["TOLLGATE_OBJECTS_BUCKET"] == {"Ref": "ObjectsBucket"}
    assert "TOLLGATE_OBJECTS_BUCKET" not in any_stack.given().environment("RollupFunction")
    assert "daily_export" in Settings.model_fields


def test_the_rollup_alone_may_write_the_audit_bucket_and_read_nothing_there(
    any_stack: Stack,
) -> None:
    stack = any_stack.given(AuditBucket="acme-audit")
    for name, role in stack.roles.items():
        found = {it: to for it, to in compile_permissions(role).items() if "AuditBucket" in it}
        folder = "arn:${AWS::Partition}:s3:::${AuditBucket}/audit/*"
        assert found == ({folder: {"s3:PutObject"}} if name == "RollupRole" else {}), name
