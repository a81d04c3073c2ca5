"""Apache Kafka in KRaft mode, from Maven: `make kafka` runs the suite of the buses on it; tests kill and restart it.

As a program it looks for Java 17 and Maven, resolves the jars into a folder outside the tree, and starts pytest.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VERSION = "3.9.1"
JARS = "ULAK_TEST_KAFKA_JARS"
NAMED = "ULAK_TEST_KAFKA"
START_SECONDS = 90.0
_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>ulak</groupId><artifactId>kafka-for-tests</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
num.partitions=4
offsets.topic.replication.factor=1
offsets.topic.num.partitions=5
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class ApacheKafka:
    """One broker that is its own controller."""

    def __init__(self, jars: str) -> None:
        self._jars = jars
        self._folder = Path(tempfile.mkdtemp(prefix="ulak-kafka-"))
        port, controller = _free_ports(2)
        self.servers = [f"127.0.0.1:{port}"]
        self._config = self._folder / "server.properties"
        self._config.write_text(_PROPERTIES.format(port=port, controller=controller, folder=self._folder))
        self._java("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(self._config)).wait()
        self.up()

    def up(self) -> None:
        self._process = self._java("kafka.Kafka", str(self._config))
        self._wait()

    def down(self) -> None:
        """As a power cut: it gets no chance to say goodbye."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.down()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _java(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["java", "-Xmx512m", "-cp", f"{self._jars}/*", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _wait(self) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.servers[0], "log_level": 0})
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                admin.list_topics(timeout=2)
                return
            except KafkaException:
                assert time.monotonic() < end, "Kafka does not start"
                assert self._process.poll() is None, "Kafka has ended at once"


def _free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _missing() -> list[str]:
    """What this machine lacks, in words for a person."""
    missing = []
    java = shutil.which("java")
    found = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr if java else ""
    version = re.search(r'version "(\d+)', found)
    if version is None or int(version[1]) < 17:
        missing.append("Java 17 or newer (java)")
    if shutil.which("mvn") is None:
        missing.append("Maven (mvn)")
    return missing


def _resolve() -> Path:
    """The jars, by Maven, once; outside the tree."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "ulak" / f"kafka-{VERSION}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(_POM)
        copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={folder}/jars"]
        subprocess.run(copy, cwd=folder, check=True)
        (folder / "complete").touch()
    return folder / "jars"


def main() -> int:
    environment = dict(os.environ)
    if NAMED not in environment:
        missing = _missing()
        if missing:
            print(f"make kafka needs {' and '.join(missing)}, or {NAMED}=host:port for a Kafka that runs already")
            return 1
        environment[JARS] = str(_resolve())
    return subprocess.run([sys.executable, "-m", "pytest", "tests/buses"], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
