"""A FastAPI shop: an order is accepted at once, and shipped by a durable job in the same process.

uvicorn fastapi_shop:app
curl -s 127.0.0.1:8000/orders -H 'content-type: application/json' -d '{"number": 7, "address": "Kadıköy"}'
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from ulak import Job, NotFound, Ulak

ulak = Ulak("sqlite:///fastapi-shop.db")


class Order(BaseModel):
    number: int
    address: str


@ulak.handles("order.ship", payload=Order)
async def ship(job: Job[Order]) -> str:
    return f"order {job.payload.number} is on its way to {job.payload.address}"


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with ulak:  # opens the store, and works while the application runs
        yield


app = FastAPI(title="Shop", lifespan=lifespan)


@app.post("/orders", status_code=202)
async def accept(order: Order) -> dict[str, str]:
    """When this answers, the order is on disk. Until it is shipped, a repeated order is the same job."""
    job = await ulak.enqueue("order.ship", order, unique_key=f"order-{order.number}")
    return {"job": str(job)}  # as text: JavaScript rounds numbers of so many digits


@app.get("/orders/{job}")
async def look(job: int) -> dict[str, str]:
    try:
        record = await ulak.jobs.get(job)
    except NotFound as error:
        raise HTTPException(404, str(error)) from None
    return {"status": record.status, "detail": str(record.detail)}
