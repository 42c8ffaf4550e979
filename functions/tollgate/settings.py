"""The environment, read here and nowhere else."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


def _separated(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(name for part in value.split(",") if (name := part.strip()))


class Settings(BaseSettings):
    """What a deployment may set, each field as `TOLLGATE_<FIELD>` unless it says otherwise."""

    model_config = SettingsConfigDict(
        env_prefix="TOLLGATE_",
        env_ignore_empty=True,
        frozen=True,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    core_table: str = "tollgate-core"
    ledger_table: str = "tollgate-ledger"
    generations_table: str = "tollgate-generations"
    catalog_file: Path = Path("/var/task/routing.json")
    # What the api says of itself, written at build; worked out when asked for where there is none.
    openapi_file: Path | None = None
    dynamodb_endpoint_url: str | None = None
    secretsmanager_endpoint_url: str | None = None
    metrics_namespace: str = "Tollgate"
    # Where spans of generations go, an OTLP collector; none are made without it. The secret holds
    # the headers that it asks for, `name=value,name=value`, and is named, in Secrets Manager.
    otlp_endpoint_url: str | None = None
    otlp_headers_secret: str | None = None
    # Where answers are kept: a bucket, or a folder on a machine without one.
    objects_bucket: str | None = None
    objects_folder: Path | None = None
    s3_endpoint_url: str | None = None
    key_prefix: str = "sk-tg-"
    # Management keys of this workspace make workspaces, and grant credit to all of them.
    operator_workspace: str = "default"
    # Where budget alerts go; both may be set. The secret is named, in Secrets Manager.
    alert_topic_arn: str | None = None
    alert_webhook_url: str | None = None
    alert_webhook_secret: str | None = None
    sns_endpoint_url: str | None = None
    # Separated by commas.
    allowed_origins: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_separated)] = ("*",)
    # API Gateway and Lambda stop at 6 MB; hosts without that limit get this one.
    body_bytes_max: int = Field(default=50_000_000, gt=0)

    aws_region: str = Field(default="us-east-1", validation_alias="AWS_REGION")
    aws_access_key_id: str = Field(default="", validation_alias="AWS_ACCESS_KEY_ID")
    aws_secret_access_key: str = Field(
        default="", validation_alias="AWS_SECRET_ACCESS_KEY", repr=False
    )
    aws_session_token: str | None = Field(
        default=None, validation_alias="AWS_SESSION_TOKEN", repr=False
    )
    # In place of those three where credentials end: in restored snapshots, and in containers.
    container_credentials_url: str | None = Field(
        default=None, validation_alias="AWS_CONTAINER_CREDENTIALS_FULL_URI"
    )
    container_credentials_path: str | None = Field(
        default=None, validation_alias="AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
    )
    container_credentials_token: str | None = Field(
        default=None, validation_alias="AWS_CONTAINER_AUTHORIZATION_TOKEN", repr=False
    )
    container_credentials_token_file: Path | None = Field(
        default=None, validation_alias="AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"
    )
    # `snap-start` where Lambda takes a snapshot once the function has started.
    initialization_type: str = Field(default="", validation_alias="AWS_LAMBDA_INITIALIZATION_TYPE")


def lambda_runtime_api() -> str | None:
    """Where Lambda's Runtime API listens; None anywhere else."""
    return environment_variable("AWS_LAMBDA_RUNTIME_API")


def environment_variable(name: str) -> str | None:
    """A provider's key by the name that routing.yaml gives it; None where unset or empty."""
    return os.environ.get(name) or None
