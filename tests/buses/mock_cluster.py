"""librdkafka's mock cluster in a process of its own: real protocol, no Java. Brokers go down and up on command.

Run as a program it prints its brokers, then obeys lines: `down 1`, `up 1`, `topic name parts`, `fail key error times`,
`refuse topic error` (0: it is well again).
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

BROKERS = 3
REBALANCE_MILLIS = 50  # the usual three seconds are for many members that come one after the other
_PRODUCER = 0


class MockCluster:
    """The other side's handle: start, command, stop."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.servers = self._answer().split(",")

    def tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        assert self._answer() == "ok"

    def down(self) -> None:
        for broker in range(1, BROKERS + 1):
            self.tell(f"down {broker}")

    def up(self) -> None:
        for broker in range(1, BROKERS + 1):
            self.tell(f"up {broker}")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the mock cluster has ended"
        return line


def _library() -> Any:
    """confluent-kafka's own copy, whose mock cluster its Python does not show."""
    import confluent_kafka

    [found] = Path(confluent_kafka.__file__).parent.parent.glob("confluent_kafka.libs/librdkafka-*.so*")
    library = ctypes.CDLL(str(found))
    library.rd_kafka_new.restype = ctypes.c_void_p
    library.rd_kafka_conf_new.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    return library


def serve() -> None:
    library = _library()
    text = ctypes.create_string_buffer(512)
    client = library.rd_kafka_new(_PRODUCER, ctypes.c_void_p(library.rd_kafka_conf_new()), text, 512)
    cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(ctypes.c_void_p(client), BROKERS))
    library.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, REBALANCE_MILLIS)
    print(library.rd_kafka_mock_cluster_bootstraps(cluster).decode(), flush=True)
    verbs = {
        "down": lambda broker: library.rd_kafka_mock_broker_set_down(cluster, int(broker)),
        "up": lambda broker: library.rd_kafka_mock_broker_set_up(cluster, int(broker)),
        "topic": lambda name, parts: library.rd_kafka_mock_topic_create(cluster, name.encode(), int(parts), 1),
        "refuse": lambda name, error: library.rd_kafka_mock_topic_set_error(cluster, name.encode(), int(error)),
        "fail": lambda key, error, times: library.rd_kafka_mock_push_request_errors(
            cluster, int(key), ctypes.c_size_t(int(times)), *[int(error)] * int(times)
        ),
    }
    for line in sys.stdin:
        verb, *words = line.split()
        verbs[verb](*words)
        print("ok", flush=True)


if __name__ == "__main__":
    serve()
