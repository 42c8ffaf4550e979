"""Uploaded files in memory, as requests read them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tollgate.core.files.stored import FoundFile


@dataclass
class ShelvedFiles:
    """Files by workspace and id; `asked` and `read` are the ids in the order of the calls."""

    shelf: Mapping[tuple[str, str], tuple[FoundFile, bytes]]
    asked: list[str] = field(default_factory=list)
    read_places: list[str] = field(default_factory=list)

    async def find(self, workspace_id: str, file_id: str) -> FoundFile | None:
        self.asked.append(file_id)
        kept = self.shelf.get((workspace_id, file_id))
        return kept[0] if kept else None

    async def read(self, place: str) -> bytes | None:
        self.read_places.append(place)
        found = [content for file, content in self.shelf.values() if file.place == place]
        return found[0] if found else None


def shelved(workspace_id: str, **contents: tuple[str, bytes]) -> ShelvedFiles:
    """Return files of one workspace, each by its id with its type and content."""
    return ShelvedFiles(
        {
            (workspace_id, id_): (
                FoundFile(
                    place=f"files/kept/{id_}",
                    filename=f"{id_}.bin",
                    media_type=type_,
                    size_bytes=len(content),
                ),
                content,
            )
            for id_, (type_, content) in contents.items()
        }
    )
