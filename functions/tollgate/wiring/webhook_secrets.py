"""Wires the encryption of webhooks' secrets: with KMS, with keys from the settings, or without."""

from collections.abc import Callable, Sequence
from typing import Final

from tollgate.aws.aws_json import AwsJson
from tollgate.core.dotted_names import DottedName
from tollgate.core.ids import IdSource
from tollgate.settings import Settings
from tollgate.stores.webhooks.sealing import KmsSecrets, PlainSecrets, SecretSealer

# The cryptography library is imported only if the settings contain keys.
_LOCAL_SECRETS: Final[DottedName[Callable[[Sequence[bytes], IdSource], SecretSealer]]] = DottedName(
    "tollgate.stores.webhooks.local_secrets:LocalSecrets"
)


def wire_sealer(settings: Settings, kms: AwsJson | None, ids: IdSource) -> SecretSealer:
    """Return the encryption that the settings choose."""
    if kms is not None and settings.secrets_kms_key is not None:
        return KmsSecrets(kms, settings.secrets_kms_key)
    if settings.secrets_keys:
        return _LOCAL_SECRETS()(settings.secrets_keys, ids)
    return PlainSecrets()
