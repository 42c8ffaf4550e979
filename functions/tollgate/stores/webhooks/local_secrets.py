"""Encryption of webhooks' secrets on a server without KMS, by AES-256-GCM."""

import base64
import binascii
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tollgate.core.ids import IdSource
from tollgate.core.webhooks import Webhook
from tollgate.stores.webhooks.sealing import SecretUnreadable, context_of, is_sealed

_PREFIX: Final = "aes."
_NONCE_BYTES: Final = 12
_NAME_CHARACTERS: Final = 8


class LocalSecrets:
    """Implements `SecretSealer` with configured keys: the first encrypts, and all decrypt."""

    def __init__(self, keys: Sequence[bytes], ids: IdSource) -> None:
        self._ids = ids
        self._ciphers = {_name(key): AESGCM(key) for key in keys}
        self._current = _name(keys[0])

    async def seal(self, stored: str, webhook: Webhook) -> str:
        if stored.startswith(f"{_PREFIX}{self._current}."):
            return stored
        try:
            plain = await self.unseal(stored, webhook)
        except SecretUnreadable:
            return stored
        nonce = self._ids.random_bytes(_NONCE_BYTES)
        sealed = self._ciphers[self._current].encrypt(nonce, plain.encode(), _bound_to(webhook))
        return f"{_PREFIX}{self._current}.{base64.b64encode(nonce + sealed).decode()}"

    async def unseal(self, stored: str, webhook: Webhook) -> str:
        if not is_sealed(stored):
            return stored
        name, _, sealed = stored.removeprefix(_PREFIX).partition(".")
        cipher = self._ciphers.get(name)
        if not stored.startswith(_PREFIX) or cipher is None:
            raise SecretUnreadable("the secret is encrypted with a key that this gateway lacks")
        try:
            content = base64.b64decode(sealed, validate=True)
            nonce, text = content[:_NONCE_BYTES], content[_NONCE_BYTES:]
            return cipher.decrypt(nonce, text, _bound_to(webhook)).decode()
        except (InvalidTag, binascii.Error, ValueError) as failed:
            raise SecretUnreadable("the secret was encrypted for another webhook") from failed


def _name(key: bytes) -> str:
    return sha256(b"tollgate webhook secrets\0" + key).hexdigest()[:_NAME_CHARACTERS]


def _bound_to(webhook: Webhook) -> bytes:
    return msgspec.json.encode(context_of(webhook), order="sorted")
