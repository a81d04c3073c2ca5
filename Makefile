# Needs only Python 3.11 or newer and make. Everything else goes into .venv, from the pins in requirements/.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
# Tests wait more than they compute: on two cores four processes took 13:41 minutes where two took 17:22.
TEST_PROCESSES ?= 4

.PHONY: help setup run test browser tools shots check bench crash kafka format docs site build lock clean

help:  ## This list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

setup: $(VENV)/.ready  ## Build .venv from the pins

run: $(VENV)/.run-ready  ## Start Ulak on SQLite with a simulated town to watch
	$(BIN)/ulak serve --demo

test: check  ## All checks, then all tests
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) tests

# Debian's Chromium; where one is there already this does nothing, also offline.
CHROMIUM := $(firstword $(foreach name,chromium chromium-browser google-chrome,$(shell command -v $(name))))

browser:  ## Get the Chromium that the tests of pages need
ifneq ($(CHROMIUM),)
	@echo "$(CHROMIUM) is here already"
else ifeq ($(shell id -u),0)
	apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium
else
	@echo "sudo apt-get update && sudo apt-get install -y chromium"
endif

tools: .tools/helm .tools/promtool  ## Get the tools that check deploy/: helm by Go, promtool from Debian's package

.tools/helm:
	GOBIN=$(CURDIR)/.tools go install helm.sh/helm/v3/cmd/helm@latest

.tools/promtool:
	rm -rf .tools/unpacked && mkdir -p .tools/unpacked
	cd .tools/unpacked && apt-get download prometheus && dpkg -x prometheus_*.deb . && mv usr/bin/promtool ..
	rm -rf .tools/unpacked

check: setup  ## Lint, format, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench-ready  ## Measure beside peers; prints one table and writes JSON
	$(BIN)/python -m bench

crash: setup  ## Kill real processes 1,000 times and count what was lost
	$(BIN)/python -m tests.crash
	$(BIN)/python -m tests.crash_http
	$(BIN)/python -m tests.crash_dispatch
	$(BIN)/python -m tests.crash_actions

kafka: setup  ## The buses' tests on Apache Kafka: needs Java 17 and Maven, or ULAK_TEST_KAFKA=host:port
	$(BIN)/python -m tests.buses.apache_kafka

format: setup  ## Rewrite the sources in the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup  ## Write the generated files again: ulak.default.toml and the settings page
	$(BIN)/ulak config default > ulak.default.toml
	$(BIN)/python -c 'from ulak.settings.document import reference; print(reference(), end="")' > docs/reference/settings.md

site: $(VENV)/.docs-ready  ## Build the documentation with search into site/; its pages ask nobody outside
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	! grep -rlE --include='*.html' '<(script|link)[^>]+(src|href)=.?https?://' site
	@echo "Read it: $(BIN)/python -m http.server --directory site"

build: setup  ## Build the source distribution and the wheel, and try the wheel in an empty environment
	rm -rf dist build
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m tests.wheel dist/*.whl

shots: setup browser  ## Take the docs' pictures of the console anew
	$(BIN)/python -m tests.browser.shots

# What `make run` needs, without the tools of tests and checks.
$(VENV)/.run-ready: requirements/run.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --progress-bar on --requirement requirements/run.txt
	$(PIP) install --quiet --no-deps --editable .
	touch $@

# The stamp is newer than the pins, so a second run has nothing to do here.
$(VENV)/.ready: requirements/lock.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --requirement requirements/lock.txt
	$(PIP) install --quiet --no-deps --editable .
	touch $@

$(VENV)/.docs-ready: $(VENV)/.ready requirements/docs.txt
	$(PIP) install --quiet --requirement requirements/lock.txt --requirement requirements/docs.txt
	touch $@

$(VENV)/.bench-ready: $(VENV)/.ready requirements/bench.txt
	$(PIP) install --quiet --requirement requirements/lock.txt --requirement requirements/bench.txt
	touch $@

# bench.txt holds only what the bench adds, so that the peers can't move a version that the tests ran with.
lock:  ## Resolve anew what pyproject.toml allows and write the pins
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --editable .
	.venv-lock/bin/python -m pip freeze --exclude-editable > requirements/run.txt
	.venv-lock/bin/python -m pip install --quiet --constraint requirements/run.txt --editable '.[test]'
	.venv-lock/bin/python -m pip freeze --exclude-editable > requirements/lock.txt
	.venv-lock/bin/python -m pip install --quiet --constraint requirements/lock.txt --editable '.[test,bench]'
	.venv-lock/bin/python -m pip freeze --exclude-editable | grep -vxFf requirements/lock.txt > requirements/bench.txt
	.venv-lock/bin/python -m pip install --quiet --constraint requirements/lock.txt --editable '.[test,docs]'
	.venv-lock/bin/python -m pip freeze --exclude-editable | grep -vxFf requirements/lock.txt | grep -vxFf requirements/bench.txt > requirements/docs.txt
	rm -rf .venv-lock

clean:  ## Remove everything that make built
	rm -rf $(VENV) .venv-lock .tools build dist site src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests bench -name __pycache__ -type d -exec rm -rf {} +
