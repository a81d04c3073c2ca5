"""The answer to the loser of a race: a code for programs, a sentence for people."""

from __future__ import annotations

from ulak.dispatch.command import TaskView
from ulak.dispatch.model import Code
from ulak.errors import Conflict

_WORDS = {
    Code.ALREADY_TAKEN: "somebody else has taken task {task}; there is nothing to answer any more",
    Code.TASK_CANCELLED: "task {task} was cancelled",
    Code.OFFER_EXPIRED: "the offer of task {task} has expired; answer before deadlineAt the next time",
    Code.OFFER_CLOSED: "the offer of task {task} is closed: it was answered otherwise, withdrawn or given back",
    Code.NOT_OFFERED: "task {task} was not offered to this helper",
    Code.NOT_ASSIGNED: "task {task} is not assigned to this helper",
    Code.TASK_ENDED: "task {task} is {state} already; there is nothing to cancel",
}


class AnswerRefused(Conflict):
    """The answer does not fit what the task has become."""


def refused(code: Code, view: TaskView, name: str) -> AnswerRefused:
    return AnswerRefused(_WORDS[code].format(task=name, state=view.task.state), code=code.value)
