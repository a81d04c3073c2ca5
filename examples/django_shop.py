"""A Django shop in one file. In a project of your own, `client` lives beside the views, and the worker in a module.

    python django_shop.py runserver       # accepts orders
    ulak worker --app django_shop:worker  # ships them; with ULAK_STORE=postgresql://… beside the server

With PostgreSQL an order and its job can share a transaction: client().enqueue(…, connection=connection.connection).
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from functools import cache

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from ulak import BlockingUlak, Job, Ulak

if not settings.configured:
    settings.configure(
        DEBUG=False,
        ALLOWED_HOSTS=["127.0.0.1", "localhost", "testserver"],
        ROOT_URLCONF=__name__,
        SECRET_KEY=os.environ.get("DJANGO_SECRET_KEY", "only for this example"),
        USE_TZ=True,
    )
    django.setup()

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


@csrf_exempt
def orders(request: HttpRequest) -> JsonResponse:
    order = json.loads(request.body)
    job = client().enqueue("order.ship", order, unique_key=f"order-{order['number']}")
    return JsonResponse({"job": str(job)}, status=202)


def order(_: HttpRequest, job: int) -> JsonResponse:
    return JsonResponse({"status": client().get(job).status})


urlpatterns = [path("orders", orders), path("orders/<int:job>", order)]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
