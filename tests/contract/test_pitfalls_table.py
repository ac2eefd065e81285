"""The table of pitfalls names tests that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROWS = [line for line in (TESTS / "PITFALLS.md").read_text().splitlines() if line.startswith("| ") and "::" in line]
HEADS = ("| pitfall ", "| --- ")


def test_every_row_names_a_test() -> None:
    rows = [line for line in (TESTS / "PITFALLS.md").read_text().splitlines() if line.startswith("| ") and not line.startswith(HEADS)]
    assert rows == ROWS


@pytest.mark.parametrize("named", sorted({name for row in ROWS for name in re.findall(r"`([\w/]+\.py::\w+)`", row)}))
def test_a_named_test_is_there(named: str) -> None:
    path, _, name = named.partition("::")
    functions = ast.walk(ast.parse((TESTS / path).read_text()))
    assert name in {node.name for node in functions if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
