"""Provider secrets: an environment variable first, then AWS Secrets Manager; never logged."""

from collections.abc import Callable
from typing import Final

from tollgate.core.clock import Clock
from tollgate.core.secret import STANDARD_VARIABLES, KeyVariables, SecretReference
from tollgate.stores.aws.aws_json import AwsCaller
from tollgate.stores.aws.failures import StoreRejected, refusing_when_unavailable

_CACHED_FOR_S: Final = 300.0


class AwsSecretStore:
    """Implements `stores.base.SecretStore`; a changed secret is used within five minutes.

    Without a client, as on a laptop without an AWS account, it reads the environment only.
    """

    def __init__(
        self,
        client: AwsCaller | None,
        environment_variable: Callable[[str], str | None],
        clock: Clock,
        *,
        variables: KeyVariables = STANDARD_VARIABLES,
    ) -> None:
        self._client = client
        self._environment_variable = environment_variable
        self._clock = clock
        self._variables = variables
        # Bounded by the references in routing.yaml, the only ones that are read.
        self._cache: dict[str, tuple[float, str]] = {}

    async def read(self, reference: SecretReference) -> str | None:
        """Return the secret, or None where it is not set."""
        value = self._from_environment(reference.env)
        if value:
            return value
        if reference.secret is None or self._client is None:
            return None
        return await self._from_secrets_manager(self._client, reference.secret)

    def _from_environment(self, name: str | None) -> str | None:
        """Return a variable; None for one that no provider may get, whatever a catalog says."""
        if name is None or not self._variables.allows(name):
            return None
        return self._environment_variable(name)

    async def _from_secrets_manager(self, client: AwsCaller, name: str) -> str | None:
        until_s, value = self._cache.get(name, (0.0, ""))
        now_s = self._clock.monotonic_s()
        if value and now_s < until_s:
            return value
        with refusing_when_unavailable():
            try:
                reply = await client.call("GetSecretValue", {"SecretId": name})
            except StoreRejected as rejected:
                if rejected.code == "ResourceNotFoundException":
                    return None
                raise
        secret: str | None = reply.get("SecretString") or None
        if secret is not None:
            self._cache[name] = (now_s + _CACHED_FOR_S, secret)
        return secret
