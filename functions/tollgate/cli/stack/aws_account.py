"""Access to the AWS account of a deployed stack, for the operator's commands."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import boto3  # type: ignore[import-untyped]  # ships no types; answers are read field by field
from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
)
from botocore.httpsession import URLLib3Session  # type: ignore[import-untyped]
from botocore.utils import get_environ_proxies  # type: ignore[import-untyped]
from msgspec import Struct
from pydantic import BaseModel
from pydantic_core import ValidationError

from tollgate.settings import Settings

_NO_CREDENTIALS: Final = (
    "there are no AWS credentials here: set them with `aws configure` or AWS_PROFILE"
)


class AccountError(Exception):
    """Raised for a failed call to AWS, for example without credentials or permission, or because
    there is no such stack.
    """


class DeployedStack(Struct, frozen=True):
    """The outputs of a CloudFormation stack."""

    url: str
    core_table: str
    ledger_table: str
    generations_table: str
    objects_bucket: str


class _Listed(BaseModel):
    id: str


class _ModelList(BaseModel):
    """The list of OpenAI's Models API."""

    data: tuple[_Listed, ...]


class ModelAccess(Struct, frozen=True, kw_only=True):
    """The account's access to a Bedrock model."""

    in_region: bool
    subscribed: bool
    authorized: bool


class FailedMessage(Struct, frozen=True, kw_only=True):
    """A message of a dead-letter queue."""

    body: str
    receipt: str
    sent_s: int
    """Unix second at which the message was first sent."""
    source_arn: str | None
    """The queue whose workers failed; None for a message that was sent directly."""


@contextmanager
def _account_errors(what: str) -> Iterator[None]:
    """Turn errors of boto3 into AccountError, with a message that begins with `what`."""
    try:
        yield
    except NoRegionError as error:
        raise AccountError(f"{what}: no region is set; give --region or set AWS_REGION") from error
    except NoCredentialsError as error:
        raise AccountError(_NO_CREDENTIALS) from error
    except (BotoCoreError, ClientError) as error:
        raise AccountError(f"{what}: {error}") from error


class AwsAccount:
    """Access to an account in one region, with the credentials of this terminal."""

    def __init__(self, region: str | None) -> None:
        try:
            self._session = boto3.Session(region_name=region)
        except BotoCoreError as error:
            raise AccountError(str(error)) from error

    def stack(self, name: str) -> DeployedStack:
        """Return the outputs of a stack; raise AccountError if there is none."""
        with _account_errors(f"stack {name}"):
            answer = self._session.client("cloudformation").describe_stacks(StackName=name)
        outputs: Mapping[str, str] = {
            output["OutputKey"]: output["OutputValue"]
            for output in answer["Stacks"][0].get("Outputs", ())
        }
        try:
            return DeployedStack(
                url=outputs["ApiUrl"],
                core_table=outputs["CoreTableName"],
                ledger_table=outputs["LedgerTableName"],
                generations_table=outputs["GenerationsTableName"],
                objects_bucket=outputs["ObjectsBucketName"],
            )
        except KeyError as missing:
            raise AccountError(f"stack {name} has no output {missing}") from missing

    def template(self, name: str) -> str:
        """Return a deployed stack's template, as JSON or YAML."""
        with _account_errors(f"the template of stack {name}"):
            answer = self._session.client("cloudformation").get_template(
                StackName=name, TemplateStage="Original"
            )
        body = answer["TemplateBody"]
        # boto3 returns a JSON template parsed.
        return body if isinstance(body, str) else json.dumps(body)

    def caller(self) -> str:
        """Return the ARN of the credentials' owner."""
        with _account_errors("the owner of the credentials is unknown"):
            try:
                return str(self._session.client("sts").get_caller_identity()["Arn"])
            except ClientError as error:
                code = error.response["Error"]["Code"]
                raise AccountError(
                    f"AWS does not accept the credentials here ({code}): sign in again"
                ) from error

    def unreserved_concurrency(self) -> int:
        """Return the number of Lambda environments that no function has reserved."""
        try:
            limits = self._session.client("lambda").get_account_settings()["AccountLimit"]
            return int(limits["UnreservedConcurrentExecutions"])
        except (BotoCoreError, ClientError, KeyError) as error:
            raise AccountError(f"Lambda's limits: {error}") from error

    def waiting_change_sets(self, stack: str) -> frozenset[str]:
        """Return the names of a stack's change sets that can be executed."""
        client = self._session.client("cloudformation")
        with _account_errors(f"the change sets of stack {stack}"):
            summaries = client.list_change_sets(StackName=stack)["Summaries"]
        return frozenset(
            summary["ChangeSetName"]
            for summary in summaries
            if summary.get("ExecutionStatus") == "AVAILABLE"
        )

    def discard_change_sets(self, stack: str, *, but: frozenset[str]) -> bool:
        """Delete a stack's waiting change sets, except for `but`; return whether there were any."""
        client = self._session.client("cloudformation")
        waiting = self.waiting_change_sets(stack) - but
        with _account_errors(f"the change sets of stack {stack}"):
            for name in sorted(waiting):
                client.delete_change_set(StackName=stack, ChangeSetName=name)
        return bool(waiting)

    def parameter(self, stack: str, name: str) -> str | None:
        """Return the value of a stack's parameter, or None if the stack does not exist."""
        with _account_errors(f"stack {stack}"):
            try:
                answer = self._session.client("cloudformation").describe_stacks(StackName=stack)
            except ClientError as error:
                # This code means that the stack does not exist.
                if error.response["Error"]["Code"] == "ValidationError":
                    return None
                raise
        found = answer["Stacks"][0]
        if found["StackStatus"] == "REVIEW_IN_PROGRESS":
            return None
        values = {
            parameter["ParameterKey"]: parameter["ParameterValue"]
            for parameter in found.get("Parameters", ())
        }
        return str(values[name]) if name in values else None

    def set_parameter(self, stack: str, name: str, value: str) -> None:
        """Update a parameter of a stack, and wait until the update is complete."""
        client = self._session.client("cloudformation")
        with _account_errors(f"{name} of stack {stack}"):
            parameters = client.describe_stacks(StackName=stack)["Stacks"][0]["Parameters"]
            names = [kept_name["ParameterKey"] for kept_name in parameters]
            client.update_stack(
                StackName=stack,
                UsePreviousTemplate=True,
                Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
                Parameters=[
                    *(
                        {"ParameterKey": kept_name, "UsePreviousValue": True}
                        for kept_name in names
                        if kept_name != name
                    ),
                    {"ParameterKey": name, "ParameterValue": value},
                ],
            )
            waiter = client.get_waiter("stack_update_complete")
            waiter.wait(StackName=stack, WaiterConfig={"Delay": 2, "MaxAttempts": 300})

    def has_secret(self, name: str) -> bool:
        """Return whether a secret exists and has a value, without reading the value."""
        with _account_errors(f"secret {name}"):
            try:
                answer = self._session.client("secretsmanager").describe_secret(SecretId=name)
            except ClientError as error:
                if error.response["Error"]["Code"] == "ResourceNotFoundException":
                    return False
                raise
        stages = answer.get("VersionIdsToStages", {}).values()
        return "DeletedDate" not in answer and any("AWSCURRENT" in labels for labels in stages)

    def keep_secret(self, name: str, value: str) -> None:
        """Store the value of a secret, which is created if needed."""
        client = self._session.client("secretsmanager")
        with _account_errors(f"secret {name}"):
            try:
                client.put_secret_value(SecretId=name, SecretString=value)
            except ClientError as error:
                if error.response["Error"]["Code"] != "ResourceNotFoundException":
                    raise
                client.create_secret(Name=name, SecretString=value)

    def queue_url(self, stack: str, name: str) -> str:
        """Return the URL of a queue by its name in a stack's template."""
        with _account_errors(f"queue {name} of stack {stack}"):
            answer = self._session.client("cloudformation").describe_stack_resource(
                StackName=stack, LogicalResourceId=name
            )
        return str(answer["StackResourceDetail"]["PhysicalResourceId"])

    def failed_messages(self, queue_url: str, *, hidden_s: int) -> Iterator[FailedMessage]:
        """Yield the messages of a dead-letter queue, each of them hidden for `hidden_s` seconds."""
        client = self._session.client("sqs")
        while True:
            with _account_errors(f"the messages of {queue_url}"):
                answer = client.receive_message(
                    QueueUrl=queue_url,
                    MaxNumberOfMessages=10,
                    VisibilityTimeout=hidden_s,
                    MessageSystemAttributeNames=["All"],
                )
            if not answer.get("Messages"):
                return
            for message in answer["Messages"]:
                yield FailedMessage(
                    body=message["Body"],
                    receipt=message["ReceiptHandle"],
                    sent_s=int(message["Attributes"]["SentTimestamp"]) // 1000,
                    source_arn=message["Attributes"].get("DeadLetterQueueSourceArn"),
                )

    def show_message(self, queue_url: str, message: FailedMessage) -> None:
        """Make a hidden message visible."""
        with _account_errors(f"a message of {queue_url}"):
            self._session.client("sqs").change_message_visibility(
                QueueUrl=queue_url, ReceiptHandle=message.receipt, VisibilityTimeout=0
            )

    def send_again(self, queue_url: str, message: FailedMessage, source: str) -> None:
        """Send a message to the queue `source`, and then delete it from the dead-letter queue."""
        client = self._session.client("sqs")
        with _account_errors(f"a message of {source}"):
            url = client.get_queue_url(QueueName=source)["QueueUrl"]
            client.send_message(QueueUrl=url, MessageBody=message.body)
            client.delete_message(QueueUrl=queue_url, ReceiptHandle=message.receipt)

    def concurrency_max(self) -> int:
        """Return the maximum number of concurrent Lambda environments in this region."""
        with _account_errors("Lambda's quota"):
            answer = self._session.client("lambda").get_account_settings()
        return int(answer["AccountLimit"]["ConcurrentExecutions"])

    def model_access(self, model_id: str) -> ModelAccess:
        """Return the account's access to a Bedrock model in this region."""
        with _account_errors(f"Bedrock model {model_id}"):
            answer = self._session.client("bedrock").get_foundation_model_availability(
                modelId=model_id
            )
        return ModelAccess(
            in_region=answer["regionAvailability"] == "AVAILABLE",
            subscribed=answer["agreementAvailability"]["status"] == "AVAILABLE",
            authorized=answer["authorizationStatus"] == "AUTHORIZED",
        )

    def mantle_models(self, address: str, region: str) -> frozenset[str]:
        """Return the ids of the models that Bedrock's Mantle lists for the account in a region.

        Bedrock user guide, "Responses API" (2026-11-27). boto3 has no client for this service.
        """
        url = f"{address}/v1/models"
        what = f"the models of Bedrock's Mantle in {region}"
        with _account_errors(what):
            request = AWSRequest("GET", url)
            SigV4Auth(self._session.get_credentials(), "bedrock-mantle", region).add_auth(request)
            web = URLLib3Session(proxies=get_environ_proxies(url))
            answer = web.send(request.prepare())
        if answer.status_code != 200:
            raise AccountError(f"{what}: HTTP {answer.status_code}")
        try:
            listed = _ModelList.model_validate_json(answer.content)
        except ValidationError as unreadable:
            raise AccountError(f"{what}: the answer is not a list of models") from unreadable
        return frozenset(model.id for model in listed.data)

    def endpoint_url(self, service: str) -> str:
        """Return the base URL of an AWS service."""
        return str(self._session.client(service).meta.endpoint_url)

    def settings(self, stack: DeployedStack) -> Settings:
        """Return settings with which this process can access the stack's tables."""
        credentials = self._session.get_credentials()
        if credentials is None:
            raise AccountError(_NO_CREDENTIALS)
        frozen = credentials.get_frozen_credentials()
        return Settings(
            core_table=stack.core_table,
            ledger_table=stack.ledger_table,
            generations_table=stack.generations_table,
            objects_bucket=stack.objects_bucket,
            aws_region=self._session.region_name,
            aws_access_key_id=frozen.access_key,
            aws_secret_access_key=frozen.secret_key,
            aws_session_token=frozen.token,
        )
