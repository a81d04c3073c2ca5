"""What is in deploy/: each file is checked by its own tool where that is there, and against the settings always."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ulak.settings import Settings, load

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "ulak"
LIMIT_SECONDS = 60


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)


def test_the_dockerfile_has_no_complaint_of_its_linter():
    done = run(str(Path(sys.executable).with_name("hadolint")), str(DEPLOY / "Dockerfile"))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_unit_has_no_complaint_of_systemd(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here; on Debian: apt-get install systemd")
    text = (DEPLOY / "ulak.service").read_text(encoding="utf-8")
    assert "ExecStart=/usr/local/lib/ulak/bin/ulak serve" in text
    (tmp_path / "ulak.service").write_text(text.replace("/usr/local/lib/ulak/bin/ulak", "/bin/true"))  # which is here
    done = run("systemd-analyze", "verify", str(tmp_path / "ulak.service"))
    assert done.returncode == 0, done.stderr
    assert "ulak.service" not in done.stderr


def settings_in_files():
    for file in (DEPLOY / "Dockerfile", DEPLOY / "compose.yaml", DEPLOY / "ulak.service"):
        for name, value in re.findall(r"\b(ULAK_[A-Z_]+)[=:] ?([^\s\\]+)", file.read_text(encoding="utf-8")):
            yield file.name, name, value


def test_every_setting_that_a_file_names_is_one(monkeypatch):
    found = list(settings_in_files())
    assert len(found) >= 8
    for file in {file for file, _, _ in found}:
        with monkeypatch.context() as here:
            for _, name, value in [one for one in found if one[0] == file]:
                here.setenv(name, value.replace("${POSTGRES_PASSWORD:-ulak}", "ulak"))
            assert isinstance(load().settings, Settings)


def test_a_stop_is_given_the_time_that_it_takes():
    worker = Settings().worker
    seconds = worker.stop_grace_seconds + worker.stop_cancel_seconds
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    unit = re.search(r"TimeoutStopSec=(\d+)", (DEPLOY / "ulak.service").read_text(encoding="utf-8"))
    assert int(compose["services"]["server"]["stop_grace_period"].rstrip("s")) > seconds
    assert values["terminationGracePeriodSeconds"] > seconds
    assert int(unit[1]) > seconds


def test_compose_has_a_server_workers_postgresql_and_kafka():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"postgres", "kafka", "migrate", "server", "worker"}
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
    assert services["migrate"]["command"] == ["db", "migrate"]


def test_a_template_of_the_chart_asks_only_for_values_that_there_are():
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["name"] == "ulak"
    asked = set()
    for template in (CHART / "templates").iterdir():
        text = template.read_text(encoding="utf-8")
        assert re.findall(r"{{[^}]*(?:{{|$)", text) == [], template.name
        assert len(re.findall(r"{{-? (?:if|range|define|with)", text)) == len(re.findall(r"{{-? end", text))
        asked |= set(re.findall(r"\.Values\.([\w.]+)", text))
    for path in asked:
        place = values
        for part in path.split("."):
            assert part in place, path
            place = place[part]


def test_the_chart_renders():
    if shutil.which("helm") is None:
        pytest.skip("helm is not here; it renders the chart: helm template deploy/helm/ulak")
    done = run("helm", "template", "ulak", str(CHART))
    assert done.returncode == 0, done.stderr
    kinds = sorted(one["kind"] for one in yaml.safe_load_all(done.stdout) if one)
    assert kinds == ["Deployment", "Deployment", "Job", "Service"]
