"""References to secrets: configuration names the place of a secret, never its value."""

from msgspec import Struct


class SecretReference(Struct, frozen=True, kw_only=True):
    """An environment variable, a Secrets Manager secret, or both (the variable is read first)."""

    env: str | None = None
    secret: str | None = None

    def describe(self) -> str:
        """Return the places in words, for a message that states what to set."""
        places = (
            self.env and f"environment variable {self.env}",
            self.secret and f"secret {self.secret}",
        )
        return " or ".join(place for place in places if place)
