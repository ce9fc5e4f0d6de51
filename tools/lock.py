"""Write the pinned locks from pyproject.toml: `make lock`.

pip resolves in a dry run; the result is written as one pin per line, without local version labels (`2.13.0+cpu`), so
that one lock serves CPU and GPU builds.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PINNED = ["torch==2.13.0"]
"""Exact on purpose: a range would take whichever build the package index thinks newest."""


def resolve(requirements: list[str]) -> dict[str, str]:
    """Name and version of everything pip would install for these requirements."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    report = json.loads(subprocess.run([*command, *requirements], check=True, capture_output=True, text=True).stdout)
    packages = [item["metadata"] for item in report["install"]]
    return {package["name"].lower().replace("_", "-"): package["version"].partition("+")[0] for package in packages}


def write(path: Path, packages: dict[str, str], header: str) -> None:
    lines = [f"{name}=={version}" for name, version in sorted(packages.items())]
    path.write_text("\n".join([header, *lines]) + "\n")
    print(f"{path.name}: {len(lines)} packages")


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    core = resolve([*PINNED, *project["project"]["dependencies"]])
    pins = [f"{name}=={version}" for name, version in core.items()]
    serving = resolve([*pins, *project["project"]["optional-dependencies"]["serve"]])
    served = {name: version for name, version in serving.items() if name not in core}
    pins += [f"{name}=={version}" for name, version in served.items()]
    everything = resolve([*pins, *project["dependency-groups"]["dev"]])
    extra = {name: version for name, version in everything.items() if name not in serving}
    with_site = resolve(
        [*(f"{name}=={version}" for name, version in core.items()), *project["dependency-groups"]["site"]]
    )
    site = {name: version for name, version in with_site.items() if name not in core}
    write(ROOT / "requirements.lock", core, "# What the package runs on. Made by `make lock`.")
    header = "-r requirements.lock\n# What `lexical-sae serve` adds. Made by `make lock`."
    write(ROOT / "requirements-serve.lock", served, header)
    write(
        ROOT / "requirements-dev.lock", extra, "-r requirements-serve.lock\n# What testing adds. Made by `make lock`."
    )
    write(ROOT / "requirements-site.txt", site, "-r requirements.lock\n# What `make site` adds. Made by `make lock`.")


if __name__ == "__main__":
    main()
