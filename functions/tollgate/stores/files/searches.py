"""Remember which workspaces were searched for expired files lately."""

from collections import OrderedDict
from typing import Final

# Of how many workspaces the last search is remembered; one that is forgotten is searched again.
SEARCHED_MAX: Final = 1_000
# A workspace at its cap is searched for files that have expired once in so many seconds.
_SEARCH_EVERY_S: Final = 60


class RecentSearches:
    """The moments of the last searches by workspace, the latest last."""

    def __init__(self) -> None:
        self._searched_s: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._searched_s)

    def begin(self, workspace_id: str, now_s: float) -> bool:
        """Return whether a search is due, and note that it begins."""
        if self._searched_s.get(workspace_id, 0.0) + _SEARCH_EVERY_S > now_s:
            return False
        self._searched_s[workspace_id] = now_s
        self._searched_s.move_to_end(workspace_id)
        if len(self._searched_s) > SEARCHED_MAX:
            self._searched_s.popitem(last=False)
        return True
