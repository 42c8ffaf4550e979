"""The gateway's AWS credentials, for provider rows without a key."""

from collections.abc import Callable

from tollgate.aws.sigv4 import Credentials
from tollgate.core.errors import MissingCredentials
from tollgate.core.secret import describe_remedy
from tollgate.providers.transports.authorization import AWS_IDENTITY


def required_credentials(
    provider: str, credentials: Callable[[], Credentials | None]
) -> Callable[[], Credentials]:
    """Return a function that returns the credentials, or raises MissingCredentials if unset."""

    def read() -> Credentials:
        found = credentials()
        if found is None:
            raise MissingCredentials(
                f"The provider {provider} has no credentials: {describe_remedy((AWS_IDENTITY,))}.",
                (AWS_IDENTITY,),
            )
        return found

    return read
