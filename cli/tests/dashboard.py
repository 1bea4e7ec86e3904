"""Reads a dashboard with Grafana's own types and writes it again: what its schema does not know is lost on the way.

    dashboard.py FILE    prints a line for each loss, and fails if there is one
"""

import json
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard


def lost(given, read, path):
    if isinstance(given, dict) and isinstance(read, dict):
        for key, value in given.items():
            if key in read:
                yield from lost(value, read[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}: not in the schema"
    elif isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        for index, (one, other) in enumerate(zip(given, read)):
            yield from lost(one, other, f"{path}[{index}]")
    elif given != read:
        yield f"{path}: {given!r} became {read!r}"


register_default_plugins()
with open(sys.argv[1]) as file:
    given = json.load(file)
losses = list(lost(given, json.loads(JSONEncoder().encode(Dashboard.from_json(given))), ""))
print("\n".join(losses))
sys.exit(bool(losses))
