"""Reads a YAML file and remembers where each of its values stands, so that an error can name the line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

Key: TypeAlias = str | int
Path: TypeAlias = tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A key that a mapping has twice, of which YAML would silently keep the last."""

    path: Path
    line: int
    first_line: int


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a YAML file and the line of each, counted from 1."""

    value: Any
    lines: Mapping[Path, int]
    duplicates: tuple[Duplicate, ...]

    def line(self, path: Path) -> int:
        """Return the line of ``path``, or of the nearest value around it where the file does not hold it."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_document(text: str) -> Document:
    """Parse one YAML document.

    Raises:
        yaml.YAMLError: if ``text`` is not YAML, or not plain data.
    """
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return Document(None, {}, ())
        walk = _Walk()
        walk.visit(root, (), root.start_mark.line + 1, frozenset())
        return Document(loader.construct_document(root), walk.lines, tuple(walk.duplicates))
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """Takes the escapes of JSON too, which write a character beyond U+FFFF as two halves."""

    def construct_scalar(self, node: Any) -> Any:
        value = super().construct_scalar(node)
        if not isinstance(value, str):
            return value
        try:
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            message = "half a surrogate pair stands alone here; write the character itself"
            raise yaml.constructor.ConstructorError(None, None, message, node.start_mark) from None


class _Walk:
    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.duplicates: list[Duplicate] = []

    def visit(self, node: yaml.Node, path: Path, line: int, above: frozenset[yaml.Node]) -> None:
        if node in above:
            raise yaml.composer.ComposerError(None, None, "an alias may not contain itself", node.start_mark)
        above |= {node}
        self.lines[path] = line
        if isinstance(node, yaml.SequenceNode):
            for index, child in enumerate(node.value):
                self.visit(child, (*path, index), child.start_mark.line + 1, above)
        elif isinstance(node, yaml.MappingNode):
            self._visit_mapping(node, path, above)

    def _visit_mapping(self, node: yaml.MappingNode, path: Path, above: frozenset[yaml.Node]) -> None:
        first_lines: dict[str, int] = {}
        for key_node, child in node.value:
            key, line = str(key_node.value), key_node.start_mark.line + 1
            if key in first_lines:
                self.duplicates.append(Duplicate((*path, key), line, first_lines[key]))
            first_lines.setdefault(key, line)
            self.visit(child, (*path, key), line, above)


def parse_dotted(text: str) -> Path:
    """``settings.parts[0].dir`` as ``("settings", "parts", 0, "dir")``."""
    return tuple(int(index) if index else key for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", text))
