"""References to secrets: values are never written down, only where they live."""

from msgspec import Struct


class SecretReference(Struct, frozen=True, kw_only=True):
    """An environment variable, a Secrets Manager secret, or both (the variable is asked first)."""

    env: str | None = None
    secret: str | None = None

    def described(self) -> str:
        """The homes in words, for the message that says what to set."""
        homes = (
            self.env and f"environment variable {self.env}",
            self.secret and f"secret {self.secret}",
        )
        return " or ".join(home for home in homes if home)
