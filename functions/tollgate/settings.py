"""Environment variables, which no other module reads."""

import base64
import os
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from tollgate.core.buffer_budget import (
    MEMORY_PER_BUFFERED_BYTE,
    PROCESS_BYTES_MAX,
    REQUEST_BYTES_MAX,
)
from tollgate.core.networks import parse_networks
from tollgate.core.secret import KeyVariables

_SECRETS_KEY_BYTES: Final = 32


def _separated(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(name for part in value.split(",") if (name := part.strip()))


def _check_network(text: str) -> str:
    parse_networks(text)
    return text


def _decode_key(value: object) -> object:
    """Decode a key of 32 bytes from base64."""
    if not isinstance(value, str):
        return value
    key = base64.b64decode(value, validate=True)
    if len(key) != _SECRETS_KEY_BYTES:
        raise ValueError(f"must be {_SECRETS_KEY_BYTES} bytes as base64")
    return key


_SecretsKey = Annotated[bytes, BeforeValidator(_decode_key)]
_Network = Annotated[str, AfterValidator(_check_network)]
_VariableGlob = Annotated[str, StringConstraints(pattern=r"^[A-Z*][A-Z0-9_*]*$")]


class Settings(BaseSettings):
    """Settings of a deployment from variables named by their alias, or else `TOLLGATE_<FIELD>`."""

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
    openapi_file: Path | None = None
    """OpenAPI document written at build time; if unset, it is generated at its first request."""
    dynamodb_endpoint_url: str | None = None
    secretsmanager_endpoint_url: str | None = None
    metrics_namespace: str = "Tollgate"
    metrics_token: str | None = Field(default=None, min_length=16, repr=False)
    """Token for `GET /metrics`; without it and `metrics_loopback`, the route does not exist."""
    metrics_loopback: bool = False
    """True lets programs on the server's own machine read `GET /metrics`."""
    otlp_endpoint_url: str | None = None
    """OTLP collector for generation spans; if unset, no spans are created."""
    otlp_headers_secret: str | None = None
    """Secrets Manager name of the collector's headers: `name=value,…`."""
    otlp_content: bool = False
    """True sends prompts and answers, too, of keys with `content_days`."""
    objects_bucket: str | None = None
    """Bucket for stored responses, content and exports."""
    objects_folder: Path | None = None
    """Folder that replaces the bucket on a machine that has no bucket."""
    s3_endpoint_url: str | None = None
    bedrock_batch_role: str | None = None
    """ARN of the role with which Bedrock reads and writes the files of its batches in the bucket;
    if unset, the gateway itself runs the lines.
    """
    bedrock_endpoint_url: str | None = None
    daily_export: bool = False
    """True makes the roll-up write each closed day as tables to `exports/` in the object store."""
    audit_bucket: str | None = None
    """Bucket, best with Object Lock, for the sealed days of the audit log."""
    reader_function: str | None = None
    """Lambda function that reads documents; if unset, only models that read them serve."""
    reader_isolates_tenants: bool = False
    """True if that function has Lambda's tenant isolation mode, and needs each caller's tenant."""
    reader_user: str | None = None
    """User of the processes that read documents, for a server that runs as root."""
    lambda_endpoint_url: str | None = None
    file_bytes_max: int = Field(default=512 * 1024 * 1024, gt=0)
    """The size limit of an uploaded file."""
    workspace_files_max: int = Field(default=10_000, gt=0)
    """The maximum number of files that a workspace may store."""
    workspace_file_bytes_max: int = Field(default=100 * 1024**3, gt=0)
    """The maximum size of all files that a workspace may store."""
    unfunded_file_bytes_max: int = Field(default=100 * 1024**2, gt=0)
    """The maximum size of all files that a workspace without credit may store."""
    key_files_max: int = Field(default=5_000, gt=0)
    """The maximum number of files that one key may store."""
    key_file_bytes_max: int = Field(default=50 * 1024**3, gt=0)
    """The maximum size of all files that one key may store."""
    batch_queue_url: str | None = None
    """SQS queue that wakes the batch function; if unset, servers look for open batches."""
    background_queue_url: str | None = None
    """SQS queue that wakes the batch function for background responses; if unset, servers look for
    them.
    """
    batch_lines_at_once: int = Field(default=8, ge=0, le=256)
    """Lines of batches that a process runs at a time; with 0, a server leaves batches to others."""
    sqs_endpoint_url: str | None = None
    key_prefix: str = "sk-tg-"
    operator_workspace: str = "default"
    """Management keys of this workspace create workspaces and grant credit to any workspace."""
    key_variables: Annotated[tuple[_VariableGlob, ...], NoDecode, BeforeValidator(_separated)] = ()
    """Globs, separated by commas, of further variables that may hold a provider's key."""
    alert_topic_arn: str | None = None
    """SNS topic for budget alerts; `alert_webhook_url` may be set as well."""
    alert_webhook_url: str | None = None
    alert_webhook_secret: str | None = None
    """Secrets Manager name of the secret that signs alerts to the webhook."""
    sns_endpoint_url: str | None = None
    sign_in_file: Path | None = None
    """File with the rules for signing people in by an identity issuer; if unset, only keys work."""
    secrets_kms_key: str | None = None
    """KMS key that encrypts the signing secrets of webhooks."""
    secrets_keys: Annotated[tuple[_SecretsKey, ...], NoDecode, BeforeValidator(_separated)] = Field(
        default=(), repr=False
    )
    """Keys of 32 bytes as base64, separated by commas, for webhooks' secrets on servers without
    KMS. The first key encrypts; all decrypt.
    """
    kms_endpoint_url: str | None = None
    bedrock_role_arn: str | None = Field(
        default=None, pattern=r"^arn:[a-z-]+:iam::\d{12}:role/\S+$"
    )
    """Role in whose sessions Bedrock is called, one for each team, so that AWS's bill names teams;
    if unset, Bedrock is called with the gateway's own credentials.
    """
    sts_endpoint_url: str | None = None
    allowed_origins: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_separated)] = ("*",)
    """CORS origins, separated by commas."""
    trusted_proxies: Annotated[tuple[_Network, ...], NoDecode, BeforeValidator(_separated)] = ()
    """Addresses or networks of proxies, separated by commas, whose `X-Forwarded-For` is read."""
    unknown_caller_rpm: int = Field(default=0, ge=0, le=1_000_000)
    """Requests per minute without a valid key from one address, above which replies are 429 instead
    of 401; 0 for no limit.
    """
    record_days: int = Field(default=30, ge=30, le=3650)
    """Days for which generation records are stored. A roll-up closes each day within four weeks;
    with fewer than 30 days, records could expire before their day is closed.
    """
    bill_days: int = Field(default=400, ge=30, le=3650)
    """Days for which the bills of generations are stored; no separate bills are stored if this is
    not more than `record_days`.
    """
    body_bytes_max: int = Field(default=50_000_000, gt=0)
    """The size limit of a body on metered routes, on hosts without Lambda's limit of 6 MB."""
    request_buffer_bytes_max: int | None = Field(default=None, gt=0)
    """The maximum bytes of media, documents and answers that one request may buffer. The default
    is 64 MiB, and where Lambda sends one request at a time an eighth of the function's memory.
    """
    process_buffer_bytes_max: int = Field(default=PROCESS_BYTES_MAX, gt=0)
    """The maximum bytes that all requests may buffer; at least twice the maximum of one request."""

    function_memory_mb: int | None = Field(
        default=None, gt=0, validation_alias="AWS_LAMBDA_FUNCTION_MEMORY_SIZE"
    )
    """Memory of the Lambda function in MB; None outside Lambda."""
    invocations_max: int = Field(default=1, gt=0, validation_alias="AWS_LAMBDA_MAX_CONCURRENCY")
    """Requests that Lambda sends to one environment at once: more than 1 on Managed Instances."""
    aws_region: str = Field(default="us-east-1", validation_alias="AWS_REGION")
    aws_access_key_id: str = Field(default="", validation_alias="AWS_ACCESS_KEY_ID")
    aws_secret_access_key: str = Field(
        default="", validation_alias="AWS_SECRET_ACCESS_KEY", repr=False
    )
    aws_session_token: str | None = Field(
        default=None, validation_alias="AWS_SESSION_TOKEN", repr=False
    )
    container_credentials_url: str | None = Field(
        default=None, validation_alias="AWS_CONTAINER_CREDENTIALS_FULL_URI"
    )
    """Source of credentials in containers and restored snapshots, instead of `aws_*`."""
    container_credentials_path: str | None = Field(
        default=None, validation_alias="AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
    )
    container_credentials_token: str | None = Field(
        default=None, validation_alias="AWS_CONTAINER_AUTHORIZATION_TOKEN", repr=False
    )
    container_credentials_token_file: Path | None = Field(
        default=None, validation_alias="AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"
    )
    google_application_credentials: Path | None = Field(
        default=None, validation_alias="GOOGLE_APPLICATION_CREDENTIALS"
    )
    gcloud_folder: str = Field(default="~/.config/gcloud", validation_alias="CLOUDSDK_CONFIG")
    """Configuration folder of the gcloud command line, with a developer's own login."""
    initialization_type: str = Field(default="", validation_alias="AWS_LAMBDA_INITIALIZATION_TYPE")
    """`snap-start` if Lambda takes a snapshot after the function has started."""

    @model_validator(mode="after")
    def _check_secrets_keys(self) -> Self:
        if self.secrets_kms_key and self.secrets_keys:
            raise ValueError("set TOLLGATE_SECRETS_KMS_KEY or TOLLGATE_SECRETS_KEYS, not both")
        return self

    @property
    def job_region(self) -> str | None:
        """Region of the bucket for batches of Bedrock; None without bucket or role."""
        has_bucket = self.objects_bucket is not None and self.objects_folder is None
        return self.aws_region if has_bucket and self.bedrock_batch_role else None

    @property
    def google_file(self) -> Path:
        """Path of the Google credentials, which need not exist."""
        if self.google_application_credentials is not None:
            return self.google_application_credentials
        # Unlike Path.expanduser, os.path.expanduser does not fail for a user without a home.
        folder = os.path.expanduser(self.gcloud_folder)
        return Path(folder, "application_default_credentials.json")

    @property
    def request_buffer_bytes(self) -> int:
        """The maximum bytes that one request may buffer."""
        if self.request_buffer_bytes_max is not None:
            return self.request_buffer_bytes_max
        if self.function_memory_mb is not None and self.invocations_max == 1:
            return self.function_memory_mb * 1024 * 1024 // MEMORY_PER_BUFFERED_BYTE
        return REQUEST_BYTES_MAX

    @property
    def variables(self) -> KeyVariables:
        """Variables that may hold a provider's key."""
        return KeyVariables(self.key_variables)


def lambda_runtime_api() -> str | None:
    """Return the `host:port` of Lambda's Runtime API; None outside Lambda."""
    return environment_variable("AWS_LAMBDA_RUNTIME_API")


def environment_variable(name: str) -> str | None:
    """Return the value of a variable that routing.yaml names; None if unset or empty."""
    return os.environ.get(name) or None
