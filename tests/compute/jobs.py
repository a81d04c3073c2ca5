"""Functions that the tests run on workers, in a module of their own, so that workers can import it."""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

from ulak.compute.worker.framing import Frames


def echo(value=None):
    return value


def add(left, right=0):
    return left + right


def fail(message="no"):
    raise ValueError(message)


def pid():
    return os.getpid()


def pid_of(_):
    return os.getpid()


def size_of(value):
    return value.nbytes if hasattr(value, "nbytes") else len(value)


def first_of(values):
    return values[0]


def add_one_after_a_crash(array, marker):
    """Change the argument in place, crash; the second run must not see the change."""
    array += 1
    if not Path(marker).exists():
        Path(marker).touch()
        kill_self()
    return array[0]


def keep(array, path):
    _arrays[path] = array


def keep_in_a_fork(array, path):
    """A child that outlives its task and looks at the argument only when it is asked to."""
    if os.fork() == 0:
        while not Path(f"{path}.asked").exists():
            threading.Event().wait(0.01)
        _write_whole(path, array[0])
        os._exit(0)


def report_kept(path):
    if path in _arrays:
        _write_whole(path, _arrays[path][0])
    Path(f"{path}.asked").touch()


def _write_whole(path, value):
    Path(f"{path}.new").write_text(str(value))
    Path(f"{path}.new").rename(path)


_arrays = {}


def environment(name):
    return os.environ.get(name)


def touch(path):
    Path(path).touch()
    return os.getpid()


def hold(started, gate, value=None):
    """Say that we run, then wait until the test opens the gate (a named pipe)."""
    Path(started).write_text(str(os.getpid()))
    Path(gate).read_bytes()
    return value


def hold_at(gate, notes=None):
    """With a gate, wait there; without, make a note if there is a file for it."""
    if gate is not None:
        hold(*gate)
    elif notes is not None:
        append_line(notes, "done")


def hold_deaf(started, gate):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return hold(started, gate)


def hold_with_child(started, gate):
    """A task with a process of its own, which must not outlive it."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(started).write_text(str(child.pid))
    Path(gate).read_bytes()


def append_line(path, line):
    with Path(path).open("a") as file:  # one small write in append mode is atomic
        file.write(f"{line}\n")
    return line


def note_then(path, line, action):
    append_line(path, line)
    return action()


def meet(barrier_directory, me, count):
    """Return only when `count` tasks are here at once."""
    Path(barrier_directory, str(me)).touch()
    deadline = time.monotonic() + 20
    while len(list(Path(barrier_directory).iterdir())) < count:
        if time.monotonic() > deadline:
            raise TimeoutError("the others did not come")
        threading.Event().wait(0.002)
    return me


def linger(seconds):
    """A task that takes its time."""
    threading.Event().wait(seconds)
    return seconds


def linger_long():
    return linger(60)


def exit_python():
    sys.exit(3)


def exit_c():
    os._exit(3)


def abort():
    signal.signal(signal.SIGABRT, signal.SIG_DFL)
    os.abort()


def segfault():
    ctypes.string_at(0)


def memory_error():
    raise MemoryError("none left")


def kill_self():
    os.kill(os.getpid(), signal.SIGKILL)


def crash_once(marker):
    """Kill the worker the first time, succeed the second."""
    if not Path(marker).exists():
        Path(marker).touch()
        kill_self()
    return "second time"


def set_value(name, value):
    os.environ[name] = value


def a_lock():
    """A thing that nothing can pickle."""
    return threading.Lock()


class Bomb:
    """Does something bad at one of the four moments of an argument's or result's life."""

    def __init__(self, action, when):
        self.action, self.when = action, when

    def __reduce__(self):
        if self.when == "pickle":
            self.action()
        return _explode, (self.action, self.when)


def _explode(action, when):
    if when == "unpickle":
        action()
    return Bomb(action, "never")


def unpickle_error():
    raise RuntimeError("cannot be unpickled")


def make_bomb(action, when):
    return Bomb(action, when)


class Stubborn(Exception):
    """An exception that pickles but does not unpickle."""

    def __init__(self, one, two):
        super().__init__(one)
        self.two = two


def raise_stubborn():
    raise Stubborn("a", "b")


class UnpicklesNowhereElse:
    """Loads in the worker, not in the process with the given number: the parent."""

    def __init__(self, parent):
        self.parent = parent

    def __reduce__(self):
        return _only_elsewhere, (self.parent,)


def _only_elsewhere(parent):
    if os.getpid() == parent:
        raise RuntimeError("not in the parent")
    return UnpicklesNowhereElse(parent)


def result_for_parent(parent):
    return UnpicklesNowhereElse(parent)


def die_after_return(action):
    """The outcome is sent, and perhaps not yet read, when the worker ends."""
    threading.Thread(target=act_when_waiting, args=(threading.get_ident(), action)).start()
    return "returned"


def act_when_waiting(worker_thread, action):
    """Once the worker waits for its next task."""
    while sys._current_frames()[worker_thread].f_code is not Frames.receive.__code__:
        time.sleep(0.001)
    action()


def start_engine_and_hold(directory):
    """The whole life of a parent that will be killed: an engine with a task that has a child of its own."""
    from ulak.compute import Engine

    with Engine(cpu_workers=2) as engine:
        future = engine.submit(hold_with_child, f"{directory}/started", f"{directory}/gate")
        pids = [worker["pid"] for worker in engine.metrics()["workers"].values()]
        Path(directory, "parent").write_text(" ".join(map(str, pids)))
        future.result()


def grow(megabytes):
    _kept.append(bytearray(megabytes << 20))
    return os.getpid()


_kept: list[bytearray] = []


def prepare(name, value):
    os.environ[name] = value


def crash_or_hold(action, started, gate):
    return action() if gate is None else hold(started, gate, "innocent")


def work_a_little(number):
    total = 0
    for value in range(number % 7 * 50):
        total += value
    return number


def close_everything():
    os.closerange(3, 256)


def scribble():
    """Write nonsense into every socket that we have: one of them is the worker's own pipe."""
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.write(descriptor, b"\x02\0\0\0\0\0\0\0??" * 10)
        except OSError:
            continue
    threading.Event().wait(20)
