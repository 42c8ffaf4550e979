"""Clients of AWS as the settings have them: real services, or emulators with no credentials."""

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.settings import Settings
from tollgate.stores.aws_json import TIMEOUT_S, AwsJson, JsonService
from tollgate.stores.objects import FolderObjects, ObjectStore, S3Objects
from tollgate.wire.sigv4 import Credentials, Signer


def aws_json(
    settings: Settings,
    service: JsonService,
    endpoint_url: str | None,
    clock: Clock,
    *,
    timeout_s: float = TIMEOUT_S,
) -> AwsJson:
    """The client of a service in the settings' region."""
    return AwsJson(
        service,
        settings.aws_region,
        signer(settings, service, clock),
        clock,
        jitter=IdSource(clock).uniform,
        endpoint_url=endpoint_url,
        timeout_s=timeout_s,
    )


def objects_of(settings: Settings, clock: Clock) -> ObjectStore | None:
    """Where whole objects go: a folder or a bucket, None where the settings name neither."""
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


def signer(settings: Settings, service: str, clock: Clock) -> Signer:
    """Signs as the function's role; an emulator checks no credentials, but wants a signature."""
    local = Credentials("local", "local")
    return Signer(service, settings.aws_region, lambda: credentials(settings) or local, clock)


def credentials(settings: Settings) -> Credentials | None:
    """The function's own credentials, None where there are none."""
    if not settings.aws_access_key_id:
        return None
    return Credentials(
        settings.aws_access_key_id, settings.aws_secret_access_key, settings.aws_session_token
    )
