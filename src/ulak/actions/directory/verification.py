"""Proving that a channel reaches its owner: a code is sent through it, and comes back."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping

import msgspec

from ulak import faults
from ulak.actions.acknowledge import SECRET, read_secret
from ulak.actions.decide import Limits, StepFailure, delay_seconds
from ulak.actions.directory.entries import read_channel, save_channel
from ulak.actions.model import RecipientChannel, StepTarget, VerifyStatus, kind_of
from ulak.actions.plans.render import Words
from ulak.actions.records import read_targets
from ulak.actions.steps.delivery import Delivery
from ulak.actions.steps.ends import fail_channels
from ulak.actions.steps.failures import as_error
from ulak.errors import Invalid
from ulak.spine.job import Job, NewJob
from ulak.spine.outcome import Cancel, Dead, Done, Outcome
from ulak.spine.query import Queries
from ulak.spine.store import Store, Tx
from ulak.spine.units.enqueue import enqueue_owed

sql = Queries("ulak.actions")

KIND = kind_of("verify")
MAX_WRONG = 5
VALID_MILLIS = 15 * 60_000
MAX_CODES = 5  # to one address in an hour: a person must not be flooded
MAX_CODES_TO_WEBHOOK = 100
HOUR_MILLIS = 3_600_000


def new_nonce() -> str:
    return secrets.token_hex(8)


def code_of(secret: str, channel: int, nonce: str) -> str:
    """Six digits. A job carries the nonce alone: whoever looks at jobs does not see the code."""
    return f"{int(_digest(secret, channel, f'code:{nonce}'), 16) % 1_000_000:06}"


def start_verification(tx: Tx, identifier: int, nonce: str, secret: str) -> RecipientChannel | float:
    """Keep the code's digest, and owe a message with the code; the seconds to wait where the address has had enough."""
    channel = read_channel(tx, identifier)
    address = _digest(secret, channel.channel_type, channel.target.casefold())
    most = MAX_CODES_TO_WEBHOOK if channel.channel_type == "webhook" else MAX_CODES
    if (wait := _count_code(tx, address, most)) is not None:
        return wait
    digest = _digest(secret, identifier, code_of(secret, identifier, nonce))
    tx.execute(sql.save_verification, channel=identifier, digest=digest, wrong=0, expires_at=tx.now + VALID_MILLIS)
    enqueue_owed(tx, [NewJob(KIND, {"channel": identifier, "nonce": nonce})])
    return channel


def _count_code(tx: Tx, address: str, most: int) -> float | None:
    """Counted by address and not by channel: a channel can be deleted and made again."""
    tx.lock_keys([f"actions:code:{address}"])
    sent: list[int] = [at for (at,) in tx.rows(sql.list_codes, address=address, since=tx.now - HOUR_MILLIS)]
    if len(sent) >= most:
        return (sent[0] + HOUR_MILLIS - tx.now) / 1000
    tx.execute(sql.keep_code, address=address, sent_at=max(tx.now, sent[-1] + 1 if sent else 0))
    return None


def prune_codes(tx: Tx) -> int:
    """Remove codes that no longer count."""
    return tx.execute(sql.prune_codes, before=tx.now - HOUR_MILLIS)


def confirm(tx: Tx, identifier: int, code: str, secret: str) -> RecipientChannel | str:
    """The verified channel, or why it is not: the wrong guess is kept too, so it is a value and not an exception."""
    channel = read_channel(tx, identifier)
    row = tx.row(sql.read_verification, channel=identifier)
    if row is None:
        return "no code was sent, or it is used up; ask for a new one"
    digest, wrong, expires_at = row
    if expires_at <= tx.now:
        return "the code is too old; ask for a new one"
    if hmac.compare_digest(digest, _digest(secret, identifier, code)):
        tx.execute(sql.delete_verification, channel=identifier)
        return save_channel(tx, _with_status(channel, VerifyStatus.VERIFIED))
    if wrong + 1 < MAX_WRONG:
        tx.execute(sql.save_verification, channel=identifier, digest=digest, wrong=wrong + 1, expires_at=expires_at)
        left = MAX_WRONG - wrong - 1
        return f"is not the code that was sent; {left} more {'try' if left == 1 else 'tries'}"
    tx.execute(sql.delete_verification, channel=identifier)
    save_channel(tx, _with_status(channel, VerifyStatus.FAILED))
    return "is not the code that was sent, for the fifth time; the channel has failed, ask for a new code"


def trust(tx: Tx, identifier: int) -> RecipientChannel:
    tx.execute(sql.delete_verification, channel=identifier)
    return save_channel(tx, _with_status(read_channel(tx, identifier), VerifyStatus.VERIFIED))


def _with_status(channel: RecipientChannel, status: VerifyStatus) -> RecipientChannel:
    return msgspec.structs.replace(channel, verify_status=status.value)


def _digest(secret: str, of: int | str, text: str) -> str:
    return hmac.new(secret.encode(), f"{of}:{text}".encode(), hashlib.sha256).hexdigest()


class CodeSender:
    """Sends a code through the channel that it is to prove."""

    def __init__(self, open_store: Callable[[], Store], delivery: Delivery, limits: Mapping[str, Limits]) -> None:
        self._store = open_store
        self._delivery = delivery
        self._limits = limits

    async def run(self, job: Job) -> Outcome:
        target, code = await self._store().read(_find, job.payload["channel"], job.payload["nonce"])
        if target is None:
            return Cancel("its channel is no longer there")
        limits = self._limits[target.channel_type]
        words = Words("Your verification code", f"Your verification code is {code}.")
        answer = await self._delivery.hand_over(job, target, words, {"code": code}, limits)
        if isinstance(answer, StepFailure):
            if answer.retryable:
                raise as_error(answer, delay_seconds(max(job.attempt - 1, 0), answer.retry_after_seconds))
            gone = (fail_channels, target.channel_id) if answer.gone else None
            return Dead(f"{answer.code}: {answer.message}", "permanent", answer.code, then=gone)
        return Done()


def _find(tx: Tx, channel: int, nonce: str) -> tuple[StepTarget | None, str]:
    return read_targets(tx, [channel]).get(channel), code_of(read_secret(tx, SECRET) or "", channel, nonce)


def refusal(why: str) -> Invalid:
    return faults.refusal("the code", [("code", why)])
