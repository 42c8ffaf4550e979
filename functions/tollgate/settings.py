"""The environment, read here and nowhere else."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from tollgate.core.secret import KeyVariables


def _separated(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(name for part in value.split(",") if (name := part.strip()))


_VariableGlob = Annotated[str, StringConstraints(pattern=r"^[A-Z*][A-Z0-9_*]*$")]


def _variable_of(field: str) -> str:
    """Return the environment variable of a field that has no alias."""
    return f"TOLLGATE_{field.upper()}"


class Settings(BaseModel):
    """The settings of a deployment; a caller may state some in place of their variables."""

    model_config = ConfigDict(
        alias_generator=_variable_of,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    core_table: str = "tollgate-core"
    ledger_table: str = "tollgate-ledger"
    generations_table: str = "tollgate-generations"
    catalog_file: Path = Path("/var/task/routing.json")
    # The OpenAPI document, written at build; without it, made at its first request.
    openapi_file: Path | None = None
    dynamodb_endpoint_url: str | None = None
    secretsmanager_endpoint_url: str | None = None
    metrics_namespace: str = "Tollgate"
    # The readers of `GET /metrics` of a server: those with this token, or the programs of its
    # machine. Without either there is no such route.
    metrics_token: str | None = Field(default=None, min_length=16, repr=False)
    metrics_loopback: bool = False
    # The OTLP collector of generations' spans; without it no spans are made.
    otlp_endpoint_url: str | None = None
    # The name, in Secrets Manager, of the headers that the collector requires: `name=value,…`.
    otlp_headers_secret: str | None = None
    # The store of kept answers and content: a bucket, or a folder on a machine without one.
    objects_bucket: str | None = None
    objects_folder: Path | None = None
    s3_endpoint_url: str | None = None
    # Whether the roll-up writes each closed day as tables to `exports/` of that store.
    daily_export: bool = False
    # The function that reads documents; without it, they are left to models that read them.
    reader_function: str | None = None
    lambda_endpoint_url: str | None = None
    # Of one uploaded file, and of all that a workspace and each of its keys keeps.
    file_bytes_max: int = Field(default=512 * 1024 * 1024, gt=0)
    workspace_files_max: int = Field(default=10_000, gt=0)
    workspace_file_bytes_max: int = Field(default=100 * 1024**3, gt=0)
    key_files_max: int = Field(default=5_000, gt=0)
    key_file_bytes_max: int = Field(default=50 * 1024**3, gt=0)
    key_prefix: str = "sk-tg-"
    # Management keys of this workspace create workspaces, and grant credit to all of them.
    operator_workspace: str = "default"
    # Globs of variables that may hold a provider's key, beside those of `core/secret.py`, separated
    # by commas.
    key_variables: Annotated[tuple[_VariableGlob, ...], BeforeValidator(_separated)] = ()
    # The targets of budget alerts; both may be set.
    alert_topic_arn: str | None = None
    alert_webhook_url: str | None = None
    # The name, in Secrets Manager, of the secret that signs alerts to the webhook.
    alert_webhook_secret: str | None = None
    sns_endpoint_url: str | None = None
    # The file that says whom an issuer of identities signs in, and as whom; without it callers have
    # keys alone.
    sign_in_file: Path | None = None
    # Separated by commas.
    allowed_origins: Annotated[tuple[str, ...], BeforeValidator(_separated)] = ("*",)
    # Days that records of generations are kept. A roll-up closes a day within four weeks, so that
    # fewer than 30 would lose days that were not closed in time.
    record_days: int = Field(default=30, ge=30, le=3650)
    # Of metered routes. API Gateway and Lambda stop at 6 MB; hosts without that limit get this one.
    body_bytes_max: int = Field(default=50_000_000, gt=0)

    aws_region: str = Field(default="us-east-1", validation_alias="AWS_REGION")
    aws_access_key_id: str = Field(default="", validation_alias="AWS_ACCESS_KEY_ID")
    aws_secret_access_key: str = Field(
        default="", validation_alias="AWS_SECRET_ACCESS_KEY", repr=False
    )
    aws_session_token: str | None = Field(
        default=None, validation_alias="AWS_SESSION_TOKEN", repr=False
    )
    # In place of those three where credentials expire: in restored snapshots, and in containers.
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
    google_application_credentials: Path | None = Field(
        default=None, validation_alias="GOOGLE_APPLICATION_CREDENTIALS"
    )
    # Of the gcloud command line: a developer's own login.
    gcloud_folder: str = Field(default="~/.config/gcloud", validation_alias="CLOUDSDK_CONFIG")
    # `snap-start` if Lambda takes a snapshot once the function has started.
    initialization_type: str = Field(default="", validation_alias="AWS_LAMBDA_INITIALIZATION_TYPE")

    @model_validator(mode="before")
    @classmethod
    def _add_environment(cls, stated: dict[str, object]) -> dict[str, object]:
        """Add the variables of the fields that the caller does not state; an empty one is unset."""
        environment = {name.upper(): value for name, value in os.environ.items() if value}
        read = {
            variable: environment[variable]
            for name, field in cls.model_fields.items()
            if name not in stated and (variable := str(field.validation_alias)) in environment
        }
        return read | stated

    @property
    def google_file(self) -> Path:
        """The file of Google credentials, which need not exist."""
        if self.google_application_credentials is not None:
            return self.google_application_credentials
        # Unlike Path.expanduser, this does not fail where the user has no home.
        folder = os.path.expanduser(self.gcloud_folder)
        return Path(folder, "application_default_credentials.json")

    @property
    def variables(self) -> KeyVariables:
        """The variables that may hold a provider's key."""
        return KeyVariables(self.key_variables)


def lambda_runtime_api() -> str | None:
    """Return the `host:port` of Lambda's Runtime API; None outside Lambda."""
    return environment_variable("AWS_LAMBDA_RUNTIME_API")


def environment_variable(name: str) -> str | None:
    """Return a variable that routing.yaml names, a provider's key; None if unset or empty."""
    return os.environ.get(name) or None
