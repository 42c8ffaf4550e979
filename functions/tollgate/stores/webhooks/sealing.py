"""Encrypts the secrets that sign events, in the core table.

The prefix of a stored secret shows its form: `kms.`, `aes.`, or `whsec_` if it is not encrypted.
Each ciphertext is bound to its workspace and webhook, so a copy in another item is useless.
"""

import base64
import binascii
from typing import Final, Protocol

from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreError, StoreRejected
from tollgate.core.webhooks import SECRET_PREFIX, DeliveryFailed, Webhook

_KMS_PREFIX: Final = "kms."


class SecretUnreadable(DeliveryFailed):
    """Raised if a stored secret cannot be decrypted, which prevents the signing of an event."""


class SecretSealer(Protocol):
    """Encrypts and decrypts the secrets of webhooks."""

    async def seal(self, stored: str, webhook: Webhook) -> str:
        """Encrypt a new or stored secret with the current key.

        Return the secret unchanged if it already has this form, or if it cannot be decrypted.
        """

    async def unseal(self, stored: str, webhook: Webhook) -> str:
        """Return the decrypted secret; raise SecretUnreadable if it cannot be decrypted."""


class PlainSecrets:
    """Implements `SecretSealer` without a key: secrets are stored unencrypted."""

    async def seal(self, stored: str, webhook: Webhook) -> str:
        return stored

    async def unseal(self, stored: str, webhook: Webhook) -> str:
        if is_sealed(stored):
            raise SecretUnreadable("the secret is encrypted, and this gateway has no key for it")
        return stored


class KmsSecrets:
    """Implements `SecretSealer` with a key that never leaves AWS KMS.

    KMS also decrypts secrets that were encrypted before a rotation of the key.
    """

    def __init__(self, kms: AwsCaller, key: str) -> None:
        self._kms = kms
        self._key = key

    async def seal(self, stored: str, webhook: Webhook) -> str:
        if is_sealed(stored):
            return stored
        plain = base64.b64encode(stored.encode()).decode()
        reply = await self._kms.call("Encrypt", {**self._scope(webhook), "Plaintext": plain})
        return _KMS_PREFIX + str(reply["CiphertextBlob"])

    async def unseal(self, stored: str, webhook: Webhook) -> str:
        if not is_sealed(stored):
            return stored
        if not stored.startswith(_KMS_PREFIX):
            raise SecretUnreadable("the secret is not encrypted with the key in KMS")
        sealed = stored.removeprefix(_KMS_PREFIX)
        try:
            reply = await self._kms.call(
                "Decrypt", {**self._scope(webhook), "CiphertextBlob": sealed}
            )
            return base64.b64decode(reply["Plaintext"]).decode()
        except (StoreError, KeyError, binascii.Error, UnicodeDecodeError) as failed:
            reason = failed.code if isinstance(failed, StoreRejected) else type(failed).__name__
            raise SecretUnreadable(f"KMS did not decrypt the secret: {reason}") from failed

    def _scope(self, webhook: Webhook) -> dict[str, object]:
        return {"KeyId": self._key, "EncryptionContext": context_of(webhook)}


def is_sealed(stored: str) -> bool:
    """Return whether a stored secret is encrypted."""
    return not stored.startswith(SECRET_PREFIX)


def context_of(webhook: Webhook) -> dict[str, str]:
    """Return the encryption context of a secret; CloudTrail logs it with each use of the key."""
    return {"workspace": webhook.workspace_id, "webhook": webhook.id}
