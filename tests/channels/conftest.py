"""Real counterparts on loopback: mail servers that behave well or badly, webhook receivers, a throwaway certificate."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ulak.channels.channel import Message

Write = Callable[..., Message]


@pytest.fixture
def write() -> Write:
    """Writes a message; what matters to the test is given, the rest is filled in."""

    def write(recipient: str = "ada@example.org", **fields: Any) -> Message:
        return Message(
            **{
                "id": "0190a1b2-c3d4-8e5f-a6b7-756c616b0001",
                "notification_type": "EMAIL",
                "recipient": recipient,
                "subject": "Hello",
                "body": "Hello Ada",
                "created_millis": 1_800_000_000_123,
                "idempotency_key": "key-1",
                **fields,
            }
        )

    return write


@dataclass
class Certificate:
    cert_file: str
    key_file: str

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert_file, self.key_file)
        return context


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder = tmp_path_factory.mktemp("certificate")
    return _make_certificate(folder)


def _make_certificate(folder: Path) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.DNSName("hooks.example.org")]
    names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - dt.timedelta(days=1),
        not_valid_after=now + dt.timedelta(days=1),
    ).add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = builder.sign(key, hashes.SHA256())
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    return Certificate(str(cert_file), str(key_file))


@dataclass
class MailServer:
    """An aiosmtpd server. A test changes its replies, and reads what it took and how often it was dialled."""

    port: int = 0
    letters: list[Envelope] = field(default_factory=list)
    replies: dict[str, str] = field(default_factory=dict)
    drop_at: str | None = None
    greet: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0
    most_at_once: int = 0
    open: set[Any] = field(default_factory=set)
    all_closed: asyncio.Event = field(default_factory=asyncio.Event)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    senders: list[str] = field(default_factory=list)
    before_reply: Callable[[], Awaitable[None]] | None = None

    async def handle_MAIL(  # noqa: N802, the server's own name for it
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.senders.append(address)
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return self._reply(server, "MAIL")

    async def handle_RCPT(  # noqa: N802
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        reply = self._reply(server, "RCPT")
        if reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.before_reply is not None:
            await self.before_reply()
        reply = self._reply(server, "DATA")
        if reply.startswith("250"):
            self.letters.append(envelope)
        return reply

    async def handle_RSET(self, server: Any, session: Session, envelope: Envelope) -> str:  # noqa: N802
        return self._reply(server, "RSET")

    def _reply(self, server: Any, command: str) -> str:
        if self.drop_at == command:
            server.transport.abort()
        return self.replies.get(command, "250 OK")

    def log_in(self, server: Any, session: Session, envelope: Envelope, mechanism: str, auth: Any) -> AuthResult:
        assert isinstance(auth, LoginPassword)
        self.logins.append((auth.login, auth.password))
        return AuthResult(success=auth.password == b"correct", handled=False)


class _Protocol(SMTP):
    def __init__(self, mail_server: MailServer, **options: Any) -> None:
        super().__init__(mail_server, **options)
        self.mail_server = mail_server

    def connection_made(self, transport: Any) -> None:
        if self.transport is None:  # not the second time, after STARTTLS
            self.mail_server.connections += 1
            self.mail_server.open.add(self)
            self.mail_server.most_at_once = max(self.mail_server.most_at_once, len(self.mail_server.open))
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.mail_server.open.discard(self)
        if not self.mail_server.open:
            self.mail_server.all_closed.set()
        super().connection_lost(error)

    async def _handle_client(self) -> None:
        await self.mail_server.greet.wait()
        if greeting := self.mail_server.replies.get("greeting"):
            await self.push(greeting)
            self.transport.close()
            return
        await super()._handle_client()


MailServers = Callable[..., Awaitable[MailServer]]


@pytest.fixture
async def mail_server() -> AsyncIterator[MailServers]:
    """Starts a mail server; options go to aiosmtpd, `implicit_tls` takes a context for TLS from the first byte."""
    async with AsyncExitStack() as stack:

        async def start(implicit_tls: ssl.SSLContext | None = None, **options: Any) -> MailServer:
            return await stack.enter_async_context(_mail_server(implicit_tls, **options))

        yield start


@asynccontextmanager
async def _mail_server(implicit_tls: ssl.SSLContext | None, **options: Any) -> AsyncIterator[MailServer]:
    mail_server = MailServer()
    mail_server.greet.set()
    if options.get("auth_required"):
        options["authenticator"] = mail_server.log_in
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(
        lambda: _Protocol(mail_server, hostname="mail.test", loop=loop, **options), "127.0.0.1", 0, ssl=implicit_tls
    )
    mail_server.port = listener.sockets[0].getsockname()[1]
    yield mail_server
    listener.close()
    for protocol in list(mail_server.open):
        if protocol.transport is not None:
            protocol.transport.abort()
        if protocol._handler_coroutine is not None:
            protocol._handler_coroutine.cancel()
            with suppress(asyncio.CancelledError):
                await protocol._handler_coroutine


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """A webhook receiver on loopback. `/status/503` answers 503; other paths are answered by `answer`."""

    port: int = 0
    requests: list[Received] = field(default_factory=list)
    connections: set[Any] = field(default_factory=set)
    headers: dict[str, str] = field(default_factory=dict)
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.connections.add(request.transport)
        self.requests.append(Received(request.path, dict(request.headers), await request.read()))
        if request.path.startswith("/status/"):
            return web.Response(status=int(request.path.rpartition("/")[2]), headers=self.headers)
        assert self.answer is not None
        return await self.answer(request)


Receivers = Callable[..., Awaitable[Receiver]]


@pytest.fixture
async def receiver() -> AsyncIterator[Receivers]:
    async with AsyncExitStack() as stack:

        async def start(tls: ssl.SSLContext | None = None) -> Receiver:
            made = Receiver()
            app = web.Application()
            app.router.add_route("*", "/{rest:.*}", made.handle)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
            made.port = runner.addresses[0][1]
            return made

        yield start


@pytest.fixture(autouse=True)
def _no_proxy_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the environment must change nothing; every test runs with one that leads nowhere."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
