"""The HTTP door: translates requests into Ulak's verbs and answers into JSON. Decides nothing but who may come in."""

from __future__ import annotations

from ulak.http.app import build_app
from ulak.http.caller import Caller
from ulak.http.hot import HotRoute, Routes, read_body, reply

__all__ = ["Caller", "HotRoute", "Routes", "build_app", "read_body", "reply"]
