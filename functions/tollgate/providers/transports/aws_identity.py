"""Who we are to AWS, where a provider row has no key of its own."""

from collections.abc import Callable

from tollgate.aws.sigv4 import Credentials
from tollgate.core.errors import ErrorCode, UpstreamError


def identity(
    provider: str, credentials: Callable[[], Credentials | None]
) -> Callable[[], Credentials]:
    """The credentials when they are asked for; UpstreamError where there are none then."""

    def held() -> Credentials:
        found = credentials()
        if found is None:
            raise UpstreamError(
                ErrorCode.PROVIDER_AUTH,
                f"The provider {provider} has no credentials: set environment variables"
                " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
            )
        return found

    return held
