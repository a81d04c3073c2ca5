"""`make build`: the wheel has every file of the package, installs into an empty environment, and runs there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import urllib.request
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT_SECONDS = 300


def check_files(wheel: Path) -> int:
    """SQL, templates and the console's assets are data, and easily left out."""
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    files = [file for file in (source / "ulak").rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    missing = sorted(str(file.relative_to(source)) for file in files if str(file.relative_to(source)) not in names)
    if missing:
        sys.exit(f"{wheel.name} lacks {', '.join(missing)}; see package-data in pyproject.toml")
    return len(files)


def check_runs(wheel: Path, folder: Path) -> None:
    venv.create(folder / "venv", with_pip=True)
    binaries = folder / "venv" / "bin"
    pins = ROOT / "requirements" / "run.txt"
    run([binaries / "pip", "install", "--quiet", "--constraint", pins, wheel], folder)
    told = run([binaries / "ulak", "notify", "send", "IN_APP", "ayse", "Merhaba"], folder)
    assert "ACCEPTED" in told, told
    server = subprocess.Popen(
        [binaries / "ulak", "serve", "--set", "http.port=0"], cwd=folder, env=clean(), stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr is not None
        address = next(line.split()[2] for line in server.stderr if line.startswith("Ulak serves"))
        for path in ("/docs", "/openapi.json", "/console/"):
            with urllib.request.urlopen(address + path, timeout=30) as answer:
                assert answer.status == 200, path
        told = run([binaries / "ulak", "status"], folder)
        assert "none lost" in told, told
    finally:
        server.terminate()
        server.communicate(timeout=LIMIT_SECONDS)


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("ULAK_", "PYTHON"))}


def run(words: list[str | Path], folder: Path) -> str:
    done = subprocess.run(
        words, cwd=folder, env=clean(), capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr or done.stdout}")
    return done.stdout


def main() -> None:
    [wheel] = [Path(word).resolve() for word in sys.argv[1:]]
    number = check_files(wheel)
    with tempfile.TemporaryDirectory() as folder:
        check_runs(wheel, Path(folder))
    print(f"{wheel.name}: {number} files, and it installs and runs in an empty environment.")


if __name__ == "__main__":
    main()
