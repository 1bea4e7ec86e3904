#!/bin/sh
# Makes a virtual environment: bindings/python/venv.sh PYTHON FOLDER REQUIREMENTS...
# The file `ready` in it says that it is complete. Packages come from PyPI.
set -eu
python=$1 folder=$2
shift 2
rm -rf "$folder" && mkdir -p "$(dirname "$folder")"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "$python is older than 3.11: set PYTHON=python3.11" >&2; exit 1; }
"$python" -m venv "$folder"
for list; do set -- "$@" -r "$list"; shift; done
"$folder/bin/pip" install --quiet --disable-pip-version-check "$@"
touch "$folder/ready"
