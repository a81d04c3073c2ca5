"""Functions that workers can't import: lambdas, closures, and whatever a prompt or `-c` defined."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def outer(factor):
    def inner(value):
        return value * factor

    return inner


def test_lambdas_and_closures_run(engine):
    assert engine.submit(lambda x: x + 1, 1).result(30) == 2
    assert engine.submit(outer(3), 2).result(30) == 6
    assert list(engine.map(lambda x: -x, range(5))) == [0, -1, -2, -3, -4]


def test_a_closure_is_sent_as_it_is_now(engine):
    held = [1]

    def look():
        return held[0]

    assert engine.submit(look).result(30) == 1
    held[0] = 2
    assert engine.submit(look).result(30) == 2


def test_a_worker_may_return_a_function_or_raise_its_own_exception(engine):
    assert engine.submit(outer, 4).result(30)(2) == 8

    class Mine(Exception):
        pass

    def fail():
        raise Mine("own")

    assert type(engine.submit(fail).exception(30)).__name__ == "Mine"


PROGRAM = """
from ulak.compute import Engine, Executor

class Box:
    def __init__(self, value):
        self.value = value

class Wrong(Exception):
    pass

factor = 2

def double(box):
    if box.value < 0:
        raise Wrong("negative")
    return Box(box.value * factor)

def prepare():
    import os
    os.environ["PREPARED"] = "yes"

with Engine(cpu_workers=1) as engine:
    answer = engine.submit(double, Box(21)).result()
    print(isinstance(answer, Box), answer.value)
    factor = 3
    print([box.value for box in engine.map(double, [Box(1), Box(2)])])
    print(isinstance(engine.submit(double, Box(-1)).exception(), Wrong))
with Executor(1, initializer=prepare) as executor:
    print(executor.submit(lambda: __import__("os").environ["PREPARED"]).result())
"""


@pytest.mark.parametrize("how", [["-c", PROGRAM], ["-"], ["-i", "-c", PROGRAM]], ids=["-c", "stdin", "-i"])
def test_what_a_prompt_defines_runs(how):
    given = PROGRAM if how == ["-"] else ""
    done = subprocess.run(
        [sys.executable, *how], input=given, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": "src"},
    )  # fmt: skip
    assert done.stdout.split("\n")[:4] == ["True 42", "[3, 6]", "True", "yes"], done.stderr
