"""The headers that authorize the requests of a provider row."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from tollgate.aws.objects import ObjectStore
from tollgate.aws.sigv4 import Credentials, Signer
from tollgate.core.clock import Clock
from tollgate.core.errors import MissingCredentials
from tollgate.core.secret import CredentialPlace, describe_remedy
from tollgate.http1.request import Method
from tollgate.providers.ports.base import ProviderRow, Transport
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.stores.ports.base import SecretStore

AWS_IDENTITY: Final = CredentialPlace(variables=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
GOOGLE_FILE: Final = CredentialPlace(variables=("GOOGLE_APPLICATION_CREDENTIALS",))


class Authorization(Protocol):
    """Authorizes the requests of a row."""

    async def authorize(
        self, url: str, headers: Mapping[str, str], body: bytes, *, method: Method = "POST"
    ) -> Mapping[str, str]:
        """Return the headers of a request with its authorization added; raise MissingCredentials
        without credentials.
        """


async def secret_of(row: ProviderRow, secrets: SecretStore) -> str | None:
    """Return a row's secret; None if the row names no secret. Raise MissingCredentials if the
    secret is not set.
    """
    if row.key is None:
        return None
    secret = ((await secrets.read(row.key)) or "").strip()
    if not secret:
        place = secrets.place(row.key)
        raise no_credentials(row, f"has no key: {describe_remedy((place,))}", place)
    return secret


def no_credentials(
    row: ProviderRow, what: str, place: CredentialPlace | None = None
) -> MissingCredentials:
    """Return the error for a row without usable credentials; the message has no secret."""
    places = () if place is None else (place,)
    return MissingCredentials(f"The provider {row.slug} {what}.", places)


class KeyHeader:
    """Authorization with a row's key, read for every call so that a new key works immediately."""

    def __init__(self, row: ProviderRow, secrets: SecretStore) -> None:
        self._row = row
        self._secrets = secrets

    async def authorize(
        self, url: str, headers: Mapping[str, str], body: bytes, *, method: Method = "POST"
    ) -> Mapping[str, str]:
        key = await secret_of(self._row, self._secrets)
        if key is None:
            return headers
        if not (key.isascii() and key.isprintable()):
            described = self._row.key.describe() if self._row.key else ""
            place = self._secrets.place(self._row.key) if self._row.key else None
            raise no_credentials(self._row, f"has an unusable key: check {described}", place)
        if self._row.auth == "bearer":
            return {**headers, "authorization": f"Bearer {key}"}
        return {**headers, self._row.auth: key}


def required_credentials(
    row: ProviderRow, credentials: Callable[[], Credentials | None]
) -> Callable[[], Credentials]:
    """Return a function that returns the credentials or raises MissingCredentials."""

    def read() -> Credentials:
        identity = credentials()
        if identity is None:
            remedy = describe_remedy((AWS_IDENTITY,))
            raise no_credentials(row, f"has no credentials: {remedy}", AWS_IDENTITY)
        return identity

    return read


class JobBucket(Struct, frozen=True, kw_only=True):
    """The gateway's bucket for the files of AWS's jobs, and the role by which AWS accesses it."""

    objects: ObjectStore
    name: str
    url: str
    """The bucket's address; the key of an object is appended to it."""
    region: str
    role: str
    """The ARN of the role."""
    jobs_url: str | None = None
    """The address of Bedrock's API for jobs; None for AWS's own in the region."""

    @property
    def uri(self) -> str:
        """The bucket's `s3://` address, with a slash at the end."""
        return f"s3://{self.name}/"


class ProviderServices(Struct, frozen=True, kw_only=True):
    """The services that transports and authorizations need."""

    pool: HttpPool
    secrets: SecretStore
    credentials: Callable[[], Credentials | None]
    """A function that returns the gateway's AWS credentials; None if there are none."""
    aws_region: str
    """The AWS region of the gateway's credentials, used to sign requests."""
    google_file: Path | None
    """The file with the environment's Google credentials, which may not exist; None if the
    environment names no file.
    """
    clock: Clock
    job_bucket: JobBucket | None = None
    """The bucket for the files of jobs; None in a deployment without one."""

    @property
    def job_region(self) -> str | None:
        """The region of the bucket for jobs; None without one."""
        return None if self.job_bucket is None else self.job_bucket.region


MakeTransport = Callable[[ProviderRow, ProviderServices], Transport]


class AwsSignature:
    """Authorization by a signature with the gateway's AWS credentials."""

    def __init__(
        self, row: ProviderRow, services: ProviderServices, *, service: str | None = None
    ) -> None:
        """Sign requests to an AWS service in the row's region; `auth` names the default service."""
        if row.region is None:
            raise ValueError(f"provider {row.slug} has no region")
        credentials = required_credentials(row, services.credentials)
        self._signer = Signer(service or row.auth, row.region, credentials, services.clock)

    async def authorize(
        self, url: str, headers: Mapping[str, str], body: bytes, *, method: Method = "POST"
    ) -> Mapping[str, str]:
        return self._signer.sign(method, url, headers, body)
