"""Provider secrets: an environment variable first, then AWS Secrets Manager; never logged."""

import logging
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreRejected, refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.secret import STANDARD_VARIABLES, CredentialPlace, KeyVariables, SecretReference

_log = logging.getLogger(__name__)

CACHED_FOR_S: Final = 300.0
# Cache time of a missing secret. A secret that is created later is used within a minute, and a
# missing secret does not cause a call for every request.
_ABSENT_FOR_S: Final = 60.0


class _Read(Struct, frozen=True):
    """A cached secret: its value, or None if it cannot be used."""

    until_s: float
    value: str | None


class AwsSecretStore:
    """Implements `stores.ports.base.SecretStore`; a changed secret is used within five minutes.

    Without a client, as on a laptop without an AWS account, only the environment is read.
    """

    def __init__(
        self,
        client: AwsCaller | None,
        environment_variable: Callable[[str], str | None],
        clock: Clock,
        *,
        variables: KeyVariables = STANDARD_VARIABLES,
        region: str | None = None,
        prefers_secrets: bool = False,
    ) -> None:
        self._client = client
        self._environment_variable = environment_variable
        self._clock = clock
        self._variables = variables
        self._region = region
        # True in a Lambda function, where only a deployment sets variables, so messages ask
        # operators to set the secret instead.
        self._prefers_secrets = prefers_secrets
        # The number of entries is bounded by the references in routing.yaml, because no other
        # secret is read.
        self._cache: dict[str, _Read] = {}

    async def read(self, reference: SecretReference) -> str | None:
        """Return the secret; None if it is not set or access is denied."""
        value = self._from_environment(reference.env)
        if value:
            return value
        if reference.secret is None or self._client is None:
            return None
        return await self._from_secrets_manager(self._client, reference.secret)

    def place(self, reference: SecretReference) -> CredentialPlace:
        secret = reference.secret if self._client is not None else None
        variable = reference.env
        if variable is None or (secret is not None and self._prefers_secrets):
            return CredentialPlace(secret=secret, region=self._region)
        return CredentialPlace(variables=(variable,), secret=secret, region=self._region)

    def _from_environment(self, name: str | None) -> str | None:
        """Return a variable's value; None if it is unset or may not hold secrets."""
        if name is None or not self._variables.allows(name):
            return None
        return self._environment_variable(name)

    async def _from_secrets_manager(self, client: AwsCaller, name: str) -> str | None:
        last = self._cache.get(name)
        now_s = self._clock.monotonic_s()
        if last is not None and now_s < last.until_s:
            return last.value
        rejection = "it has no SecretString"
        value: str | None = None
        with refusing_when_unavailable():
            try:
                reply = await client.call("GetSecretValue", {"SecretId": name})
                value = reply.get("SecretString") or None
            except StoreRejected as rejected:
                # For a missing secret, AWS reports either that the secret is missing, or (without
                # the permission ListSecrets) that access is denied.
                rejection = rejected.code
        if value is None and (last is None or last.value is not None):
            fields = {"secret": name, "rejection": rejection}
            _log.warning(
                "the secret %s cannot be used: %s", name, rejection, extra={"fields": fields}
            )
        lasts_s = _ABSENT_FOR_S if value is None else CACHED_FOR_S
        self._cache[name] = _Read(now_s + lasts_s, value)
        return value
