"""Tools from npm, for tests that use what we write as others do: each fetched once, as its lock file says.

Where a tool cannot be had the test is skipped and says why, or fails (`requirements.py`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from kafka_trial.cluster.user_cache import cache_folder, made_once
from requirements import missing


def modules(folder: Path, *, tool: str) -> Path:
    """Returns the `node_modules` with the one package that the package.json in a folder names."""
    ((name, version),) = json.loads((folder / "package.json").read_text())["dependencies"].items()
    place = cache_folder() / f"{name}-{version}"
    if not place.exists() and shutil.which("npm") is None:
        missing(tool, f"there is no npm to fetch {name} with; install npm")
    with made_once(place, place.name) as temporary:
        if temporary is not None:
            shutil.copytree(folder, temporary)
            asked = ["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
            done = subprocess.run(asked, cwd=temporary, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                missing(tool, f"npm could not fetch {name}: {done.stderr[-200:]}; see that npm reaches its registry")
    return place / "node_modules"
