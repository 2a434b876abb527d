# The commands of the README (run, test) and of CI (check). Everything is installed into .venv, nothing elsewhere.
PYTHON ?= python3
BIN := .venv/bin
BIN41 := .venv41/bin

IN_PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder

CLUSTER ?= $(addprefix tests/spark/test_,$(addsuffix .py,run python_models python_code seeds_in_runs sqlite quarantine \
	start snapshots build replay backfill show retry state_rows))

CONNECT ?= $(addprefix tests/spark/test_,$(addsuffix .py,run python_models python_code seeds_in_runs batch build show retry))

FILES_JAVA := $(addprefix sqlstream/spark/jvm/,$(addsuffix .java,LocalFiles ObjectStoreFiles))

FIRST ?= 0
COUNT ?= 10000

.PHONY: run test test-all check cluster yarn kubernetes connect databricks corpus corpus-next fuzz files-jar kills chaos changes exactly-once sequences poison auto-cdc services faults registry data-contracts bench-check bench-compile bench-many bench-observers bench-plan bench-run bench-small-files bench-soak bench-test bench-ui bench-connectors bench-nexmark archive lint types layers unit spark smoke41 lock clean-venv

run: .venv/ready
	$(BIN)/sqlstream run --select cloudtrail --available-now

test: .venv/ready archive
	$(BIN)/python -m pytest $(IN_PARALLEL) -m "smoke or not (slow or spark)" --ignore tests/models --durations 20 --durations-min 10
	$(BIN)/sqlstream test --equivalence --coverage-min 90

# The tests with Spark that take up to about four seconds each; takes a quarter of an hour.
spark: .venv/ready archive
	$(BIN)/python -m pytest $(IN_PARALLEL) -m "smoke or not slow" tests/spark --durations 20 --durations-min 10

# Runs the Spark tests that matter on a cluster on a standalone cluster with two workers, without those in LOCAL_ONLY of
# tests/spark/conftest.py, after ten killed workers. CLUSTER="tests/spark/test_run.py" runs others.
cluster: .venv/ready archive
	SQLSTREAM_KILLS=10 $(BIN)/python -m pytest tests/spark/test_two_workers.py tests/spark/test_standalone_cluster.py
	SQLSTREAM_TEST_CLUSTER=standalone $(BIN)/python -m pytest -m "smoke or not slow" $(CLUSTER)

# The same on YARN with two nodes. The tests of test_yarn.py have their data on HDFS, the others files of this machine.
yarn: .venv/ready archive
	SQLSTREAM_KILLS=10 $(BIN)/python -m pytest tests/spark/test_yarn.py tests/spark/test_hdfs.py
	SQLSTREAM_TEST_CLUSTER=yarn $(BIN)/python -m pytest -m "smoke or not slow" $(CLUSTER)

# The same for a server of Spark Connect, with ten kills of runs and servers, and ten broken connections.
connect: .venv/ready .venv41/ready
	SQLSTREAM_KILLS=10 $(BIN)/python -m pytest tests/spark/test_connect.py tests/spark/test_connect_batches.py tests/spark/test_connect_databases.py tests/spark/test_database_types.py
	SQLSTREAM_KILLS=10 $(BIN41)/python -m pytest tests/spark/test_lake_connect.py
	SQLSTREAM_TEST_CLUSTER=connect $(BIN)/python -m pytest -m "smoke or not slow" $(CONNECT)

# The tests of Spark Connect with databricks-connect in place of PySpark, on a server of Spark. databricks-connect needs
# exactly Python 3.12: make databricks PYTHON=python3.12
databricks: .venv-databricks/ready
	SQLSTREAM_TEST_SERVER_PYTHON=$(CURDIR)/.venv-databricks/server/bin/python \
		.venv-databricks/client/bin/python -m pytest tests/spark/test_connect.py tests/spark/test_connect_batches.py

# Runs executors and drivers as pods of Kubernetes' API, which are processes of this machine.
kubernetes: .venv/ready
	$(BIN)/python -m pytest tests/spark/test_kubernetes.py

# All tests; takes more than an hour.
test-all: .venv/ready archive
	$(BIN)/python -m pytest $(IN_PARALLEL) --ignore tests/models --durations 40 --durations-min 20
	$(BIN)/sqlstream test --equivalence --coverage-min 90

check:
	$(MAKE) -j2 archive lint types layers .venv41/ready
	$(MAKE) test smoke41

# Asks Spark about every query of tests/corpus and records what it says; prints where the compiler judges otherwise.
corpus: .venv/ready
	$(BIN)/python -m tests.corpus.run_corpus

# For a scheduled CI job: runs the corpus on the newest Spark that pip finds, pre-releases included, and prints how its
# verdicts differ. Never fails ("-"), because a pre-release may not even start.
corpus-next:
	-test -x .venv-next/bin/pip || $(PYTHON) -m venv .venv-next
	-.venv-next/bin/pip install --quiet --disable-pip-version-check --requirement requirements.lock
	-.venv-next/bin/pip install --quiet --disable-pip-version-check --pre --upgrade pyspark
	-.venv-next/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	-.venv-next/bin/python -m tests.corpus.run_corpus --other-spark

# Prints what `compile --check` takes for each of 100 models once the session is up.
bench-check: .venv/ready
	$(BIN)/python -m benchmarks.bench_check

# Seconds and memory of `sqlstream compile` beside `dbt parse`, on 1,000 and 5,000 generated models; takes half an hour.
bench-compile: .venv/ready .venv-dbt/ready
	$(BIN)/python -m benchmarks.bench_compile $(BENCH)

# `sqlstream plan` beside an unchanged `sqlstream compile`, with 1,000 models and 200 queries.
bench-plan: .venv/ready
	$(BIN)/python -m benchmarks.bench_plan

# The live page with 200 queries and 1,000,000 batches in Chromium. BENCH="--folder NAME" keeps the generated history.
bench-ui: .venv/ready
	$(BIN)/python -m benchmarks.bench_ui $(BENCH)

# What runs cost beside scripts written by hand and Spark's own pipelines; takes an hour. BENCH="--part b c" measures less.
bench-run: .venv/ready .venv-pipelines/ready
	$(BIN)/python -m benchmarks.bench_run $(BENCH)

# Files, bytes and the time of batches after 10,000 small batches into files, a database and Delta Lake, with and without
# `sqlstream maintain`; takes hours. BENCH="--batches 1000" writes fewer.
bench-small-files: .venv/ready .venv41/ready
	$(BIN)/python -m benchmarks.bench_small_files --sinks files database $(BENCH)
	$(BIN41)/python -m benchmarks.bench_small_files --sinks delta $(BENCH)

# The time of batches in a run with the page, metrics and alerts on, beside one without, five times in turns; takes 15 minutes.
bench-observers: .venv/ready
	$(BIN)/python -m benchmarks.bench_observers $(BENCH)

# Seconds for plan, start and status of a run with 10, 50 and 200 endless queries, its memory and threads; takes ten minutes.
bench-many: .venv/ready
	$(BIN)/python -m benchmarks.bench_many $(BENCH)

# One query with 20,000,000 keys in RocksDB for two hours: memory, checkpoint, batches, and the time to recover from kill -9.
# BENCH="--minutes 5 --keys 2000000" is a short form. The figures and a plot are in target/soak/.
bench-soak: .venv/ready
	$(BIN)/python -m benchmarks.bench_soak $(BENCH)

# What `sqlstream test` takes beside the same cases by hand and beside dbt; takes an hour, nearly all of it by hand.
bench-test: .venv/ready .venv-dbt/ready
	$(BIN)/python -m benchmarks.bench_test $(BENCH)

# Compiles COUNT mutated projects from the seed FIRST on; a project that breaks the compiler is saved below target/fuzz/.
fuzz: .venv/ready
	$(BIN)/python -m tests.fuzz.run_fuzz --first $(FIRST) --count $(COUNT)

# Ends runs by kill -9, of Python and of the JVM, twenty times, and ten times runs with standbys, on S3, and into Delta
# Lake and Iceberg. `make test-all` does it twice, without these tables.
kills: .venv/ready .venv41/ready
	SQLSTREAM_KILLS=20 $(BIN)/python -m pytest tests/spark/test_kills.py
	SQLSTREAM_KILLS=10 $(BIN)/python -m pytest tests/spark/test_standby.py -k killed_run
	SQLSTREAM_KILLS=10 $(BIN)/python -m pytest tests/spark/test_s3.py -k "killed or broken"
	SQLSTREAM_KILLS=10 $(BIN41)/python -m pytest tests/spark/test_lake_kills.py tests/spark/test_lake_changes.py tests/spark/test_lake_replace.py -k killed

# Fifty commands, ended by kill -9 at random moments: runs, parallel runs, full refreshes, promotions, rollbacks and repairs.
# `make test-all` does it seven times, each command once.
chaos: .venv/ready
	SQLSTREAM_CHAOS=50 $(BIN)/python -m pytest -s tests/spark/test_chaos.py

# All edits of the change matrix, and 300 random ones, each judged by Spark, in two processes; `make check` makes
# some, `make spark` a dozen. CHANGES="--seed 7" makes other random edits.
changes: .venv/ready
	$(BIN)/python -m tests.spark.changes.run_changes $(CHANGES)

# 200,000 events from Kafka into files and databases, through twenty kills; `make test-all` makes it two.
exactly-once: .venv/ready
	SQLSTREAM_KILLS=20 SQLSTREAM_EVENTS=200000 $(BIN)/python -m pytest -s tests/spark/test_exactly_once.py

# 20,000 changes in random order into the tables of three databases, through ten kills, beside a truth in pandas;
# `make test-all` makes it two.
sequences: .venv/ready
	SQLSTREAM_KILLS=10 SQLSTREAM_EVENTS=20000 $(BIN)/python -m pytest tests/spark/test_sequence_kills.py

# 200 poisoned rows of eight kinds among 100,000, into files and two databases with quarantines, through ten kills;
# `make test-all` makes it two.
poison: .venv/ready
	SQLSTREAM_KILLS=10 SQLSTREAM_EVENTS=100000 $(BIN)/python -m pytest tests/spark/test_quarantine_kills.py

# The tables of 20,000 changes in three databases, Delta Lake and Iceberg, each through ten kills, beside those of AUTO CDC in
# Spark's own pipelines, of type 1 and 2.
auto-cdc: export SQLSTREAM_AUTO_CDC = $(CURDIR)/target/auto_cdc.json
auto-cdc: export SQLSTREAM_KILLS = 10
auto-cdc: .venv/ready .venv41/ready .venv-pipelines/ready
	.venv-pipelines/bin/python -m tests.support.auto_cdc $(SQLSTREAM_AUTO_CDC) 20000
	$(BIN)/python -m pytest -n 0 tests/spark/test_auto_cdc.py
	$(BIN41)/python -m pytest -n 0 tests/spark/test_lake_auto_cdc.py

# A broker that is away for twenty seconds, and a table that is locked for thirty; `make test-all` makes it three.
faults: .venv/ready
	SQLSTREAM_OUTAGE_SECONDS=20 $(BIN)/python -m pytest tests/spark/test_kafka_faults.py
	SQLSTREAM_LOCKED_SECONDS=30 $(BIN)/python -m pytest tests/spark/test_jdbc.py -k locked_table

# Reads Avro messages with the schemas of a real registry, Apicurio; downloads 150 MB the first time.
registry: .venv/ready
	SQLSTREAM_REGISTRY=apicurio $(BIN)/python -m pytest -n 0 tests/spark/test_kafka_avro.py

# Validates exported data contracts with datacontract-cli, in an environment of its own of 130 MB.
data-contracts: .venv/ready .venv-datacontract/ready
	SQLSTREAM_DATACONTRACT=.venv-datacontract/bin/datacontract $(BIN)/python -m pytest tests/unit/app/contract

# Starts servers on loopback, prints their addresses, and stops them on Ctrl-C: Kafka and the databases that are installed,
# or those in SERVICES="kafka postgres mariadb".
services: .venv/ready
	$(BIN)/python -m tests.services.run_services $(SERVICES)

# Rows per second from Kafka into PostgreSQL and Parquet, beside scripts written by hand; takes half an hour.
bench-connectors: .venv/ready
	$(BIN)/python -m benchmarks.bench_connectors $(BENCH)

# Nexmark's queries: events per second and latency from Kafka to Kafka, beside a script written by hand; takes an hour.
# BENCH="--part latency --cores 2 --queries q0 q18" measures less.
bench-nexmark: .venv/ready
	$(BIN)/python -m benchmarks.bench_nexmark $(BENCH)

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

layers: .venv/ready
	$(BIN)/lint-imports --no-cache

# With the class archive each of the hundreds of starts of Spark in the tests takes about half the time.
archive: .venv/ready
	-$(BIN)/sqlstream debug --class-archive build

# Compiles the classes for files on this machine and on object stores; needs a JDK. The jar is in the repository.
files-jar: .venv41/ready
	rm -rf target/files-jar
	javac --release 17 -nowarn -cp '.venv41/lib/python3.11/site-packages/pyspark/jars/*' -d target/files-jar $(FILES_JAVA)
	for file in $(FILES_JAVA); do sha256sum < $$file > target/files-jar/$$(basename $$file .java).sha256; done
	jar --create --file sqlstream/spark/jvm/sqlstream-files.jar --no-manifest --date 2026-01-01T00:00:00Z -C target/files-jar .

smoke41: .venv41/ready
	$(BIN41)/python -m pytest $(IN_PARALLEL) -m smoke tests/spark

.venv/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("sqlstream needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Install one and run: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.venv41/ready: requirements-spark41.lock pyproject.toml
	$(PYTHON) -m venv .venv41
	$(BIN41)/pip install --quiet --disable-pip-version-check --requirement requirements-spark41.lock
	$(BIN41)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.venv-databricks/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv-databricks/server
	.venv-databricks/server/bin/pip install --quiet --disable-pip-version-check --requirement requirements.lock
	.venv-databricks/server/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(PYTHON) -m venv .venv-databricks/client
	grep -v '^pyspark==' requirements.lock > .venv-databricks/client.lock
	.venv-databricks/client/bin/pip install --quiet --disable-pip-version-check --requirement .venv-databricks/client.lock
	.venv-databricks/client/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	.venv-databricks/client/bin/pip install --quiet --disable-pip-version-check 'databricks-connect==19.3.*'
	@touch $@

.venv-dbt/ready:
	$(PYTHON) -m venv .venv-dbt
	.venv-dbt/bin/pip install --quiet --disable-pip-version-check 'dbt-core<1.12' dbt-duckdb
	@touch $@

.venv-datacontract/ready:
	$(PYTHON) -m venv .venv-datacontract
	.venv-datacontract/bin/pip install --quiet --disable-pip-version-check 'datacontract-cli==1.2.8'
	@touch $@

.venv-pipelines/ready:
	$(PYTHON) -m venv .venv-pipelines
	.venv-pipelines/bin/pip install --quiet --disable-pip-version-check 'pyspark[pipelines]==4.3.*'
	@touch $@

# Renews both locks from pyproject.toml: a fresh environment each, frozen.
lock:
	$(call freeze,pyspark==4.3.*,dev,requirements.lock)
	$(call freeze,pyspark==4.1.*,spark41,requirements-spark41.lock)

define freeze
	rm -rf .venv-lock
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet hatchling editables '$(1)' '.[$(2)]'
	.venv-lock/bin/pip freeze --exclude sqlstream --exclude setuptools > $(3)
	rm -rf .venv-lock
endef
