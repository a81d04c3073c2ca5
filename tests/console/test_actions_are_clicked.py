"""Every action that a page can have is clicked in a browser by some test, which reads its effect over the API."""

from __future__ import annotations

import re
from importlib import resources

from tests.browser import test_actions
from tests.browser.clicking import LOOKS, offered

CLAIMED = {one for test in vars(test_actions).values() for one in getattr(test, "clicks", ())}


def test_every_action_has_a_test_that_clicks_it():
    assert sorted(offered() - CLAIMED) == []


def test_no_test_claims_an_action_that_no_page_has():
    assert sorted(CLAIMED - offered()) == []


def test_templates_offer_no_other_button_that_the_script_follows():
    templates = (resources.files("ulak.console") / "templates").iterdir()
    marks = {
        mark
        for one in templates
        for mark in re.findall(r"<(?:button|form)[^>]*? data-([a-z]+)=", one.read_text("utf-8"))
    }
    assert marks - {"method"} == set(LOOKS)
