"""The registries of the settings: for each its source, and where its files are. Sources of plug-ins come in here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from ulak.changes.sources.gib import GibSource
from ulak.changes.sources.source import FeedForm, Source
from ulak.changes.sources.table import LIST, TableSource
from ulak.errors import Misconfigured, NotFound
from ulak.settings import Changes as Section
from ulak.settings import ListSource

GROUP = "ulak.sources"


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    name: str
    source: Source
    urls: Mapping[str, str]
    cron: str = ""


class Registries:
    """By name, and the feeds of all by theirs."""

    def __init__(self, section: Section) -> None:
        found = [_gib(section), *map(_table, section.registry), *_plugged(section)]
        self.by_name = {one.name: one for one in found}
        self.feeds = {form.name: form for one in found for form in one.source.feeds}
        self.only: str | None = None  # a process may serve one registry alone, and leaves syncs of others
        if len(self.feeds) < sum(len(one.source.feeds) for one in found):
            raise Misconfigured("two registries have a feed of the same name; rename one in changes.registry")

    def get(self, name: str) -> RegistryEntry:
        try:
            return self.by_name[name]
        except KeyError:
            raise NotFound(f"no registry {name!r:.50}; there are: {', '.join(self.by_name)}") from None

    def feed(self, name: str) -> FeedForm:
        try:
            return self.feeds[name]
        except KeyError:
            raise NotFound(f"no feed {name!r:.50}; there are: {', '.join(self.feeds)}") from None


def _gib(section: Section) -> RegistryEntry:
    urls = {"PK": section.gib.pk_url, "GB": section.gib.gb_url}
    return RegistryEntry("gib", GibSource(), urls, section.gib.cron)


def _table(given: ListSource) -> RegistryEntry:
    source = TableSource(
        given.name,
        given.format,
        given.key,
        dict(given.fields),
        given.record,
        given.delimiter,
        given.encoding,
        given.compression,
    )
    return RegistryEntry(given.name, source, {LIST: given.url}, given.cron)


def _plugged(section: Section) -> list[RegistryEntry]:
    """An entry point is a function of this section that returns a RegistryEntry, or None when it is not set up."""
    made = (point.load()(section) for point in entry_points(group=GROUP))
    return [registry for registry in made if isinstance(registry, RegistryEntry)]
