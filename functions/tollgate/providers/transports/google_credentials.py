"""Creates credentials for google-auth from the JSON files of Google Cloud.

google-auth's general loader imports `requests` for federated credentials, and the deployed
functions lack this package. A separate loader for each kind of credentials works with the HTTP
transport of the caller.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tollgate.aws.sigv4 import Credentials as AwsCredentials
from tollgate.core.dotted_names import DottedName

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
_AWS_TOKEN: Final = "urn:ietf:params:aws:token-type:aws4_request"  # noqa: S105 - names a kind
# The Google services to which a secret may send an identity. A check of the domain would not be
# enough: buckets are hosts of googleapis.com too, and anybody may write to some buckets.
_SERVICES: Final = {"token_url": "sts", "service_account_impersonation_url": "iamcredentials"}

# The classes of google-auth, imported with the first credentials of each kind.
_SERVICE_ACCOUNT: Final = DottedName[Any]("google.oauth2.service_account:Credentials")
_USER: Final = DottedName[Any]("google.oauth2.credentials:Credentials")
_AWS: Final = DottedName[Any]("google.auth.aws:Credentials")
_IDENTITY_POOL: Final = DottedName[Any]("google.auth.identity_pool:Credentials")
_FEDERATED_USER: Final = DottedName[Any]("google.auth.external_account_authorized_user:Credentials")
_IMPERSONATED: Final = DottedName[Any]("google.auth.impersonated_credentials:Credentials")

Info = Mapping[str, Any]


class UnusableCredentials(ValueError):
    """Raised for credentials of an unsupported kind, which the message names."""


class AwsRole:
    """Supplies the gateway's AWS identity to google-auth."""

    def __init__(self, credentials: Callable[[], AwsCredentials], region: str) -> None:
        self._credentials = credentials
        self._region = region

    def get_aws_security_credentials(self, context: object, request: object) -> AwsCredentials:
        """Return the credentials for signing, with the field names that google-auth reads."""
        return self._credentials()

    def get_aws_region(self, context: object, request: object) -> str:
        """Return the region of the STS endpoint that confirms the identity."""
        return self._region


def load_google_credentials(info: object, role: AwsRole, *, is_secret: bool) -> "Credentials":
    """Return credentials for Google Cloud; raise UnusableCredentials for an unsupported kind.

    `role` is the identity for a federation from AWS. A federation in a secret may not read files
    of this machine. Raises ValueError if the JSON lacks a field.
    """
    # Imported here, because the import takes long and only the first token needs it.
    from google.auth.credentials import with_scopes_if_required

    if not isinstance(info, dict):
        raise UnusableCredentials("a JSON object is expected")
    kind = info.get("type")
    if not isinstance(kind, str) or kind not in _LOADERS:
        raise UnusableCredentials(f"its type must be one of {', '.join(_LOADERS)}")
    if is_secret and kind == "external_account":
        _check_federation(info)
    try:
        unscoped = _LOADERS[kind](info, role)
    except (AttributeError, KeyError, TypeError) as malformed:
        # google-auth does not check all fields before reading them.
        raise ValueError("a field is missing or of the wrong type") from malformed
    scoped: Credentials = with_scopes_if_required(unscoped, _SCOPES)  # type: ignore[no-untyped-call]
    return scoped


def _check_federation(info: Info) -> None:
    """Raise UnusableCredentials if a federation would read files or send identities elsewhere.

    Otherwise anybody who can write the secret could also read the function's files.
    """
    if info.get("subject_token_type") != _AWS_TOKEN:
        raise UnusableCredentials(
            "a secret may federate only from AWS; for a source that is a file or a URL, use the "
            "file that GOOGLE_APPLICATION_CREDENTIALS names"
        )
    for field, service in _SERVICES.items():
        url = urlsplit(str(info.get(field, "")))
        if field in info and not (url.scheme == "https" and _serves(service, url.hostname)):
            raise UnusableCredentials(
                f"the {field} of a secret must be on {service}.googleapis.com over https"
            )


def _serves(service: str, host: str | None) -> bool:
    """Return whether a host is this Google service: global, regional or in a private network.

    `sts.storage.googleapis.com`, for example, is a bucket named `sts`.
    """
    forms = rf"(?:[a-z0-9-]+[.-])?{service}|{service}\.[a-z0-9-]+\.rep|{service}-[a-z0-9-]+\.p"
    return re.fullmatch(rf"(?:{forms})\.googleapis\.com", host or "") is not None


def _federated(info: Info, role: AwsRole) -> Any:
    source = info.get("credential_source") or {}
    if info.get("subject_token_type") == _AWS_TOKEN:
        # google-auth's own source reads environment variables that snapshots and containers lack.
        return _AWS().from_info(
            {**info, "credential_source": None}, aws_security_credentials_supplier=role
        )
    if "executable" in source:
        raise UnusableCredentials("a credential source that runs a program is refused")
    if "certificate" in source:
        raise UnusableCredentials("a credential source with a client certificate is not supported")
    return _IDENTITY_POOL().from_info(info)


_LOADERS: Final[Mapping[str, Callable[[Info, AwsRole], Any]]] = {
    "authorized_user": lambda info, _: _USER().from_authorized_user_info(info),
    "external_account": _federated,
    "external_account_authorized_user": lambda info, _: _FEDERATED_USER().from_info(info),
    "impersonated_service_account": lambda info, _: (
        _IMPERSONATED().from_impersonated_service_account_info(info, scopes=_SCOPES)
    ),
    "service_account": lambda info, _: _SERVICE_ACCOUNT().from_service_account_info(info),
}
