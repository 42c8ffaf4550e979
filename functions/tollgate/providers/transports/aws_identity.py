"""AWS credentials for provider rows, which have no key of their own."""

from collections.abc import Callable

from tollgate.aws.sigv4 import Credentials
from tollgate.core.errors import MissingCredentials


def required_credentials(
    provider: str, credentials: Callable[[], Credentials | None]
) -> Callable[[], Credentials]:
    """Return a function that returns the credentials; it raises MissingCredentials without any."""

    def read() -> Credentials:
        found = credentials()
        if found is None:
            raise MissingCredentials(
                f"The provider {provider} has no credentials: set environment variables"
                " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
            )
        return found

    return read
