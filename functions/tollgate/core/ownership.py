"""The objects of a workspace that a caller can access."""

from typing import Final

from msgspec import Struct


class OwnerScope(Struct, frozen=True, kw_only=True):
    """Either all objects of a workspace, or those of one owner.

    The owner of a generation, a response or a file is the `Principal.owner` of the key that created
    it.
    """

    everything: bool = False
    """True if the caller can access the objects of all owners."""
    owner: str | None = None
    """The member whose objects the caller can access; None for the objects that no member owns."""

    def has(self, owner: str | None) -> bool:
        """Return whether the caller can access the objects of an owner."""
        return self.everything or owner == self.owner


WHOLE_WORKSPACE: Final = OwnerScope(everything=True)
UNOWNED: Final = OwnerScope()
