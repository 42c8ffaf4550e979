"""What the functions ask of AWS and what their roles grant: the same.

Every other test of the deployed path fails too where a request is refused.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import boto3
import pytest
import pytest_asyncio
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.deployed_functions import TOP
from tests.deployment import (
    Deployment,
    deployed,
)
from tests.iam.policy import LEADING_KEYS, Access, Context, decide, parse_statements
from tests.iam.roles import USED_BY_AWS, Resources, unneeded_grants, without_batches
from tests.iam.sign_ins import sign_people_in
from tests.iam.tour import tour
from tests.ministack import ministack_command, running_ministack
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.file.permissions import secret_names
from tollgate.stores.aws.decoding import read_text
from tollgate.stores.aws.tables import PUBLICATION_KEY

pytestmark = pytest.mark.asyncio(loop_scope="module")

BUCKET: Final = "tollgate-objects"


@dataclass(frozen=True, kw_only=True)
class Account:
    """An account that has what no stack makes, and the parameters that name it."""

    url: str
    secrets_kms_key: str
    parameters: Mapping[str, str]
    expire_answers: Callable[[], None]


def signed_client(service: str, url: str, access_key_id: str) -> Any:
    return boto3.client(
        service,
        "us-east-1",
        endpoint_url=url,
        aws_access_key_id=access_key_id,
        aws_secret_access_key="synthetic",
        config=Config(retries={"total_max_attempts": 1}),
    )


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """A bucket, a topic, and every secret."""
    if ministack_command() is None:
        pytest.skip("ministack is not installed: run `make .tools/ministack/stamp`")
    services = "dynamodb,kms,s3,secretsmanager,sns"
    with running_ministack(tmp_path_factory.mktemp("account"), services=services) as url:
        objects, secrets, alerts = (
            signed_client(name, url, "synthetic") for name in ("s3", "secretsmanager", "sns")
        )
        objects.create_bucket(Bucket=BUCKET)
        objects.create_bucket(Bucket="acme-audit")

        def expire_answers() -> None:
            kept = objects.list_objects_v2(Bucket=BUCKET, Prefix="answers/")["Contents"]
            for each in kept:
                objects.delete_object(Bucket=BUCKET, Key=each["Key"])

        for name in secret_names(compile_catalog(TOP / "routing.yaml").routing):
            secrets.create_secret(Name=name, SecretString="synthetic")
        secrets.create_secret(Name="tollgate/otlp", SecretString="x-key=synthetic")
        secrets.create_secret(Name="tollgate/oidc", SecretString="synthetic")
        webhook = secrets.create_secret(Name="webhook", SecretString="synthetic")
        topic = alerts.create_topic(Name="alerts")
        key = signed_client("kms", url, "synthetic").create_key()
        yield Account(
            url=url,
            secrets_kms_key=key["KeyMetadata"]["Arn"],
            expire_answers=expire_answers,
            parameters={
                "AlertTopicArn": topic["TopicArn"],
                # No name of this kind is ever found (RFC 6761); the secret is read before that.
                "AlertWebhookUrl": "https://alerts.invalid/hook",
                "AlertWebhookSecretArn": webhook["ARN"],
                "OtlpEndpointUrl": "http://127.0.0.1:1",
                "OtlpHeaders": "true",
                "DailyExport": "true",
                "AuditBucket": "acme-audit",
            },
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def toured(
    account: Account, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    """A deployment whose functions have done all that they do."""
    parameters = account.parameters
    chat = {
        "TOLLGATE_OTLP_ENDPOINT_URL": parameters["OtlpEndpointUrl"],
        "TOLLGATE_OTLP_HEADERS_SECRET": "tollgate/otlp",
    }
    scheduled = {
        "TOLLGATE_ALERT_TOPIC_ARN": parameters["AlertTopicArn"],
        "TOLLGATE_ALERT_WEBHOOK_URL": parameters["AlertWebhookUrl"],
        "TOLLGATE_ALERT_WEBHOOK_SECRET": parameters["AlertWebhookSecretArn"],
        "TOLLGATE_DAILY_EXPORT": parameters["DailyExport"],
        "TOLLGATE_AUDIT_BUCKET": parameters["AuditBucket"],
    }
    async with deployed(
        account.url,
        tmp_path_factory.mktemp("toured"),
        chat_environment=chat,
        bucket=BUCKET,
        parameters=parameters,
        secrets_kms_key=account.secrets_kms_key,
    ) as running:
        await tour(running, scheduled, account.expire_answers)
        workspace = await running.workspace()
        await sign_people_in(running, workspace, tmp_path_factory.mktemp("sign-in"))
        yield running


async def test_no_function_is_refused_anything(toured: Deployment) -> None:
    assert toured.proxy.take_refusals() == []


async def test_no_role_grants_what_its_function_never_needs(toured: Deployment) -> None:
    roles = without_batches(toured.proxy.roles)
    unneeded = unneeded_grants(roles, toured.proxy.accesses)
    assert not unneeded, "\n".join(sorted(map(str, unneeded)))


ADDED: Final = [
    ("chat", "dynamodb:Scan", "CoreTable"),
    # Two other statements allow it on the partitions that chat writes.
    ("chat", "dynamodb:UpdateItem", "CoreTable"),
    ("rollup", "dynamodb:DeleteItem", "GenerationsTable"),
]


@pytest.mark.parametrize(("function", "action", "table"), ADDED)
async def test_a_grant_too_many_is_named(
    toured: Deployment, function: str, action: str, table: str
) -> None:
    resource = Resources(settings=toured.settings).arn(table)
    granted = {"Effect": "Allow", "Action": action, "Resource": resource}
    added = parse_statements("added", [granted])
    roles = {**toured.proxy.roles, function: (*toured.proxy.roles[function], *added)}
    assert added[0].grants[0] in unneeded_grants(roles, toured.proxy.accesses)


async def test_each_statement_that_is_taken_away_is_missed(toured: Deployment) -> None:
    for function, statements in without_batches(toured.proxy.roles).items():
        asked = [access for name, access in toured.proxy.accesses if name == function]
        for left_out in statements:
            if left_out.effect == "Deny" or set(left_out.actions) <= USED_BY_AWS.keys():
                continue
            kept = [it for it in statements if it is not left_out]
            assert any(decide(kept, access).refusal for access in asked), left_out


async def test_c57_a_function_but_the_sweeper_cannot_move_what_is_published(
    toured: Deployment,
) -> None:
    table = Resources(settings=toured.settings).arn("CoreTable")
    pointer: Context = {LEADING_KEYS: (read_text(PUBLICATION_KEY, "pk"),)}
    for name, statements in toured.proxy.roles.items():
        for verb in ("Delete", "Put", "Update"):
            access = Access(f"dynamodb:{verb}Item", table, pointer)
            may = (name, verb) == ("sweeper", "Put")
            assert (decide(statements, access).refusal is None) == may, (name, verb)


REFUSED: Final[list[tuple[str, str, dict[str, Any], str]]] = [
    ("dynamodb", "scan", {"TableName": "other"}, "AccessDeniedException"),
    ("secretsmanager", "get_secret_value", {"SecretId": "other"}, "AccessDeniedException"),
    ("s3", "get_object", {"Bucket": "other", "Key": "key"}, "AccessDenied"),
    ("s3", "delete_object", {"Bucket": BUCKET, "Key": "answers/key"}, "AccessDenied"),
    ("sns", "publish", {"TopicArn": "arn:other", "Message": "no"}, "AuthorizationError"),
    ("bedrock-runtime", "converse_stream", {"modelId": "other.model"}, "AccessDeniedException"),
    ("logs", "describe_log_groups", {}, "403"),
]


@pytest.mark.parametrize(("service", "operation", "arguments", "code"), REFUSED)
async def test_a_refusal_has_the_form_of_its_service(
    toured: Deployment, service: str, operation: str, arguments: dict[str, Any], code: str
) -> None:
    client = signed_client(service, toured.proxy.url, toured.chat.config.access_key_id)
    with pytest.raises(ClientError) as raised:
        await asyncio.to_thread(getattr(client, operation), **arguments)
    assert raised.value.response["Error"]["Code"] == code
    (refusal,) = toured.proxy.take_refusals()
    assert refusal.startswith(("chat: no statement allows", "nothing is known of"))


async def test_a_key_of_no_function_is_refused(toured: Deployment) -> None:
    client = signed_client("dynamodb", toured.proxy.url, "ASIASTRANGER00000000")
    arguments = {"TableName": toured.settings.core_table, "Key": PUBLICATION_KEY}
    with pytest.raises(ClientError):
        await asyncio.to_thread(client.get_item, **arguments)
    assert toured.proxy.take_refusals() == ["no function has the access key ASIASTRANGER00000000"]
