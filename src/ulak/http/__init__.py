"""The HTTP door: translates requests into Ulak's verbs and answers into JSON. Decides nothing but who may come in."""

from __future__ import annotations

from ulak.access.caller import Caller
from ulak.http.app import build_app
from ulak.http.hot_routes import HotRoute, Routes, read_body, reply

__all__ = ["Caller", "HotRoute", "Routes", "build_app", "read_body", "reply"]
