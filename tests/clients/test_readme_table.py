"""The README's table of clients is what this run saw; the file's name puts it after the clients."""

from __future__ import annotations

from client_table import CLIENTS, RESULTS, in_readme, table


def test_every_client_of_the_matrix_is_in_the_table() -> None:
    assert {path.stem for path in RESULTS.glob("*.json")} == CLIENTS.keys()


def test_the_table_is_what_the_clients_did() -> None:
    command = "PYTHONPATH=tests/support .venv/bin/python -m client_table"
    assert in_readme() == table(), f"the table of clients in README.md is stale; write it anew with `{command}`"
