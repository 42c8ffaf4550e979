"""The AWS account of a deployed stack, as the operator's commands read it."""

import json
from collections.abc import Mapping
from typing import Final

import boto3  # type: ignore[import-untyped]  # ships no types; answers are read field by field
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
)
from msgspec import Struct

from tollgate.settings import Settings

_NO_CREDENTIALS: Final = (
    "there are no AWS credentials here: set them with `aws configure` or AWS_PROFILE"
)


class AccountError(Exception):
    """A failed read of AWS: no credentials, no permission, or no such stack."""


class DeployedStack(Struct, frozen=True):
    """The outputs of a CloudFormation stack."""

    url: str
    core_table: str
    ledger_table: str
    generations_table: str
    objects_bucket: str


class ModelAccess(Struct, frozen=True, kw_only=True):
    """The account's rights to one Bedrock model, as AWS states them."""

    in_region: bool
    subscribed: bool
    authorized: bool


class AwsAccount:
    """One account in one region, with the credentials of this terminal."""

    def __init__(self, region: str | None) -> None:
        try:
            self._session = boto3.Session(region_name=region)
        except BotoCoreError as error:
            raise AccountError(str(error)) from error

    def stack(self, name: str) -> DeployedStack:
        """Return the outputs of a stack; raise AccountError if there is none."""
        try:
            answer = self._session.client("cloudformation").describe_stacks(StackName=name)
        except NoRegionError as error:
            raise AccountError(
                f"stack {name}: no region is set; give --region or set AWS_REGION"
            ) from error
        except NoCredentialsError as error:
            raise AccountError(_NO_CREDENTIALS) from error
        except (BotoCoreError, ClientError) as error:
            raise AccountError(f"stack {name}: {error}") from error
        outputs: Mapping[str, str] = {
            it["OutputKey"]: it["OutputValue"] for it in answer["Stacks"][0].get("Outputs", ())
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
        """Return the template that a stack was deployed from, as JSON or YAML."""
        try:
            answer = self._session.client("cloudformation").get_template(
                StackName=name, TemplateStage="Original"
            )
        except (BotoCoreError, ClientError) as error:
            raise AccountError(f"the template of stack {name}: {error}") from error
        body = answer["TemplateBody"]
        # boto3 returns a JSON template parsed.
        return body if isinstance(body, str) else json.dumps(body)

    def caller(self) -> str:
        """Return the ARN that these credentials belong to."""
        try:
            return str(self._session.client("sts").get_caller_identity()["Arn"])
        except NoCredentialsError as error:
            raise AccountError(_NO_CREDENTIALS) from error
        except ClientError as error:
            code = error.response["Error"]["Code"]
            raise AccountError(
                f"AWS does not accept the credentials here ({code}): sign in again"
            ) from error
        except BotoCoreError as error:
            raise AccountError(f"AWS does not say whose credentials these are: {error}") from error

    def unreserved_concurrency(self) -> int:
        """Return the number of Lambda's environments that no function has reserved."""
        try:
            limits = self._session.client("lambda").get_account_settings()["AccountLimit"]
            return int(limits["UnreservedConcurrentExecutions"])
        except (BotoCoreError, ClientError, KeyError) as error:
            raise AccountError(f"Lambda's limits: {error}") from error

    def waiting_change_sets(self, stack: str) -> frozenset[str]:
        """Return the names of the stack's change sets that were not executed."""
        client = self._session.client("cloudformation")
        try:
            made = client.list_change_sets(StackName=stack)["Summaries"]
        except (BotoCoreError, ClientError) as error:
            raise AccountError(f"the change sets of stack {stack}: {error}") from error
        return frozenset(
            it["ChangeSetName"] for it in made if it.get("ExecutionStatus") == "AVAILABLE"
        )

    def discard_change_sets(self, stack: str, *, but: frozenset[str]) -> bool:
        """Delete the stack's waiting change sets except the named ones; return whether any was."""
        client = self._session.client("cloudformation")
        waiting = self.waiting_change_sets(stack) - but
        try:
            for name in sorted(waiting):
                client.delete_change_set(StackName=stack, ChangeSetName=name)
        except (BotoCoreError, ClientError) as error:
            raise AccountError(f"the change sets of stack {stack}: {error}") from error
        return bool(waiting)

    def parameter(self, stack: str, name: str) -> str | None:
        """Return a parameter of a stack, or None if the stack does not exist."""
        try:
            answer = self._session.client("cloudformation").describe_stacks(StackName=stack)
        except ClientError as error:
            # CloudFormation's code for a stack that does not exist.
            if error.response["Error"]["Code"] == "ValidationError":
                return None
            raise AccountError(f"stack {stack}: {error}") from error
        except NoCredentialsError as error:
            raise AccountError(_NO_CREDENTIALS) from error
        except BotoCoreError as error:
            raise AccountError(f"stack {stack}: {error}") from error
        found = answer["Stacks"][0]
        if found["StackStatus"] == "REVIEW_IN_PROGRESS":
            return None
        values = {it["ParameterKey"]: it["ParameterValue"] for it in found.get("Parameters", ())}
        return str(values[name]) if name in values else None

    def set_parameter(self, stack: str, name: str, value: str) -> None:
        """Update a stack to another value of one parameter, and wait until the update is done."""
        client = self._session.client("cloudformation")
        try:
            parameters = client.describe_stacks(StackName=stack)["Stacks"][0]["Parameters"]
            names = [it["ParameterKey"] for it in parameters]
            client.update_stack(
                StackName=stack,
                UsePreviousTemplate=True,
                Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
                Parameters=[
                    *({"ParameterKey": it, "UsePreviousValue": True} for it in names if it != name),
                    {"ParameterKey": name, "ParameterValue": value},
                ],
            )
            waiter = client.get_waiter("stack_update_complete")
            waiter.wait(StackName=stack, WaiterConfig={"Delay": 2, "MaxAttempts": 300})
        except (BotoCoreError, ClientError) as error:
            raise AccountError(f"{name} of stack {stack}: {error}") from error

    def has_secret(self, name: str) -> bool:
        """Return whether a secret exists and has a value. The value is not read."""
        try:
            answer = self._session.client("secretsmanager").describe_secret(SecretId=name)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return False
            raise AccountError(f"secret {name}: {error}") from error
        except BotoCoreError as error:
            raise AccountError(f"secret {name}: {error}") from error
        stages = answer.get("VersionIdsToStages", {}).values()
        return "DeletedDate" not in answer and any("AWSCURRENT" in it for it in stages)

    def concurrency_max(self) -> int:
        """Return how many Lambda environments the account may run at once in this region."""
        try:
            answer = self._session.client("lambda").get_account_settings()
        except (BotoCoreError, ClientError) as error:
            raise AccountError(f"Lambda's quota: {error}") from error
        return int(answer["AccountLimit"]["ConcurrentExecutions"])

    def model_access(self, model_id: str) -> ModelAccess:
        """Return the account's rights to one Bedrock model in this region."""
        try:
            answer = self._session.client("bedrock").get_foundation_model_availability(
                modelId=model_id
            )
        except (BotoCoreError, ClientError) as error:
            raise AccountError(f"Bedrock model {model_id}: {error}") from error
        return ModelAccess(
            in_region=answer["regionAvailability"] == "AVAILABLE",
            subscribed=answer["agreementAvailability"]["status"] == "AVAILABLE",
            authorized=answer["authorizationStatus"] == "AUTHORIZED",
        )

    def settings(self, stack: DeployedStack) -> Settings:
        """Return the settings with which stores in this process reach the stack's tables."""
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
