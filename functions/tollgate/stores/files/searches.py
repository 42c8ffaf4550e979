"""The workspaces that were recently searched for expired files."""

from collections import OrderedDict
from typing import Final

# Workspaces whose last search is remembered; a forgotten workspace is searched again.
SEARCHED_MAX: Final = 1_000
# Interval between two searches of a workspace that is at its cap.
_SEARCH_EVERY_S: Final = 60


class RecentSearches:
    """The times of the last searches by workspace, latest last."""

    def __init__(self) -> None:
        self._searched_s: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._searched_s)

    def begin(self, workspace_id: str, now_s: float) -> bool:
        """Return True if a search is due, and record that it begins."""
        if self._searched_s.get(workspace_id, 0.0) + _SEARCH_EVERY_S > now_s:
            return False
        self._searched_s[workspace_id] = now_s
        self._searched_s.move_to_end(workspace_id)
        if len(self._searched_s) > SEARCHED_MAX:
            self._searched_s.popitem(last=False)
        return True
