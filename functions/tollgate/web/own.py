"""The part of a workspace that a caller can access, decided in one place for all routes."""

from msgspec import Struct

from tollgate.core.files.stored import StoredFile
from tollgate.core.ownership import WHOLE_WORKSPACE, OwnerScope
from tollgate.core.principal import MEMBER_LABEL
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.rules.key_settings import KeySettings


class Own(Struct, frozen=True, kw_only=True):
    """The objects of one owner in a workspace, or all objects of the workspace."""

    workspace_id: str
    reach: OwnerScope = WHOLE_WORKSPACE
    team_id: str | None = None
    """The team of the member; None for a member without a team."""

    @property
    def is_all(self) -> bool:
        """True if the caller can access the whole workspace."""
        return self.reach.everything

    @property
    def member_id(self) -> str | None:
        """The member whose objects the caller can access; None if access is not limited to a
        member.
        """
        return self.reach.owner

    def has_key(self, key: KeySettings) -> bool:
        """Return whether the caller can access a key."""
        return self.reach.has(key.member_id)

    def has_member(self, member_id: str) -> bool:
        """Return whether the caller can access a member."""
        return self.reach.has(member_id)

    def has_team(self, team_id: str) -> bool:
        """Return whether the caller can access a team."""
        return self.is_all or self.team_id == team_id

    def has_record(self, record: GenerationRecord) -> bool:
        """Return whether the caller can access a generation, judged by its key's member at that
        time.
        """
        return self.reach.has(record.labels.get(MEMBER_LABEL))

    def has_file(self, file: StoredFile) -> bool:
        """Return whether the caller can access an uploaded file, judged by the member who uploaded
        it.
        """
        return self.reach.has(file.member_id)
