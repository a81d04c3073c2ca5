"""Scripts as tasks: three styles, fresh every time, whatever the last one did; output kept; the root respected."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.compute.conftest import eventually
from ulak.compute import ScriptRefused, Task, TaskStatus, TaskType
from ulak.errors import Duplicate, NotFound

BOTH = pytest.mark.parametrize("kind", list(TaskType))


@pytest.fixture
def run(engine):
    def run(name, params=None, kind=TaskType.CPU_BOUND, **options):
        options.setdefault("max_retries", 0)
        return engine.get_result(engine.submit_task(Task.create(name, params, kind, **options)), 30)

    return run


@BOTH
def test_main_gets_params_and_context(run, script, kind):
    name = script(
        "main.py", "def main(params, context):\n    return params['value'], context.task_id, context.worker_id\n"
    )
    result = run(name, {"value": 42}, kind)
    value, task_id, worker = result.data
    assert (value, task_id) == (42, result.task_id)
    assert worker == result.worker_id
    assert worker.startswith(("cpu-", "io-"))
    assert result.started_at <= result.completed_at


def test_run_gets_params(run, script):
    assert run(script("run.py", "def run(params):\n    return params['a'] + 1\n"), {"a": 1}).data == 2


def test_coroutine_main_is_awaited(run, script):
    assert run(script("co.py", "async def main(params, context):\n    return params['a']\n"), {"a": 5}).data == 5


def test_plain_script_gives_its_result(run, script):
    assert run(script("plain.py", "import math\nresult = math.floor(params['a'])\n"), {"a": 2.5}).data == 2


def test_guarded_script_runs_as_main(run, script):
    name = script(
        "guarded.py", "def main():\n    global result\n    result = 7\n\nif __name__ == '__main__':\n    main()\n"
    )
    assert run(name).data == 7


def test_changed_script_is_run_as_changed(run, script):
    assert run(script("changing.py", "result = 1\n")).data == 1
    assert run(script("changing.py", "result = 1\n")).data == 1
    assert run(script("changing.py", "result = 'two'\n")).data == "two"


def test_globals_are_fresh_for_each_run(run, script):
    name = script(
        "fresh.py",
        "assert 'seen' not in globals()\nseen = True\nresult = sorted(k for k in globals() if k == 'seen')\n",
    )
    assert [run(name).status for _ in range(4)] == [TaskStatus.SUCCESS] * 4


def test_modules_beside_the_script_can_be_imported(run, script):
    script("neighbour_of_scripts.py", "VALUE = 9\n")
    assert run(script("importer.py", "from neighbour_of_scripts import VALUE as result\n")).data == 9


@BOTH
def test_output_is_kept(run, script, kind):
    text = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.stdout.buffer.write(b'bytes')\n"
    result = run(script("output.py", text), kind=kind)
    assert (result.stdout, result.stderr) == ("out\nbytes", "err\n")


@BOTH
def test_output_is_text_that_can_be_encoded(run, script, kind):
    result = run(script("names.py", r"print('\udce9t\u00e9'); result = 1" + "\n"), kind=kind)
    assert (result.data, result.stdout) == (1, "\\udce9t\u00e9\n")


def test_output_is_bounded(run, script):
    result = run(script("loud.py", "for _ in range(100_000): print('0123456789')\n"))
    assert len(result.stdout) < 70_000
    assert "more characters were not kept" in result.stdout


def test_output_of_child_processes_is_kept_on_cpu_workers(run, script):
    text = "import os, subprocess\nsubprocess.run(['echo', 'child'], check=True)\nos.write(2, b'raw')\n"
    result = run(script("child_output.py", text))
    assert (result.stdout, result.stderr) == ("child\n", "raw")


def test_flood_from_a_child_process_neither_blocks_nor_grows(run, script):
    result = run(
        script("flood.py", "import subprocess\nsubprocess.run('yes | head -c 3000000', shell=True, check=True)\n")
    )
    assert result.is_success
    assert len(result.stdout) < 70_000


@pytest.mark.parametrize(
    "harm",
    [
        "import sys; sys.exit(3)",
        "import os; os._exit(3)",
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "import os; os.close(1); os.close(2)",
        "import sys; sys.stdout = sys.stderr = None",
        "import os, tempfile; os.chdir(tempfile.mkdtemp())",
        "import os, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)",
        "import os; os.environ.clear(); os.environ['LEFT'] = 'over'",
        "import sys; sys.path.clear(); sys.argv.append('x')",
        "import os; os.kill(os.getpid(), 9)",
        "raise KeyboardInterrupt",
        "raise MemoryError",
        "def f(): f()\nf()",
    ],
)
def test_the_next_script_does_not_notice(make_engine, script, harm):
    engine = make_engine()
    look = "import os, sys, json\nprint('fine')\nresult = [os.getcwd(), dict(os.environ), sys.path, sys.argv]\n"
    look_name = script("look.py", look)

    def run(name):
        task = Task.create(name, task_type=TaskType.CPU_BOUND, max_retries=0)
        return engine.get_result(engine.submit_task(task), 30)

    before = run(look_name)
    run(script("harm.py", harm + "\n"))
    after = run(look_name)
    assert after.error is None
    assert (after.data, after.stdout) == (before.data, "fine\n")


def test_scripts_sent_together_do_not_notice_each_other(make_engine, script):
    engine = make_engine()
    fine = script("fine.py", "import os\nos.write(1, b'fine')\nos.write(2, b'too')\nresult = os.getcwd()\n")
    harm = script("harm.py", "import os\nos.chdir('/')\nos.dup2(0, 1)\nos.close(2)\n")
    tasks = [Task.create(name, task_type=TaskType.CPU_BOUND, max_retries=0) for name in (fine, harm) * 20]
    results = [engine.get_result(task_id, 30) for task_id in engine.submit_tasks(tasks)][::2]
    assert {(result.data, result.stdout, result.stderr) for result in results} == {(str(Path.cwd()), "fine", "too")}


def test_a_function_after_a_script_has_the_descriptors_of_the_process(make_engine, script):
    engine = make_engine()
    before = [engine.submit(os.readlink, f"/proc/self/fd/{number}").result(30) for number in (1, 2)]
    name = script("one.py", "result = 1\n")
    together = []
    for number in (1, 2):  # not waiting in between: both may be in one message
        engine.submit_task(Task.create(name, task_type=TaskType.CPU_BOUND))
        together.append(engine.submit(os.readlink, f"/proc/self/fd/{number}"))
    assert [future.result(30) for future in together] == before


def test_a_script_changed_between_tasks_that_wait_together_is_run_as_changed(make_engine, script, gate):
    engine = make_engine()
    held = script("held.py", "from tests.compute import jobs\nresult = jobs.hold(params['started'], params['gate'])\n")
    engine.submit_task(Task.create(held, {"started": gate.started, "gate": gate.path}, TaskType.CPU_BOUND))
    gate.wait()
    first = engine.submit_task(Task.create(script("late.py", "result = 'old'\n"), task_type=TaskType.CPU_BOUND))
    second = engine.submit_task(Task.create(script("late.py", "result = 'changed'\n"), task_type=TaskType.CPU_BOUND))
    gate.open()
    assert {engine.get_result(task_id, 30).data for task_id in (first, second)} == {"changed"}


def test_exit_code_zero_is_success_and_others_are_not(run, script):
    assert run(script("zero.py", "import sys\nresult = 1\nsys.exit(0)\n")).data == 1
    failed = run(script("three.py", "import sys\nsys.exit(3)\n"))
    assert (failed.status, failed.error) == (TaskStatus.FAILED, "ScriptFailed: the script left with exit code 3")


def test_failed_script_says_why(run, script):
    result = run(script("bad.py", "print('before')\nraise ValueError('wrong')\n"))
    assert (result.status, result.error, result.stdout) == (TaskStatus.FAILED, "ValueError: wrong", "before\n")
    broken = run(script("syntax.py", "def ("))
    assert broken.error.startswith("SyntaxError")


def test_failing_script_is_tried_again_as_often_as_asked(run, script, tmp_path):
    text = "def main(params, context):\n    assert context.attempt == 3\n    return context.attempt\n"
    name = script("third.py", text)
    result = run(name, max_retries=2)
    assert (result.data, result.attempts) == (3, 3)
    result = run(name, max_retries=1)
    assert (result.status, result.attempts) == (TaskStatus.FAILED, 2)


def test_value_that_cannot_be_pickled_is_a_failure(run, script):
    result = run(script("unpicklable.py", "import threading\nresult = threading.Lock()\n"))
    assert result.status is TaskStatus.FAILED
    assert "cannot be pickled" in result.error


def test_scripts_outside_the_root_are_refused(engine, root, tmp_path):
    outside = tmp_path / "outside.py"
    outside.write_text("result = 1\n")
    (root / "link.py").unlink(missing_ok=True)
    (root / "link.py").symlink_to(outside)
    for path in (str(outside), "../outside.py", "link.py", "missing.py"):
        with pytest.raises(ScriptRefused):
            engine.submit_task(Task.create(path))


def test_a_script_that_becomes_a_link_to_the_outside_is_refused_at_the_worker(run, script, root, tmp_path):
    name = script("turncoat.py", "result = 1\n")
    assert run(name).data == 1
    outside = tmp_path / "outside.py"
    outside.write_text("result = 'stolen'\n")
    (root / name).unlink()
    (root / name).symlink_to(outside)
    assert run(name).error.startswith("ScriptRefused")


def test_batch_results_come_in_any_order_and_can_be_asked_for_in_any(engine, script):
    name = script("number.py", "result = params['n']\n")
    ids = engine.submit_tasks(Task.create(name, {"n": n}) for n in range(20))
    assert sorted(result.data for result in engine.completed(ids, 30)) == list(range(20))
    assert [engine.get_result(task_id).data for task_id in reversed(ids)] == list(reversed(range(20)))


def test_same_id_twice_is_refused(engine, script):
    task = Task.create(script("once.py", "result = 1\n"))
    engine.submit_task(task)
    with pytest.raises(Duplicate):
        engine.submit_task(task)
    assert engine.get_result(task.id, 30).data == 1
    with pytest.raises(Duplicate):
        engine.submit_task(task)


def test_states_of_a_task_and_its_cancelling(make_engine, script, gate):
    engine = make_engine()
    name = script("held.py", "from tests.compute import jobs\nresult = jobs.hold(params['started'], params['gate'])\n")
    params = {"started": gate.started, "gate": gate.path}
    running = engine.submit_task(Task.create(name, params, TaskType.CPU_BOUND))
    waiting = engine.submit_task(Task.create(name, params, TaskType.CPU_BOUND))
    gate.wait()
    assert engine.status_of(running) is TaskStatus.RUNNING
    assert engine.status_of(waiting) is TaskStatus.PENDING
    assert set(engine.pending_tasks) == {running, waiting}
    with pytest.raises(TimeoutError, match=running):
        engine.get_result(running, 0)
    assert engine.cancel(waiting)
    assert engine.cancel(running)
    assert [engine.get_result(one, 30).status for one in (running, waiting)] == [TaskStatus.CANCELLED] * 2
    assert not engine.cancel(running)
    assert engine.pending_tasks == {}


def test_the_six_answers_differ(make_engine, script, gate):
    engine = make_engine(result_count=4, spill_bytes=0)
    held = script("held.py", "from tests.compute import jobs\nresult = jobs.hold(params['started'], params['gate'])\n")
    params = {"started": gate.started, "gate": gate.path}

    def ended(name, given=None, **options):
        return engine.submit_task(Task.create(name, given, TaskType.CPU_BOUND, 0, **options))

    expired = ended(script("fine.py", "result = 1\n"))
    engine.get_result(expired, 30)
    late = ended(held, params, timeout_seconds=0.3)
    crashed = ended(script("crash.py", "import os\nos._exit(9)\n"))
    failed = ended(script("fail.py", "1 / 0\n"))
    assert [engine.get_result(one, 30).status.value for one in (late, crashed, failed)] == [
        "TIMED_OUT",
        "CRASHED",
        "FAILED",
    ]
    cancelled = ended(held, params)
    eventually(lambda: engine.cancel(cancelled))
    assert engine.get_result(cancelled, 30).status is TaskStatus.CANCELLED
    assert crashed in engine.get_result(crashed).error
    for wrong, word in ((expired, "dropped"), ("nobody", "never submitted")):
        with pytest.raises(NotFound, match=word):
            engine.get_result(wrong)


async def test_task_is_awaited(engine, script):
    result = await engine.run(Task.create(script("awaited.py", "result = params['a']\n"), {"a": 3}))
    assert result.data == 3


def test_components_count_and_say_how_they_are(make_engine, script):
    engine = make_engine()
    task_id = engine.submit_task(Task.create(script("one.py", "result = 1\n"), task_type=TaskType.CPU_BOUND))
    engine.get_result(task_id, 30)
    metrics = engine.metrics()
    assert (metrics["input_queue"]["total_put"], metrics["input_queue"]["total_dropped"]) == (1, 0)
    assert (metrics["output_queue"]["total_put"], metrics["output_queue"]["total_get"]) == (1, 1)
    assert metrics["thread_pool"]["active_count"] == 0
    assert metrics["workers"]["cpu-0"]["total_done"] == 1
    assert engine.status() == {
        "input_queue": "accepting",
        "output_queue": "holding",
        "process_pool": "running",
        "thread_pool": "idle",
        "cpu-0": "idle",
    }
    assert os.getpid() != metrics["workers"]["cpu-0"]["pid"]
