"""A wire between a client and PostgreSQL that can be cut at the one moment that matters: around a COMMIT."""

from __future__ import annotations

import contextlib
import re
import socket
import tempfile
import threading
from collections.abc import Iterator
from typing import Literal
from urllib.parse import parse_qs, urlsplit

SOCKET = ".s.PGSQL.5432"
_COMMIT = b"COMMIT\x00"
# An insert that is a transaction by itself needs no COMMIT: it is prepared under a name, then bound by that name.
_PREPARES_WHOLE = re.compile(rb"P.{4}(\w+)\x00WITH first AS", re.DOTALL)
_BINDS = re.compile(rb"B.{4}\x00(\w+)\x00", re.DOTALL)

Loss = Literal["the commit", "its reply"]


class LossyProxy:
    """Carries every byte, until it is told to lose the next commit or the reply to it; then it cuts that connection.

    `whole` counts the statements that were a transaction by themselves.
    """

    def __init__(self, address: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ulak-wire-")
        (server,) = parse_qs(urlsplit(address).query)["host"]
        self._server = f"{server}/{SOCKET}"
        self.address = address.replace(server, self._folder.name)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(f"{self._folder.name}/{SOCKET}")
        self._listening.listen()
        self._loss: Loss | None = None
        self.losses = 0
        self.whole = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, what: Loss) -> None:
        self._loss = what

    def close(self) -> None:
        for one in [self._listening, *self._open]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._open += [client, server]
                cut = threading.Event()
                threading.Thread(target=self._carry_up, args=(client, server, cut), daemon=True).start()
                threading.Thread(target=self._carry_down, args=(server, client, cut), daemon=True).start()

    def _carry_up(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        whole: set[bytes] = set()
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                whole.update(_PREPARES_WHOLE.findall(data))
                is_whole = not whole.isdisjoint(_BINDS.findall(data))
                self.whole += is_whole
                if (is_whole or _COMMIT in data) and self._loss is not None:
                    what, self._loss = self._loss, None
                    self.losses += 1
                    cut.set()
                    if what == "the commit":
                        break
                server.sendall(data)
        _end(client, server)

    def _carry_down(self, server: socket.socket, client: socket.socket, cut: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if cut.is_set():
                    break  # the server has answered: its work is done, and nobody hears of it
                client.sendall(data)
        _end(client, server)


def _end(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def lossy(address: str) -> Iterator[LossyProxy]:
    proxy = LossyProxy(address)
    try:
        yield proxy
    finally:
        proxy.close()
