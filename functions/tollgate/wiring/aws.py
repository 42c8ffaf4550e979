"""Creates clients for AWS services or emulators, as configured in the settings."""

from functools import cache, partial
from typing import TYPE_CHECKING, Final

from tollgate.aws.aws_json import TIMEOUT_S, AwsJson, JsonService
from tollgate.aws.failures import StoreUnavailable
from tollgate.aws.objects import FolderObjects, ObjectStore, S3Objects
from tollgate.aws.sigv4 import Credentials, Signer, fixed
from tollgate.core.clock import Clock, SystemClock
from tollgate.core.ids import IdSource
from tollgate.http1.connecting import tls_context
from tollgate.settings import Settings

if TYPE_CHECKING:
    from tollgate.aws.container_credentials import RotatingCredentials

# The address at which Amazon ECS serves AWS_CONTAINER_CREDENTIALS_RELATIVE_URI ("Container
# credential provider", AWS SDKs and Tools Reference Guide, 2026-11-21).
_ECS_URL: Final = "http://169.254.170.2"


def aws_json(
    settings: Settings,
    service: JsonService,
    endpoint_url: str | None,
    clock: Clock,
    *,
    timeout_s: float = TIMEOUT_S,
) -> AwsJson:
    """Return the client of a service, in the region that the settings name."""
    if endpoint_url is None:
        # Real services use https: load the TLS context while the function starts, not in a request.
        tls_context()
    return AwsJson(
        service,
        settings.aws_region,
        signer(settings, service, clock),
        clock,
        jitter=IdSource(clock).uniform,
        endpoint_url=endpoint_url,
        timeout_s=timeout_s,
    )


def wire_secrets(settings: Settings, clock: Clock) -> AwsJson | None:
    """Return the client of Secrets Manager; None if the function has no credentials for it."""
    url = settings.secretsmanager_endpoint_url
    if url or settings.aws_access_key_id or rotating_credentials(settings):
        return aws_json(settings, "secretsmanager", url, clock)
    return None


def wire_kms(settings: Settings, clock: Clock) -> AwsJson | None:
    """Return the client for KMS; None if the settings name no KMS key."""
    if settings.secrets_kms_key is None:
        return None
    return aws_json(settings, "kms", settings.kms_endpoint_url, clock)


def wire_objects(settings: Settings, clock: Clock) -> ObjectStore | None:
    """Return the store of objects in a folder or bucket; None if the settings name neither."""
    if settings.objects_folder is not None:
        return FolderObjects(settings.objects_folder)
    if settings.objects_bucket is None:
        return None
    return S3Objects(
        settings.objects_bucket,
        settings.aws_region,
        signer(settings, "s3", clock),
        endpoint_url=settings.s3_endpoint_url,
    )


def wire_audit_bucket(settings: Settings, clock: Clock) -> ObjectStore | None:
    """Return the bucket of the exported audit log; None if the settings name none."""
    if settings.audit_bucket is None:
        return None
    return S3Objects(
        settings.audit_bucket,
        settings.aws_region,
        signer(settings, "s3", clock),
        endpoint_url=settings.s3_endpoint_url,
        checksums=True,
    )


def signer(settings: Settings, service: str, clock: Clock, region: str | None = None) -> Signer:
    """Return a signer with the function's credentials; emulators accept any signature."""
    region = region or settings.aws_region
    rotating = rotating_credentials(settings)
    if rotating is not None:
        return Signer(service, region, partial(_renewed, rotating), clock)
    source = fixed(credentials(settings) or Credentials("local", "local"))
    return Signer(service, region, source, clock)


def credentials(settings: Settings) -> Credentials | None:
    """Return the credentials of the function, or None."""
    rotating = rotating_credentials(settings)
    if rotating is not None:
        return rotating.current()
    if not settings.aws_access_key_id:
        return None
    return Credentials(
        settings.aws_access_key_id, settings.aws_secret_access_key, settings.aws_session_token
    )


@cache
def rotating_credentials(settings: Settings) -> "RotatingCredentials | None":
    """Return the shared source of temporary credentials; None if the settings name no source."""
    url = settings.container_credentials_url
    if url is None and settings.container_credentials_path is not None:
        url = _ECS_URL + settings.container_credentials_path
    if url is None:
        return None
    # Imported here because most functions never use the module.
    from tollgate.aws.container_credentials import CredentialsEndpoint, RotatingCredentials

    endpoint = CredentialsEndpoint(
        url,
        token=settings.container_credentials_token,
        token_file=settings.container_credentials_token_file,
    )
    return RotatingCredentials(endpoint.fetch, SystemClock())


def _renewed(rotating: "RotatingCredentials") -> Credentials:
    credentials_now = rotating.current()
    if credentials_now is None:
        raise StoreUnavailable("AWS credentials are missing at the moment", maybe_applied=False)
    return credentials_now
