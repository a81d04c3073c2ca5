"""A Flask shop: requests enqueue with the blocking client; a worker is a process of its own.

    flask --app flask_shop run            # accepts orders
    ulak worker --app flask_shop:worker   # ships them

On SQLite one process at a time has the file, so give both ULAK_STORE=postgresql://… to run them side by side.
"""

from __future__ import annotations

import atexit
from functools import cache

from flask import Flask, jsonify, request
from flask.typing import ResponseReturnValue

from ulak import BlockingUlak, Invalid, Job, Ulak

app = Flask(__name__)
worker = Ulak()  # the store is a setting: ULAK_STORE, or ulak.toml


@worker.handles("order.ship")
async def ship(job: Job) -> str:
    return f"order {job.payload['number']} is on its way"


@cache
def client() -> BlockingUlak:
    """One for the process, opened by the first request: a server that forks must not share it."""
    opened = BlockingUlak().__enter__()
    atexit.register(opened.__exit__, None, None, None)
    return opened


@app.post("/orders")
def accept() -> ResponseReturnValue:
    order = request.get_json()
    try:
        job = client().enqueue("order.ship", order, unique_key=f"order-{order.get('number')}")
    except Invalid as error:
        return jsonify(error=str(error)), 400
    return jsonify(job=str(job)), 202


@app.get("/orders/<int:job>")
def look(job: int) -> ResponseReturnValue:
    return jsonify(status=client().get(job).status)
