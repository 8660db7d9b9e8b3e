# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Declared names (``"module:Class.method"``) looked up in source text, by its syntax trees.

What a module binds counts, whatever branch binds it. A name that is imported from another module of verl is followed;
one that comes from another package cannot be, and what is below it counts as there.
"""

import ast
import functools
from collections.abc import Iterable, Iterator, Sequence

from verl_hw_tools.errors import VerlSourceError
from verl_hw_tools.upstream_check.source import VerlSource

_Bindings = dict[str, ast.AST]
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


class Names:
    """Looks names up in one verl.

    Args:
        source: The verl.
    """

    def __init__(self, source: VerlSource) -> None:
        self.source = source
        self._module = functools.cache(self._parse)

    def has(self, name: str, *, own: bool = False) -> bool:
        """Whether a declared name is there.

        Args:
            name: As the registry declares it, without versions.
            own: Whether the class itself must have it, not one that it inherits from.

        Raises:
            VerlSourceError: A module cannot be parsed.
        """
        module, _, path = name.partition(":")
        return self._resolve(module, path.split("."), own, frozenset())

    def defined_in(self, name: str) -> tuple[str, ...]:
        """Return the other modules that define what the name's path says; one that imports it does not count."""
        module, _, path = name.partition(":")
        parts = path.split(".")
        word = parts[-1]
        found = [
            other
            for other, text in self.source.modules.items()
            if other != module and (word in text or other.endswith(f".{word}")) and self._defines(other, parts)
        ]
        return tuple(sorted(found))

    def _defines(self, module: str, parts: Sequence[str]) -> bool:
        if len(parts) == 1 and module.rpartition(".")[2] == parts[0]:
            return True
        first = self._bindings(module).get(parts[0].removesuffix("()"))
        if not isinstance(first, _DEFINITIONS):
            return False
        return len(parts) == 1 or (isinstance(first, ast.ClassDef) and self._in_class(module, first, parts, True))

    def _resolve(self, module: str, parts: Sequence[str], own: bool, seen: frozenset[tuple[str, str]]) -> bool:
        name, rest = parts[0].removesuffix("()"), parts[1:]
        if module not in self.source.modules or (module, name) in seen:
            return False
        seen |= {(module, name)}
        binding = self._bindings(module).get(name)
        if binding is None:
            submodule = f"{module}.{name}"
            if submodule in self.source.modules:
                return not rest or self._resolve(submodule, rest, own, seen)
            return any(self._resolve(other, parts, own, seen) for other in self._stars(module))
        if not rest:
            return True
        if isinstance(binding, ast.ClassDef):
            return self._in_class(module, binding, parts, own)
        for other, theirs in self._imported(module, binding, name):
            if theirs is None:
                return self._resolve(other, rest, own, seen)
            return self._resolve(other, [theirs + "()" * parts[0].endswith("()"), *rest], own, seen)
        return True  # an object whose attributes no text shows, or another package's

    def _in_class(self, module: str, node: ast.ClassDef, parts: Sequence[str], own: bool) -> bool:
        """Whether ``parts``, whose first names the class, are in it."""
        name, rest = parts[1], parts[2:]
        members = _bindings(node.body)
        if name in members:
            inner = members[name]
            return not rest or (isinstance(inner, ast.ClassDef) and self._in_class(module, inner, parts[1:], own))
        if parts[0].endswith("()") and any(isinstance(at, ast.Attribute) and at.attr == name for at in ast.walk(node)):
            return True
        if own:
            return False
        bases = (ast.unparse(base).split("[")[0] for base in node.bases)
        return any(self._inherits(module, base.split("."), parts) for base in bases)

    def _inherits(self, module: str, base: Sequence[str], parts: Sequence[str]) -> bool:
        """Whether a base of this verl has it; of another package's base nothing is known, and nothing assumed."""
        binding = self._bindings(module).get(base[0])
        if isinstance(binding, ast.ClassDef):
            return self._in_class(module, binding, [base[0], *parts[1:]], False)
        imported = () if binding is None else self._imported(module, binding, base[0])
        return any(
            self._resolve(other, [*([theirs] if theirs else []), *base[1:], *parts[1:]], False, frozenset())
            for other, theirs in imported
        )

    def _imported(self, module: str, binding: ast.AST, name: str) -> Iterator[tuple[str, str | None]]:
        """Module of this verl, and name in it, that an import binds; None for the module itself."""
        if isinstance(binding, ast.ImportFrom):
            base = self._absolute(module, binding)
            theirs = next(one.name for one in binding.names if (one.asname or one.name) == name)
            if f"{base}.{theirs}" in self.source.modules and theirs not in self._bindings_of(base):
                yield f"{base}.{theirs}", None
            elif base in self.source.modules:
                yield base, theirs
        elif isinstance(binding, ast.Import):
            theirs = next(one.name for one in binding.names if (one.asname or one.name.partition(".")[0]) == name)
            if theirs in self.source.modules:
                yield theirs, None

    def _absolute(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = module if module in self.source.packages else module.rpartition(".")[0]
        for _ in range(node.level - 1):
            package = package.rpartition(".")[0]
        return f"{package}.{node.module}" if node.module else package

    def _stars(self, module: str) -> Iterator[str]:
        for node in _statements(self._module(module).body):
            if isinstance(node, ast.ImportFrom) and any(one.name == "*" for one in node.names):
                yield self._absolute(module, node)

    def _bindings(self, module: str) -> _Bindings:
        return _bindings(self._module(module).body)

    def _bindings_of(self, module: str) -> _Bindings:
        return self._bindings(module) if module in self.source.modules else {}

    def _parse(self, module: str) -> ast.Module:
        try:
            return ast.parse(self.source.modules[module])
        except SyntaxError as error:
            raise VerlSourceError(
                f"{module} of verl {self.source.version} ({self.source.place}) cannot be parsed, line {error.lineno}: "
                f"{error.msg}. If it is written for a newer Python, run this command with that one"
            ) from error


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a body and of the branches in it; not those of functions and classes."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, part, ()))
            for handler in getattr(node, "handlers", ()):
                yield from _statements(handler.body)


def _bindings(body: Iterable[ast.stmt]) -> _Bindings:
    """Names that a body binds, each with the last statement that does."""
    found: _Bindings = {}
    for node in _statements(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Import):
            found.update({one.asname or one.name.partition(".")[0]: node for one in node.names})
        elif isinstance(node, ast.ImportFrom):
            found.update({one.asname or one.name: node for one in node.names if one.name != "*"})
        elif isinstance(node, ast.Assign) or (isinstance(node, ast.AnnAssign) and node.value is not None):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (one for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
            found.update({one.id: node for one in names})
    return found
