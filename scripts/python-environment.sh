#!/usr/bin/env bash
# Creates target/venv with what tests need: Perfetto's own protobuf classes, which check the trace export; Prometheus' own parser, which checks
# `record --metrics`; two engines that read the dataset of `export --format parquet`; numpy, with which fleet/generate.py makes datasets; moto, an
# object store for datasets; spawnscope-fleet itself, and pytest, which tests it. These tests are optional, unless SPAWNSCOPE_TEST_REQUIRE names their needs.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=target/venv
needed='import perfetto.protos.perfetto.trace.perfetto_trace_pb2, prometheus_client.parser, pyarrow.dataset, duckdb, numpy, moto.server, s3fs, pytest, spawnscope_fleet'
if "$environment/bin/python" -c "$needed" 2>/dev/null; then
    exit 0
fi
python3 -m venv "$environment"
# uv finds the versions that fit together in seconds; pip tried them one after the other for three minutes.
"$environment/bin/pip" install --quiet --disable-pip-version-check uv
"$environment/bin/uv" pip install --quiet --python "$environment/bin/python" \
    perfetto protobuf prometheus_client pyarrow numpy 'moto[server]' pytest --editable './fleet[s3]'
