"""Archives in an S3 bucket, over the protocol: a small server that knows the calls that are used."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ulak.changes.storehouse import Storehouse
from ulak.errors import NotFound, Unavailable


class Bucket(BaseHTTPRequestHandler):
    """Objects by path, in the server's `objects`; other calls are not implemented."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.headers["Authorization"].startswith("AWS4-HMAC-SHA256")
        self.server.objects[self.path] = body
        self._answer(200, b"", body)

    def do_GET(self):
        body = self.server.objects.get(self.path)
        self._answer(404, b"") if body is None else self._answer(200, body, body)

    do_HEAD = do_GET  # noqa: N815

    def do_DELETE(self):
        self.server.objects.pop(self.path, None)
        self._answer(204, b"")

    def _answer(self, status: int, body: bytes, stored: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.md5(stored, usedforsecurity=False).hexdigest()}"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def bucket(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    server.objects = {}
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    for name, value in {
        "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{server.server_port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
    }.items():
        monkeypatch.setenv(name, value)
    yield server
    server.shutdown()
    server.server_close()
    thread.join(30)


def fresh(tmp_path, content: bytes):
    path = tmp_path / "fresh"
    path.write_bytes(content)
    return path


async def test_an_archive_goes_to_the_bucket_and_comes_back_on_another_machine(bucket, tmp_path):
    here = Storehouse(tmp_path / "here", "s3://lists/ulak/prod")
    await here.keep("einvoice", fresh(tmp_path, b"packed"), "a.xml.gz")
    assert bucket.objects == {"/lists/ulak/prod/einvoice/a.xml.gz": b"packed"}
    there = Storehouse(tmp_path / "there", "s3://lists/ulak/prod")
    assert (await there.find("einvoice", "a.xml.gz")).read_bytes() == b"packed"
    assert [path.name for path in (tmp_path / "there/archives/einvoice").iterdir()] == ["a.xml.gz"]
    await here.drop("einvoice", "a.xml.gz")
    assert bucket.objects == {}
    assert not here.path("einvoice", "a.xml.gz").exists()


async def test_a_bucket_that_lacks_the_file_is_told_as_such(bucket, tmp_path):
    with pytest.raises(Unavailable, match="can't be brought from its bucket"):
        await Storehouse(tmp_path, "s3://lists").find("einvoice", "a.xml.gz")


async def test_without_a_bucket_a_lost_file_is_gone(tmp_path):
    house = Storehouse(tmp_path, "")
    await house.keep("einvoice", fresh(tmp_path, b"packed"), "a.xml.gz")
    assert (await house.find("einvoice", "a.xml.gz")).read_bytes() == b"packed"
    await house.drop("einvoice", "a.xml.gz")
    with pytest.raises(NotFound, match="the next sync with changes writes a new one"):
        await house.find("einvoice", "a.xml.gz")


async def test_a_sync_keeps_its_archives_in_the_bucket(bucket, make):
    async with make(changes__archive_url="s3://lists") as desk:
        await desk.publish(range(1, 4))
        row = await desk.room.feeds.archive("einvoice", None)
        assert f"/lists/einvoice/{row.name}" in bucket.objects
