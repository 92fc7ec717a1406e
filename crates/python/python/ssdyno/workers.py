"""``python3 -m ssdyno.workers ADDRESS``: the designs of ``ssdyno sweep --dask ADDRESS`` on the workers of Dask.

Standard input is one JSON object: ``plan`` (a text), ``designs`` (numbers) and ``version`` (of the program). Standard
output has a row in each line, or ``{"error": ..., "help": ...}`` as the last one.
"""

from __future__ import annotations

import json
import sys
from contextlib import closing

from . import _dask
from ._errors import Error


def main(address: str) -> int:
    asked = json.load(sys.stdin)
    found = _dask.worker_version()
    if found != asked["version"]:
        wanted = asked["version"]
        return _ends(f"the Python package has ssdyno {found}, this program is {wanted}", f"type: pip install ssdyno=={wanted}")
    try:
        from distributed import Client
    except ImportError:
        return _ends("the Python package distributed (Dask) is missing", "type: pip install distributed")
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        return _ends(f"no Dask scheduler answers at {address}: {error}", "type: dask scheduler, and its address here")
    try:
        with client, closing(_dask.rows(client, asked["plan"], asked["designs"])) as parts:
            _dask.check_workers(client)
            for part in parts:
                print(*part, sep="\n", flush=True)
    except KeyboardInterrupt:
        return 130
    except Error as error:
        return _ends(error.message, error.help)
    except Exception as error:  # Dask passes on whatever a worker raised.
        return _ends(f"{type(error).__name__}: {error}", None)
    return 0


def _ends(message: str, help: str | None) -> int:
    print(json.dumps({"error": message, "help": help}), flush=True)
    return 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python3 -m ssdyno.workers ADDRESS")
    sys.exit(main(sys.argv[1]))
