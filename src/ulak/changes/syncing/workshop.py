"""The files of a registry: a folder for each sync under way, the caches of the last one, and a list that is held."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

_SHORT = ".fp"
_CLAIMED = ".claimed"


class Workshop:
    def __init__(self, root: Path, registry: str) -> None:
        self.root = root / registry
        self.held = self.root / "held"
        self.inbox = self.root / "inbox"

    def begin(self, sync: int, keep: int) -> Path:
        """An empty folder for a sync; what others left is removed, and caches of other syncs with it."""
        work = self.root / "work"
        shutil.rmtree(work, ignore_errors=True)
        own = work / str(sync)
        own.mkdir(parents=True)
        for cache in self.root.glob(f"*{_SHORT}"):
            if not cache.name.endswith(f"-{keep}{_SHORT}"):
                cache.unlink(missing_ok=True)
        return own

    def end(self, sync: int) -> None:
        shutil.rmtree(self.root / "work" / str(sync), ignore_errors=True)

    def claim_files(self, name: str, sync: int) -> None:
        """Give the files that a person has named to a sync, which needs them for each of its attempts."""
        with contextlib.suppress(OSError):  # an earlier attempt has claimed them
            (self.inbox / name).rename(self.claimed_files(sync))

    def claimed_files(self, sync: int) -> Path:
        return self.inbox / f"{sync}{_CLAIMED}"

    def list_claims(self) -> list[int]:
        return [int(path.stem) for path in self.inbox.glob(f"*{_CLAIMED}")]

    def drop_files(self, claim: str | int) -> None:
        """Remove files that a person has named: those of a sync, or those of a folder that none has claimed yet."""
        path = self.inbox / claim if isinstance(claim, str) else self.claimed_files(claim)
        shutil.rmtree(path, ignore_errors=True)

    def cache(self, role: str, sync: int) -> Path:
        return self.root / f"{role}-{sync}{_SHORT}"

    def hold(self, paths: Mapping[str, Path], known: Mapping[str, Mapping[str, str]]) -> None:
        """Keep the files of a list that a person has to decide about; only the last one is kept."""
        shutil.rmtree(self.held, ignore_errors=True)
        self.held.mkdir(parents=True)
        for role, path in paths.items():
            shutil.move(path, self.held / role)
        (self.held / "known.json").write_bytes(msgspec.json.encode(known))

    def held_files(self) -> dict[str, tuple[Path, dict[str, str]]]:
        """Return the file of each role and what is known of it; empty when this machine holds no list."""
        listed = self.held / "known.json"
        known: dict[str, dict[str, str]] = msgspec.json.decode(listed.read_bytes()) if listed.exists() else {}
        return {role: (self.held / role, one) for role, one in known.items()}

    def release(self) -> None:
        shutil.rmtree(self.held, ignore_errors=True)
