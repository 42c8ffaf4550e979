"""References to secrets, never their values, and the environment variables that may hold provider
keys.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from msgspec import Struct

# Globs of the environment variables that may hold a provider's key. A deployment may add others.
KEY_VARIABLES: Final = ("*_API_KEY", "*_SERVICE_ACCOUNT")
# Variables of the platforms that Tollgate and its workflows run on, which no deployment may add.
PLATFORM_VARIABLES: Final = (
    "ACTIONS_*",
    "AWS_*",
    "ECS_*",
    "GITHUB_*",
    "LAMBDA_*",
    "RUNNER_*",
    "TOLLGATE_*",
)


class SecretReference(Struct, frozen=True, kw_only=True):
    """An environment variable, a Secrets Manager secret, or both, in which case the variable is
    read first.
    """

    env: str | None = None
    secret: str | None = None

    def describe(self) -> str:
        """Return a phrase that names the variable and the secret, for a message that says what to
        set.
        """
        places = (
            self.env and f"environment variable {self.env}",
            self.secret and f"secret {self.secret}",
        )
        return " or ".join(place for place in places if place)


class CredentialPlace(Struct, frozen=True, kw_only=True):
    """A place where this process looks for a provider's credentials."""

    variables: tuple[str, ...] = ()
    """Environment variables that must all be set."""
    secret: str | None = None
    region: str | None = None
    """The region of the secret, if it is known."""


def describe_remedy(places: Iterable[CredentialPlace]) -> str:
    """Return how to provide credentials in one of the places, as a sentence without the
    full stop.
    """
    known = tuple(places)
    sets = tuple(dict.fromkeys(" with ".join(each.variables) for each in known if each.variables))
    secrets = {each.secret: each.region for each in known if each.secret is not None}
    ways = []
    if sets:
        one_of = "environment variable" if len(sets) == 1 else "one of"
        ways.append(f"set {one_of} {', '.join(sets)}")
    if secrets:
        one_of = "the secret" if len(secrets) == 1 else "one of the secrets"
        command = create_secret_command(*next(iter(secrets.items())))
        ways.append(f"make {one_of} {', '.join(secrets)}: `{command}`")
    return ", or ".join(ways)


def create_secret_command(name: str, region: str | None = None) -> str:
    """Return the command that creates a secret whose value is read from standard input."""
    where = f"--region {region} " if region else ""
    return (
        f"aws secretsmanager create-secret {where}--name {name} --secret-string file:///dev/stdin"
    )


class KeyVariables(Struct, frozen=True):
    """The environment variables that may hold the provider keys."""

    added: tuple[str, ...] = ()
    """Globs of variables that the deployment allows in addition to KEY_VARIABLES."""

    def allows(self, name: str) -> bool:
        """Return whether a variable may hold a provider's key; variables of a platform
        never may.
        """
        return _allows(name, self.added)


@lru_cache(512)
def _allows(name: str, added: tuple[str, ...]) -> bool:
    """Return the result of `allows`, cached because each request checks a name from the catalog."""
    return not is_platform_variable(name) and _matches(name, (*KEY_VARIABLES, *added))


STANDARD_VARIABLES: Final = KeyVariables()


def is_platform_variable(name: str) -> bool:
    """Return whether a variable belongs to a platform and must not be sent to a provider."""
    return _matches(name, PLATFORM_VARIABLES)


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
