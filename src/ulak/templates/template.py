"""Named templates in several languages: what a notification says when the caller gives `template` and `variables`.

A folder holds `name.tr.txt` (the text; every language needs one), `name.tr.subject.txt` and `name.tr.html`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Template, TemplateError, UndefinedError

from ulak.codec import decode, encode
from ulak.errors import Invalid, Misconfigured, NotFound
from ulak.templates.sandbox import Caps, Sandbox

BUILT_IN = Path(__file__).parent / "built_in"

_FILE = re.compile(r"(?P<name>[a-z0-9][a-z0-9_-]*)\.(?P<language>[a-z]{2})\.(?P<part>subject\.txt|txt|html)")
_QUOTED = re.compile(r"'([^']*)'")


@dataclass(frozen=True, slots=True)
class Rendered:
    language: str
    body: str
    subject: str | None
    html: str | None


@dataclass(frozen=True, slots=True)
class _Variant:
    """One name in one language, compiled."""

    text: Template
    subject: Template | None
    html: Template | None


class Templates:
    def __init__(self, *, default_language: str = "en", caps: Caps | None = None) -> None:
        self._default_language = default_language
        self._caps = caps or Caps()
        self._variants: dict[str, dict[str, _Variant]] = {}

    @property
    def names(self) -> list[str]:
        return sorted(self._variants)

    def languages(self, name: str) -> list[str]:
        return sorted(self._find(name))

    def add(self, name: str, language: str, text: str, *, subject: str | None = None, html: str | None = None) -> None:
        plain, markup = (Sandbox(language, html=html, caps=self._caps) for html in (False, True))
        variant = _Variant(
            text=plain.compile_text(text),
            subject=None if subject is None else plain.compile_text(subject),
            html=None if html is None else markup.compile_text(html),
        )
        self._variants.setdefault(name, {})[language] = variant

    def load(self, folder: Path = BUILT_IN) -> None:
        """Every template of a folder. One that is there already is replaced, language by language.

        One Misconfigured names every file that can't be used.
        """
        found, problems = _read(folder)
        for (name, language), parts in sorted(found.items()):
            if "txt" not in parts:
                problems.append(
                    f"Template {name!r} has no {name}.{language}.txt in {folder}; every language needs one."
                )
                continue
            try:
                self.add(name, language, parts["txt"], subject=parts.get("subject.txt"), html=parts.get("html"))
            except Invalid as error:
                problems.append(f"Template {name!r} ({language}) in {folder} can't be used. {error}")
        if problems:
            raise Misconfigured("\n".join(problems))

    def render(self, name: str, variables: Mapping[str, Any], language: str | None = None) -> Rendered:
        """The name in that language (`tr-TR` finds `tr`), else in the default one, else in the first that there is."""
        variants = self._find(name)
        wanted = (language or "").lower()[:2]
        found = next(each for each in (wanted, self._default_language, *sorted(variants)) if each in variants)
        variant = variants[found]
        values = self._plain(variables)
        try:
            return Rendered(
                language=found,
                body=self._run(variant.text, values),
                subject=None if variant.subject is None else " ".join(self._run(variant.subject, values).split()),
                html=None if variant.html is None else self._run(variant.html, values),
            )
        except UndefinedError as error:
            raise _missing(name, found, error) from None
        except Invalid as error:
            raise Invalid(f"Template {name!r} ({found}) can't be filled in. {error}") from None
        except (TemplateError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as error:
            # The text of the original may quote a variable's value.
            raise Invalid(f"Template {name!r} ({found}) does not fit its variables ({type(error).__name__}).") from None

    def _find(self, name: str) -> dict[str, _Variant]:
        try:
            return self._variants[name]
        except KeyError:
            raise NotFound(f"There is no template {name!r}. There are: {', '.join(self.names) or 'none'}.") from None

    def _plain(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Only JSON goes into a template: no objects, so no methods of ours to call by mistake."""
        try:
            data = encode(dict(variables))
        except (TypeError, ValueError, RecursionError):
            raise Invalid(
                "Template variables must be plain JSON values.", fields=[("variables", "is not JSON")]
            ) from None
        if len(data) > self._caps.variables_bytes:
            raise Invalid(
                f"The template's variables take {len(data)} bytes; at most {self._caps.variables_bytes} are allowed.",
                fields=[("variables", "is too large")],
            )
        values: dict[str, Any] = decode(data)
        return values

    def _run(self, template: Template, values: dict[str, Any]) -> str:
        return _collect(template.generate(values), self._caps.output_chars)


def _collect(chunks: Iterable[str], limit: int) -> str:
    kept: list[str] = []
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise Invalid(f"The text would have more than {limit} characters; make it shorter.")
        kept.append(chunk)
    return "".join(kept)


def _missing(name: str, language: str, error: UndefinedError) -> Invalid:
    variable = (_QUOTED.findall(error.message or "") or ["?"])[-1]
    return Invalid(
        f"Template {name!r} ({language}) needs the variable {variable!r}, which was not given; add it to variables.",
        fields=[(f"variables.{variable}", "is missing")],
    )


def _read(folder: Path) -> tuple[dict[tuple[str, str], dict[str, str]], list[str]]:
    """The parts of each template, and what is wrong with the other files."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    problems = []
    if not folder.is_dir():
        raise Misconfigured(f"The template folder {folder} does not exist; create it or correct the setting.")
    for path in sorted(folder.iterdir()):
        match = _FILE.fullmatch(path.name)
        if match is None:
            problems.append(
                f"{path} is not a template; name it like order-shipped.tr.txt, order-shipped.tr.subject.txt or "
                "order-shipped.tr.html, or move it away."
            )
            continue
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{path} can't be read as a text in UTF-8: {error}")
            continue
        found.setdefault((match["name"], match["language"]), {})[match["part"]] = text
    return found, problems
