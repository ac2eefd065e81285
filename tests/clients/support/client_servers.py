"""The servers that the clients talk to, each in a process of its own that checks every frame it sends."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from serving import MODEL, ROOT, served

CHECKED_HOST = Path(__file__).parent / "host" / "checked_host.py"
KEY = "key-of-the-client-matrix"
LOCAL, SCRIPTED = MODEL, "scripted"
"""What to pass as ``?model=``."""
SCRIPTED_SERVER = {"api_keys": [KEY], "limits": {"input_buffer_bytes": 1024 * 1024}}

Folders = pytest.TempPathFactory


@dataclass(frozen=True)
class Secure:
    """A server with TLS, and the file of the certificate that its clients have to trust."""

    url: str
    ca_file: Path


@pytest.fixture(scope="session")
def local_url(tmp_path_factory: Folders) -> Iterator[str]:
    """``http://host:port`` of the local model, as ``make serve`` serves it; any key will do."""
    with _checked(tmp_path_factory.mktemp("local"), ROOT / "deployments" / "local.yaml") as url:
        yield url


@pytest.fixture(scope="session")
def local_wss(tmp_path_factory: Folders, certificate: tuple[Path, Path]) -> Iterator[Secure]:
    """``https://host:port`` of the local model."""
    folder = tmp_path_factory.mktemp("local_wss")
    config = _write(folder, {"tls": _tls(certificate)}, [{"name": LOCAL, "plugin": "local"}])
    with _checked(folder, config, certificate[0]) as url:
        yield Secure(url, certificate[0])


@pytest.fixture(scope="session")
def scripted_url(tmp_path_factory: Folders) -> Iterator[str]:
    """``http://host:port`` of :mod:`omni_realtime_scripted`; it takes ``KEY`` alone."""
    folder = tmp_path_factory.mktemp("scripted")
    with _checked(folder, _write(folder, SCRIPTED_SERVER, _scripted())) as url:
        yield url


@pytest.fixture(scope="session")
def scripted_wss(tmp_path_factory: Folders, certificate: tuple[Path, Path]) -> Iterator[Secure]:
    """``https://host:port`` of :mod:`omni_realtime_scripted`; it takes ``KEY`` alone."""
    folder = tmp_path_factory.mktemp("scripted_wss")
    with _checked(folder, _write(folder, {**SCRIPTED_SERVER, "tls": _tls(certificate)}, _scripted()), certificate[0]) as url:
        yield Secure(url, certificate[0])


@pytest.fixture(scope="session")
def expiring_url(tmp_path_factory: Folders) -> Iterator[str]:
    """The scripted server, whose sessions last for two seconds."""
    folder = tmp_path_factory.mktemp("expiring")
    with _checked(folder, _write(folder, {**SCRIPTED_SERVER, "limits": {"session_duration_s": 2}}, _scripted())) as url:
        yield url


@pytest.fixture(scope="session")
def expiring_wss(tmp_path_factory: Folders, certificate: tuple[Path, Path]) -> Iterator[Secure]:
    """The same over TLS."""
    folder = tmp_path_factory.mktemp("expiring_wss")
    server = {**SCRIPTED_SERVER, "limits": {"session_duration_s": 2}, "tls": _tls(certificate)}
    with _checked(folder, _write(folder, server, _scripted()), certificate[0]) as url:
        yield Secure(url, certificate[0])


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: Folders) -> tuple[Path, Path]:
    """The files of a certificate for this machine and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


def _scripted() -> list[dict[str, object]]:
    deaf = [{"name": f"deaf-{n}", "plugin": "scripted", "settings": {"deaf": True}} for n in range(1, DEAF + 1)]
    return [{"name": SCRIPTED, "plugin": "scripted"}, *deaf]


DEAF = 12
"""Deployments whose detector fails, once and for all, at the first speech."""


def _tls(certificate: tuple[Path, Path]) -> dict[str, str]:
    return {"cert": str(certificate[0]), "key": str(certificate[1])}


def _write(folder: Path, server: dict[str, object], deployments: list[dict[str, object]]) -> Path:
    """Write a configuration; JSON is YAML."""
    file = folder / "config.yaml"
    file.write_text(json.dumps({"server": {"host": "127.0.0.1", **server}, "deployments": deployments}))
    return file


@contextlib.contextmanager
def _checked(folder: Path, config: Path, ca_file: Path | None = None) -> Iterator[str]:
    frames = folder / "frames.jsonl"
    frames.touch()
    with served([sys.executable, str(CHECKED_HOST), str(frames), "serve", str(config)], folder / "log", ca_file=ca_file) as url:
        yield url
    connections = [json.loads(line) for line in frames.read_text().splitlines()]
    assert sum(connection["frames"] for connection in connections), "no frame was checked"
    assert not [fault for connection in connections for fault in connection["faults"]]
