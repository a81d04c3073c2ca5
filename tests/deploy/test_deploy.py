"""What is in deploy/: each file is checked by its own tool where that is there, and against the settings always."""

from __future__ import annotations

import re

import yaml

from tests.deploy.tool import DEPLOY, ROOT, run
from ulak.settings import Settings, load

CHART = DEPLOY / "helm" / "ulak"


def test_the_dockerfile_has_no_complaint_of_its_linter():
    done = run("hadolint", str(DEPLOY / "Dockerfile"))
    assert done.stdout + done.stderr == ""


def test_the_unit_has_no_complaint_of_systemd(tmp_path):
    text = (DEPLOY / "ulak.service").read_text(encoding="utf-8")
    assert "ExecStart=/usr/local/lib/ulak/bin/ulak serve" in text
    (tmp_path / "ulak.service").write_text(text.replace("/usr/local/lib/ulak/bin/ulak", "/bin/true"))  # which is here
    done = run("systemd-analyze", "verify", str(tmp_path / "ulak.service"))
    assert "ulak.service" not in done.stderr


def test_the_settings_file_can_be_read_by_the_user_that_systemd_makes():
    """That user is nobody whom a file of root's could belong to, so what the page installs is open to all."""
    page = (ROOT / "docs" / "howto" / "deploy.md").read_text(encoding="utf-8")
    assert "DynamicUser=yes" in (DEPLOY / "ulak.service").read_text(encoding="utf-8")
    (mode,) = re.findall(r"install -D -m (\d+) ulak.toml /etc/ulak/ulak.toml", page)
    assert int(mode, 8) & 0o004


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


def rendered(*changes):
    done = run("helm", "template", "ulak", str(CHART), *(f"--set={change}" for change in changes))
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def containers(objects):
    return [one["spec"]["template"]["spec"]["containers"][0] for one in objects if "template" in one["spec"]]


def test_the_chart_has_no_complaint_of_helm():
    assert "[WARNING]" not in run("helm", "lint", "--strict", str(CHART)).stdout


def test_the_chart_renders():
    assert sorted(one["kind"] for one in rendered()) == ["Deployment", "Deployment", "Job", "Service"]
    kinds = rendered("migrate=false", "worker.kinds={notify.*,compute.*}")
    assert sorted(one["kind"] for one in kinds) == ["Deployment", "Deployment", "Service"]
    (worker,) = [one for one in containers(kinds) if one["args"][0] == "worker"]
    assert worker["args"] == ["worker", "--kinds=notify.*", "--kinds=compute.*"]


def test_every_setting_of_the_chart_is_one_and_a_service_finds_its_pods(monkeypatch):
    objects = rendered("settings.ULAK_HTTP__PORT=9000")
    for container in containers(objects):
        with monkeypatch.context() as here:
            for one in container["env"]:
                here.setenv(one["name"], one["value"])
            assert load().settings.http.port == 9000
    (service,) = [one for one in objects if one["kind"] == "Service"]
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in objects if one["kind"] == "Deployment"]
    assert [service["spec"]["selector"].items() <= found.items() for found in labels].count(True) == 1
