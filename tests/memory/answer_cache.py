"""Answers for identical requests, in memory."""

from dataclasses import dataclass, field


@dataclass
class MemoryAnswerCache:
    """Implements `stores.ports.base.AnswerCache`; `stored` is by workspace and name."""

    stored: dict[tuple[str, str], bytes] = field(default_factory=dict)

    async def get(self, workspace_id: str, name: str) -> bytes | None:
        return self.stored.get((workspace_id, name))

    async def put(self, workspace_id: str, name: str, answer: bytes) -> None:
        self.stored[workspace_id, name] = answer

    async def clear(self, workspace_id: str) -> int:
        due = [place for place in self.stored if place[0] == workspace_id]
        for place in due:
            del self.stored[place]
        return len(due)
