# All paths are relative, so that a checkout in a folder with spaces works too.
.DEFAULT_GOAL := help
SHELL := /bin/sh

# Any Python may be named; one of the wrong version is refused with a message.
PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3.11)
PY := .venv/bin/python
# Set by `make test ARGS="tests/lake -x"` and the like.
ARGS ?=

.PHONY: help setup run airflow test test-fast fuzz simulate check docs lock clean clean-data replay-proof kill-proof \
  kill-random damage-proof spark-proof store-proof own-airflow-proof cluster-proof heavy-proof docker-proof \
  docker-image docker-run docker-stop report-proof thrift-proof

help: ## show this list
	@echo "Chainlake: event patterns and model changes in a data lake"
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' \
	  '{ name[NR] = $$1; text[NR] = $$2; if (length($$1) > width) width = length($$1) } \
	  END { for (i = 1; i <= NR; i++) printf "%-" width "s  %s\n", name[i], text[i] }'

# The stamp file makes a second call free; it is renewed when the lock file or the set-up code has changed.
.venv/.installed: requirements.txt pyproject.toml jobs/chainlake/env/setup.py jobs/chainlake/env/installer.txt
	@command -v $(firstword $(PYTHON)) >/dev/null || \
	  { echo "chainlake: there is no $(PYTHON). Name a Python 3.11: make PYTHON=/path/to/python3.11 setup" >&2; exit 5; }
	@$(PYTHON) jobs/chainlake/env/python_version.py
	@$(PYTHON) jobs/chainlake/env/setup.py .venv requirements.txt
	@touch $@

setup: .venv/.installed ## make .venv, check Java, the disk and the cache, make Java's class archive
	@$(PY) -m chainlake.env.doctor
	@$(PY) -m chainlake.lake.spark.cds

run: .venv/.installed ## the shipped days through Airflow, then a summary (ARGS="--source sensor --days 1")
	@$(PY) -m chainlake.local.run.demo $(ARGS)

airflow: .venv/.installed ## start Airflow and leave its page up until Ctrl-C
	@$(PY) -m chainlake.local.run.serve $(ARGS)

# Two processes. The tests of a file stay in one process, for their fixtures; so do the files that tests/conftest.py
# puts into one group, in the order it gives.
WORKERS ?= 2
PYTEST := $(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Compiled tests are kept, whatever the environment says: each process takes 12 seconds to compile them.
test test-fast: export PYTHONDONTWRITEBYTECODE :=

test: .venv/.installed ## all tests (ARGS="tests/lake -x" runs some, WORKERS=0 in one process)
	@$(PY) -m chainlake.env.doctor --quiet
	@$(PYTEST) $(ARGS)

test-fast: .venv/.installed ## the tests that start no JVM, no Airflow and take little time (ARGS as for test)
	@$(PYTEST) -q -m "not spark and not airflow and not slow" $(ARGS)

replay-proof: .venv/.installed ## three days daily and backfilled backwards by a real scheduler: same tables
	@$(PY) -m tests.proof.scheduler_replay

kill-proof: .venv/.installed ## kill -9 of drivers, tasks, scheduler, launcher at named points, recovery, same tables
	@CHAINLAKE_ALL_KILLS=1 $(PY) -m pytest -q -m kill_proof
	@$(PY) -m tests.proof.kill_points

kill-random: .venv/.installed ## kill -9 of steps by hand at random moments, tried again: same tables (ARGS="--kills 50")
	@$(PY) -m tests.proof.kill_anywhere $(ARGS)

damage-proof: .venv/.installed ## damage a lake in every way: check finds it, repair and the steps give the same tables
	@CHAINLAKE_ALL_DAMAGES=1 $(PY) -m pytest -q tests/check/test_damages.py $(ARGS)

spark-proof: .venv/.installed ## every test that Spark does, of the lake's port with all parameters (ARGS as for test)
	@CHAINLAKE_ALL_SPARK=1 $(PYTEST) -m spark $(ARGS)

store-proof: .venv/.installed ## a lake in an object store, races, kills, the store away: same tables as on a disk
	@$(PY) -m tests.proof.store_proof $(ARGS)

own-airflow-proof: .venv/.installed ## a shipped day in an Airflow of its own: our wheel, a PostgreSQL, LocalExecutor
	@$(PY) -m tests.proof.own_airflow $(ARGS)

cluster-proof: .venv/.installed ## a Spark master and two workers: same tables; workers that see no folder are refused
	@$(PY) -m tests.proof.cluster_proof $(ARGS)

heavy-proof: .venv/.installed ## a hot key and a function of pairs on two Spark workers, one of which is killed
	@$(PY) -m tests.proof.hot_keys $(ARGS)

docker-proof: .venv/.installed ## the shipped days in containers, down and up, kills, a store: same tables (as root)
	@$(PY) -m tests.proof.containers $(ARGS)

# Any Compose that supports conditions of `depends_on`: Docker's plugin, or docker-compose.
COMPOSE ?= docker compose
# With STORE=1, tables and landed files are kept in an object store, which is one of the services.
STORE ?=
SERVICES := $(COMPOSE) --project-name chainlake --file docker/compose.yaml \
  $(if $(STORE),--env-file docker/store.env --profile store)
# Where the image's two JARs are fetched from when it is built.
MAVEN_REPOSITORY ?= https://repo1.maven.org/maven2

docker-image: ## the image of docker/Dockerfile
	@docker build --file docker/Dockerfile --build-arg MAVEN_REPOSITORY=$(MAVEN_REPOSITORY) --tag chainlake:0.1.0 .

docker-run: docker-image ## the shipped days in containers, then a summary (ARGS="--source sensor --days 1")
	@docker/secrets.sh
	@$(SERVICES) up --detach
	@$(SERVICES) exec -T api-server python -m chainlake.local.run.elsewhere --passwords /run/secrets/airflow_passwords $(ARGS)

docker-stop: ## stop the containers; volumes stay (ARGS=--volumes removes them, and with them the lake)
	@$(SERVICES) down $(ARGS)

report-proof: .venv/.installed ## the report of the shipped data in a real browser without a network (needs chromium)
	@$(PY) -m tests.proof.report_pages $(ARGS)

thrift-proof: .venv/.installed ## the commands of docs/readers.md for a server for JDBC and ODBC, on a shipped day
	@$(PY) -m tests.proof.thrift_server

fuzz: .venv/.installed ## random patterns on both backends, and damaged files (ARGS="--seconds 600 --files 10000")
	@$(PY) -m tests.fuzz $(ARGS)

# A history without Spark takes seconds; with SPARK=1, Spark does the work, and a history takes a minute or more.
SEEDS ?= 20
FIRST ?= 1
SPARK ?=
simulate: .venv/.installed ## random histories against clean runs (SEEDS=200 FIRST=1; SPARK=1: on real Spark)
	@$(PY) -m tests.replay --seeds $(SEEDS) --first $(FIRST) $(if $(SPARK),,--light) $(ARGS)

check: .venv/.installed ## ruff, its formatter, import contracts, mypy, the files of docker/
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check --quiet .
	@.venv/bin/lint-imports --no-cache
	@$(PY) -m mypy
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.compose-spec docker/compose.yaml
	@.venv/bin/hadolint docker/Dockerfile

docs: .venv/.installed ## make docs/tables.md from the table definitions in schemas/
	@$(PY) -m chainlake.schemas.documents.page docs/tables.md

# For every platform, with the hashes of all files of a release, so that the lock file works wherever a wheel exists.
LOCK := -m uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links \
  --custom-compile-command "make lock" --python-version 3.11

lock: .venv/.installed ## compile the lock files, with hashes, from requirements.in and those of installer and image
	@$(PY) $(LOCK) requirements.in --output-file requirements.txt
	@$(PY) $(LOCK) --no-annotate --constraints requirements.txt docker/requirements.in --output-file docker/requirements.txt
	@$(PY) $(LOCK) --no-annotate --constraints requirements.txt docker/build.in --output-file docker/build.txt
	@$(PY) $(LOCK) jobs/chainlake/env/installer.in --output-file jobs/chainlake/env/installer.txt

clean: ## remove .venv and caches of the tools; landed files and lake stay
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name .chainlake -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# Landed files may be the only copy, so one word does not remove them. Homes that CHAINLAKE_HOME names are left alone.
YES ?=
clean-data: ## remove .chainlake: landed files, lake, Airflow's database, report (needs YES=1)
	@test "$(YES)" = 1 || \
	  { echo "chainlake: this removes $(CURDIR)/.chainlake, with landed files and lake. Confirm: make clean-data YES=1" >&2; \
	    exit 2; }
	@rm -rf .chainlake
	@echo "removed $(CURDIR)/.chainlake"
