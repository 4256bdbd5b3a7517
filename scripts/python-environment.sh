#!/usr/bin/env bash
# Creates target/venv with Perfetto's own protobuf classes, which check the trace export, and Prometheus' own parser, which checks
# `record --metrics`, two engines that read the dataset of `export --format parquet`, and numpy, with which fleet/generate.py makes datasets. Optional, unless SPAWNSCOPE_TEST_REQUIRE names the needs.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=target/venv
needed='import perfetto.protos.perfetto.trace.perfetto_trace_pb2, prometheus_client.parser, pyarrow.dataset, duckdb, numpy'
if "$environment/bin/python" -c "$needed" 2>/dev/null; then
    exit 0
fi
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check perfetto protobuf prometheus_client pyarrow duckdb numpy
