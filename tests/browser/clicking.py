"""Clicks as a person makes them, and the claim of a test to have clicked an action, which is held to it."""

from __future__ import annotations

import functools
import json
import pkgutil
import re
from importlib import import_module

from ulak.console import pages

LOOKS = ("copy", "preview", "reveal", "simulate")  # what a template offers beside actions: data-copy, data-preview, …
_clicked: list[str] = []  # of the test that runs


def clicks(*actions):
    """The test clicks these, each written as `offered()` has it. A claim that it does not keep fails it."""

    def claim(test):
        @functools.wraps(test)
        async def run(*args, **kwargs):
            _clicked.clear()
            await test(*args, **kwargs)
            missed = [one for one in actions if not any(re.fullmatch(_pattern(one), click) for click in _clicked)]
            assert missed == [], f"claimed and not clicked: {missed}; clicked: {_clicked}"

        run.clicks = actions
        return run

    return claim


def offered() -> set[str]:
    """Every action that a page of the console can have."""
    modules = (import_module(f"ulak.console.pages.{one.name}") for one in pkgutil.iter_modules(pages.__path__))
    holders = [holder for module in modules for page in module.PAGES for holder in (page, *page.parts)]
    actions = [
        action
        for holder in holders
        for action in (*getattr(holder, "actions", ()), *getattr(holder, "bulk", ()), getattr(holder, "chosen", None))
        if action is not None
    ]
    return {f"{one.label}: {one.method} {one.path}" for one in actions} | set(LOOKS)


def _pattern(action: str) -> str:
    return re.sub(r"\\\{\w+\\\}", "[^/ ]+", re.escape(action))


async def show(console, path):
    served, tab = console
    joined = "&" if "?" in path else "?"
    await tab.show(f"{served.address}/console/{path}{joined}lang=en")
    return served, tab


async def click(tab, label, *, row=""):
    """The button of that label, in the row that holds a text; what the dialog asks."""
    where = f"""[...document.querySelectorAll("button[data-path]")].find(one => one.textContent === {json.dumps(label)}
        && (one.closest("tr") ?? document.body).textContent.includes({json.dumps(row)}))"""
    # What has the focus stays where it is when the page is drawn again.
    await tab.until(f"(one => one && (one.focus(), one.id = 'clicked', document.activeElement === one))({where})")
    data = await tab.value("({...document.activeElement.dataset})")
    await tab.click("#clicked")
    await tab.value("document.querySelector('#clicked')?.removeAttribute('id')")
    await tab.until("document.querySelector('#confirm').open")
    _clicked.append(f"{label}: {data['method']} {data['path']}")
    return await tab.value("document.querySelector('#confirm-h').textContent")


async def agree(tab, *, good=True, **entries):
    """Fill in what the dialog asks for, say yes, and wait for what the page tells."""
    assert await tab.value("document.activeElement.value") == "no"  # the harmless button has the focus
    for name, value in entries.items():
        field = f"document.querySelector('#confirm [name=\"{name}\"]')"
        await tab.value(f"{field}.value = {json.dumps(str(value))}")
    await tab.value("document.querySelector('#toasts').replaceChildren()")
    await tab.click("#confirm button[value=yes]")
    await tab.until("!!document.querySelector('#toasts .toast')")
    told = await tab.value(
        "document.querySelector('#toasts .toast').className + document.querySelector('#toasts span').textContent"
    )
    assert ("s-done" in told) is good, told
    return told


async def look(tab, name):
    """Click what only shows something: a button or a form of `LOOKS`."""
    await tab.click(f"button[data-{name}], form[data-{name}] button")
    _clicked.append(name)
