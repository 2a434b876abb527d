#!/usr/bin/env bash
# Fetches the files of this folder again, by the npm that is installed. The versions are those of README.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# renew PACKAGE@VERSION FOLDER FROM:TO... copies files of a package into a folder
renew() {
  local package=$1 folder=$here/$2 archive pair
  shift 2
  archive=$(cd "$work" && npm pack --silent "$package")
  rm -rf "$work/package"
  tar -xzf "$work/$archive" -C "$work"
  mkdir -p "$folder"
  for pair in "$@"; do cp "$work/package/${pair%%:*}" "$folder/${pair##*:}"; done
}

renew @dagrejs/dagre@3.1.3 dagre dist/dagre.min.js:dagre.min.js LICENSE:LICENSE
renew minisearch@7.2.0 minisearch dist/umd/index.js:minisearch.js LICENSE.txt:LICENSE
renew uplot@1.6.32 uplot dist/uPlot.iife.min.js:uPlot.iife.min.js dist/uPlot.min.css:uPlot.min.css LICENSE:LICENSE
