#!/usr/bin/env bash
# Creates target/venv-fleet with the engines that fleet/tests/engines_agree.py compares (ClickHouse as a library, chdb, and Spark, which
# needs Java), and with what benchmarks/fleet.py needs. It downloads 800 MB, so `.ci/run` does not run it: run `make test-engines` after
# a change to fleet/spawnscope_fleet/sql or to the dataset's tables.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=target/venv-fleet
if ! command -v java >/dev/null; then
    sudo=$([ "$(id -u)" -eq 0 ] || echo sudo)
    $sudo apt-get update -qq
    $sudo apt-get install -y -qq --no-install-recommends default-jre-headless
fi
if "$environment/bin/python" -c 'import pyarrow, numpy, scipy, chdb, pyspark, moto.server, s3fs, spawnscope_fleet' 2>/dev/null; then
    exit 0
fi
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check uv
"$environment/bin/uv" pip install --quiet --python "$environment/bin/python" pyarrow numpy scipy chdb pyspark 'moto[server]' --editable './fleet[s3]'
