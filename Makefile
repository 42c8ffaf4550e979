# Needs Python >= 3.11 and make. A working python3.13 is preferred; `make PYTHON=... run` chooses
# another version. Environments are created from the hashed locks in infra/environments, and again when
# a lock changes. A python3.13 writes the bytecode for Lambda; `make PYTHON313=... build` names one that
# is not on PATH.
PYTHON ?=
PYTHON313 ?=
TARGET ?= lambda
export PYTHON PYTHON313 TARGET SAM_CLI_TELEMETRY=0
# Without cached bytecode, every test process compiles all that it imports, which takes half of a test
# file's time.
unexport PYTHONDONTWRITEBYTECODE

environments := infra/environments
install := $(environments)/install
# Only wheels are installed, because an sdist would run its own code during installation.
locked := --require-hashes --only-binary :all: --requirement
in_parallel := $(MAKE) --no-print-directory -j2
# Tests of one file share fixtures, so they stay in one process. Tests with processes and stores spend
# much of their time waiting, so three run on two cores; the longest start first.
on_all_cores := -p xdist.plugin --numprocesses logical --dist loadgroup --no-loadscope-reorder
with_waits := -p xdist.plugin --numprocesses $$(($$(nproc 2>/dev/null || echo 2) + 1)) --dist loadgroup --no-loadscope-reorder
of_processes := tests/artefact tests/browser tests/functional tests/contract tests/infra tests/conformance tests/live tests/hostile
each_night := -m 'nightly or hypothesis' --hypothesis-profile night
# These tests run with only a function's dependencies, and fail if a provider imports a development
# library. Other functional tests are left out, because their conftest imports such libraries.
of_providers := tests/unit/providers tests/functional/providers
without_dev := -p tests.conftest --confcutdir tests/functional/providers
# The command line needs these, and no function does.
of_commands := click markdown-it-py mdurl pygments pyyaml rich
uv_compile := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command "make lock" $(LOCK_ARGS)

dist := dist
# The bill of materials contains no time and no random number, so it is the same for the same lock.
bill := PYTHONWARNINGS=ignore .tools/supply/bin/cyclonedx-py requirements --pyproject pyproject.toml --mc-type application \
	--spec-version 1.6 --output-reproducible --of JSON --validate

checks := check-types check-style check-tidy
tools := $(patsubst %,.tools/%/stamp,ministack sam functions supply node)

.DEFAULT_GOAL := help
.PHONY: help run test test-nightly unit soak soak-ledger bench compare scale check check-types check-style check-providers check-tidy fmt build deploy account-check smoke dist wheels site sbom audit lock clean always
.DELETE_ON_ERROR:
.PRECIOUS: .tools/%/made-from

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s%s\n", $$1, $$2 }' Makefile

run: ## Serve the gateway on this machine (DEV=... for options); the first time, install it too
	@$(in_parallel) .venv/run.stamp .tools/ministack/stamp
	@exec .venv/bin/tollgate dev $(DEV)

# The type checker uses one core for over a minute, while the other core installs and tests.
test: ## Run every check, and every test that is not nightly
	+@$(in_parallel) check-types $(tools) check-style unit check-providers
	.venv/bin/python -m pytest -q $(with_waits) $(of_processes) $(addprefix --ignore ,$(of_providers))

test-nightly: .venv/dev.stamp $(tools) .tools/site/stamp ## Run the tests that `make test` leaves out, and properties with more examples
	.venv/bin/python -m pytest -q $(with_waits) $(each_night) $(of_processes) tests/unit

unit: .venv/dev.stamp ## Run the unit tests, on all cores, without those of providers
	.venv/bin/python -m pytest -q $(on_all_cores) tests/unit $(addprefix --ignore ,$(of_providers))

soak: .venv/dev.stamp .tools/ministack/stamp ## Load two processes for an hour, with faults (SOAK_S=3600, RATE=6, SEED=16)
	@PYTHONPATH=functions .venv/bin/python -m tests.soak $(or $(SOAK_S),3600) $(or $(RATE),6) $(or $(SEED),16)

soak-ledger: .venv/dev.stamp .tools/ministack/stamp ## Run the ledger's fault test for longer (SOAK_S=300)
	TOLLGATE_SOAK_S=$(or $(SOAK_S),300) .venv/bin/python -m pytest -s -m nightly tests/contract/test_faults.py -k bad_year

bench: .venv/dev.stamp .tools/ministack/stamp ## Measure beside a bare pass-through (FIGURE=..., ROUNDS=..., PROFILE=..., AGAINST=commit)
	@PYTHONPATH=functions .venv/bin/python -m bench $(if $(FIGURE),--figure $(FIGURE)) \
		$(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(PROFILE),--profile $(PROFILE)) \
		$(if $(AGAINST),--against $(AGAINST))

compare: .venv/dev.stamp .tools/ministack/stamp .tools/litellm/stamp .tools/portkey/stamp ## Measure next to LiteLLM and Portkey from their registries (ROUNDS=...)
	@PYTHONPATH=functions .venv/bin/python -m bench.compare $(if $(ROUNDS),--rounds $(ROUNDS))

scale: .venv/dev.stamp .tools/ministack/stamp ## Measure how cost grows with keys, workspaces, records, models, requests (PART=...)
	@PYTHONPATH=functions .venv/bin/python -m bench.scale $(if $(PART),--part $(PART))

check: ## Run the linter, the type checker and the tidy test
	@$(in_parallel) $(checks)

check-types: .venv/dev.stamp
	.venv/bin/mypy

check-style: .venv/dev.stamp
	.venv/bin/ruff check --quiet
	.venv/bin/ruff format --quiet --check

check-providers: .tools/functions/stamp ## Test the providers with the dependencies of a function
	.tools/functions/bin/python -m pytest -q $(without_dev) $(of_providers)

check-tidy: .venv/dev.stamp
	.venv/bin/python -m pytest -q tests/unit/test_tidy.py

fmt: .venv/dev.stamp ## Format the code and mend what the linter can
	.venv/bin/ruff format
	.venv/bin/ruff check --fix

build: ## Build the functions for Lambda into .aws-sam/build (TARGET=host: for this machine, beside it)
	@$(in_parallel) .venv/run.stamp .tools/sam/stamp
	@.venv/bin/tollgate build --target "$(TARGET)"

deploy: ## Build and deploy (STAGE=prod for another stack; REGION=... the first time)
	@$(in_parallel) .venv/run.stamp .tools/sam/stamp
	@.venv/bin/tollgate deploy "$(or $(STAGE),default)" --region "$(REGION)" --email "$(EMAIL)"

account-check: .venv/run.stamp ## Ask a stack what only an account shows (STAGE=..., CHECK=--json), with TOLLGATE_API_KEY
	@.venv/bin/python -m infra.account_check "$(or $(STAGE),default)" $(CHECK)

smoke: .venv/dev.stamp ## Run the OpenAI SDK against a stack (STACK=..., or URL=...), with TOLLGATE_API_KEY
	@TOLLGATE_SMOKE_STACK="$(or $(STACK),tollgate)" TOLLGATE_SMOKE_URL="$(URL)" \
		TOLLGATE_SMOKE_MODEL="$(MODEL)" .venv/bin/python -m pytest tests/live/test_smoke.py

site: .venv/run.stamp .tools/site/stamp ## Build the documentation as a site in dist/site (REPOSITORY=... for links to files)
	@.venv/bin/python -m infra.site $(dist)/site-pages $(REPOSITORY)
	@.tools/site/bin/zensical build --strict --clean --config-file $(dist)/site-pages/mkdocs.yml
	@rm -rf $(dist)/site && mv $(dist)/site-pages/site $(dist)/site

sbom: .tools/supply/stamp ## Write what the functions and the command consist of into dist/ (CycloneDX)
	@mkdir -p $(dist)
	@$(bill) functions/requirements.txt -o $(dist)/tollgate-functions.cdx.json
	@$(bill) $(environments)/run.txt -o $(dist)/tollgate-command.cdx.json

wheels: .venv/run.stamp ## Write the wheels into dist/, the same bytes each time
	@rm -f $(dist)/*.whl
	@.venv/bin/python -m hatchling build --target wheel --directory $(abspath $(dist)) > /dev/null
	@cd infra/package && $(CURDIR)/.venv/bin/python -m hatchling build --target wheel --directory $(abspath $(dist)) > /dev/null
	@.venv/bin/python -m infra.package $(dist)/*.whl

dist: build sbom wheels ## Write what a release consists of into dist/
	@.venv/bin/python -m infra.package.archives .aws-sam/build $(dist)

# Locks are audited one at a time, because they pin different versions of the same packages.
audit: .tools/supply/stamp ## Look up known weaknesses of the locked dependencies (needs the network)
	@failed=0; for lock in functions/requirements.txt $(sort $(wildcard $(environments)/*.txt)); do \
		echo "tollgate: auditing $$lock"; \
		.tools/supply/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off \
			$(AUDIT_ARGS) --requirement $$lock || failed=1; \
	done; exit $$failed

# The development lock is made first and constrains the others, so that all agree. Existing pins stay;
# `make lock LOCK_ARGS=--upgrade` updates them.
lock: ## Lock the dependencies again (maintainers; needs uv)
	$(uv_compile) pyproject.toml --extra server --group dev -o $(environments)/dev.txt
	$(uv_compile) pyproject.toml --extra server --group install -c $(environments)/dev.txt -o $(environments)/run.txt
	$(uv_compile) pyproject.toml --extra functions $(addprefix --no-emit-package ,$(of_commands)) -c $(environments)/dev.txt -o functions/requirements.txt
	$(uv_compile) --group functions-tests -c $(environments)/dev.txt -o $(environments)/functions-tests.txt
	$(uv_compile) --group ministack -o $(environments)/ministack.txt
	$(uv_compile) --group publish -o $(environments)/publish.txt
	$(uv_compile) --group sam -o $(environments)/sam.txt
	$(uv_compile) --group supply -o $(environments)/supply.txt
	$(uv_compile) --group site -o $(environments)/site.txt
	$(uv_compile) bench/compare/litellm.in -o bench/compare/litellm.txt

clean: ## Delete the environments, the caches and the local state in .dev
	rm -rf .venv .tools .dev .aws-sam dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# `create` does not touch an environment that is up to date, so nothing below is rebuilt.
.venv/made-from: always
	@$(environments)/create .venv $(environments)/run.txt $(environments)/dev.txt

.tools/%/made-from: always
	@$(environments)/create .tools/$* $(environments)/$*.txt

.venv/run.stamp: .venv/made-from pyproject.toml
	@echo "tollgate: installing what the local server needs"
	@$(install) .venv $(locked) $(environments)/run.txt
	@$(install) .venv --no-build-isolation --editable .
	@touch $@

.venv/dev.stamp: .venv/run.stamp
	@echo "tollgate: installing what development needs"
	@$(install) .venv $(locked) $(environments)/dev.txt
	@touch $@

.tools/functions/made-from: always
	@$(environments)/create .tools/functions functions/requirements.txt $(environments)/functions-tests.txt

.tools/functions/stamp: .tools/functions/made-from
	@echo "tollgate: installing what a function carries, and pytest"
	@$(install) .tools/functions $(locked) functions/requirements.txt
	@$(install) .tools/functions $(locked) $(environments)/functions-tests.txt
	@touch $@

# Tests with the Node SDKs are skipped if npm is missing or cannot reach its registry.
.tools/node/stamp: tests/node/package.json tests/node/package-lock.json
	@mkdir -p $(@D)
	@cp $^ $(@D)
	@if command -v npm > /dev/null; then \
		echo "tollgate: installing SDKs for Node" && \
		if npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel error --fetch-retries 1 \
			--fetch-timeout 30000 2> $(@D)/npm.log; \
		then touch $@; \
		else cat $(@D)/npm.log; ! grep -q EINTEGRITY $(@D)/npm.log && \
			echo "tollgate: npm failed, so what needs SDKs for Node is skipped"; fi; \
	else echo "tollgate: no npm, so what needs SDKs for Node is skipped"; fi

.tools/litellm/made-from: always
	@$(environments)/create .tools/litellm bench/compare/litellm.txt

.tools/litellm/stamp: .tools/litellm/made-from
	@echo "tollgate: installing LiteLLM, to be measured"
	@$(install) .tools/litellm $(locked) bench/compare/litellm.txt
	@touch $@

.tools/portkey/stamp: bench/compare/package.json bench/compare/package-lock.json
	@mkdir -p $(@D)
	@cp $^ $(@D)
	@echo "tollgate: installing Portkey, to be measured"
	@cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund --loglevel error
	@touch $@

.tools/%/stamp: .tools/%/made-from
	@echo "tollgate: installing $*"
	@$(install) .tools/$* $(locked) $(environments)/$*.txt
	@touch $@
