"""The part of a workspace that a caller may reach, decided in one place for all routes."""

from msgspec import Struct

from tollgate.core.files.stored import StoredFile
from tollgate.core.records.activity import MEMBER_LABEL
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.rules.key_settings import KeySettings


class Own(Struct, frozen=True, kw_only=True):
    """The objects of one member of a workspace, or all objects of the workspace."""

    workspace_id: str
    member_id: str | None = None
    """None if the caller reaches the whole workspace."""
    team_id: str | None = None
    """The team of the member; None for a member without a team."""

    @property
    def is_all(self) -> bool:
        """True if the caller may reach the whole workspace."""
        return self.member_id is None

    def has_key(self, key: KeySettings) -> bool:
        """Return whether the caller may reach a key."""
        return self.member_id in (None, key.member_id)

    def has_member(self, member_id: str) -> bool:
        """Return whether the caller may reach a member."""
        return self.member_id in (None, member_id)

    def has_team(self, team_id: str) -> bool:
        """Return whether the caller may reach a team."""
        return self.member_id is None or self.team_id == team_id

    def has_record(self, record: GenerationRecord) -> bool:
        """Return whether the caller may reach a generation, by its key's member at that time."""
        return self.member_id in (None, record.labels.get(MEMBER_LABEL))

    def has_file(self, file: StoredFile) -> bool:
        """Return whether the caller may reach an uploaded file, by the member who uploaded it."""
        return self.member_id in (None, file.member_id)
