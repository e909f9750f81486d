"""The bugs that are planted: every place of a module where an operator applies, as a change of its text.

A mutant is one small change. It is known by what it changes in which function, not by its line, so that an edit
elsewhere in the module leaves it the same mutant. Annotations, docstrings, messages and imports are left alone: nothing
that judges rests on them.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lab.calibration.source_digests import plain_statements
from lab.mutation.text import Placed, Text

COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Div: "*",
    ast.Mod: "+",
}
MASKS: dict[type[ast.operator], str] = {ast.BitAnd: "|", ast.BitOr: "&"}
TWINS = (
    ("minimum", "maximum"),
    ("min", "max"),
    ("any", "all"),
    ("NONE", "NEVER"),
    ("at_or_before", "at_or_after"),
    ("previous_in", "next_in"),
    ("max_before", "min_after"),
    ("argmin", "argmax"),
)
NAMES = {one: other for pair in TWINS for one, other in (pair, pair[::-1])}
MODULE = "module"  # the function of what is executed when the module is imported, decorators as well
SMALL_MAX = 10
SMALL = (ast.Constant, ast.Name)  # shown with what stands around them
TEXTS = {"left": "right", "right": "left", "min": "max", "max": "min"}

OPERATORS = {
    "comparison": "a comparison is shifted by one (< to <=) or turned round (< to >=, == to !=, in to not in)",
    "arithmetic": "+ becomes - and - becomes +; *, / and // become another",
    "mask": "& becomes |, | becomes &, and becomes or, or becomes and",
    "dropped condition": "one side of a & b, a | b, a and b, a or b is left out",
    "inversion": "a ~ or a not is left out; a condition of if or of a choice is turned round",
    "constant": "a number up to ten is one more, or one less; a greater one is its double, or its half; True is False",
    "direction": "a search goes the other way: left, right; min, max; before, after; previous, next; any, all",
    "swapped choice": "np.where gives what it gives elsewhere",
    "dropped line": "a statement that changes something is left out",
}


@dataclass(frozen=True)
class Mutant:
    """One planted bug: in `function` of `module`, the `number`th place where `before` becomes `after`."""

    module: str
    function: str
    operator: str
    before: str
    after: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.module}.{self.function}: {self.before} → {self.after}"


@dataclass(frozen=True)
class Place:
    """Where a mutant changes the text: bytes `start` to `end` of the module become `text`."""

    line: int
    start: int
    end: int
    text: str


def mutants(module: str, source: str) -> dict[Mutant, Place]:
    """Returns every mutant of a module's text, in the order of the text."""
    found: dict[Mutant, Place] = {}
    numbers: Counter[tuple[str, ...]] = Counter()
    text = Text(source)
    for function, node, parent in _judging_nodes(ast.parse(source)):
        if not isinstance(node, Placed):
            continue
        around = parent if isinstance(node, SMALL) and isinstance(parent, ast.expr | ast.keyword) else node
        for operator, spot, changed in _changes(node, text):
            start, end = text.span(spot)
            before, after = text.shown(around), text.shown(around, start, end, changed)
            key = (function, operator, before, after)
            mutant = Mutant(module, function, operator, before, after, numbers[key])
            numbers[key] += 1
            found[mutant] = Place(spot.lineno, start, end, changed)
    return found


def function_digests(source: str) -> dict[str, str]:
    """Returns a digest of each function and class of a module's text, and of what else an import executes (MODULE): of
    what runs, wherever in the module it stands, without docstrings and comments."""
    executed: list[str] = []
    digests: dict[str, str] = {}
    for statement in plain_statements(source):
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            executed += map(ast.unparse, statement.decorator_list)
            digests[statement.name] = _digest(ast.unparse(statement))
        else:
            executed.append(ast.unparse(statement))
    return digests | {MODULE: _digest("\n".join(sorted(executed)))}


def digest_of(mutant: Mutant, digests: Mapping[str, str]) -> str:
    """Returns the digest of what a mutant changes: a method's is that of its class."""
    return digests[mutant.function.split(".")[0]]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def planted(source: str, place: Place) -> str:
    """Returns the module's text with the bug in it."""
    raw = source.encode()
    return (raw[: place.start] + place.text.encode() + raw[place.end :]).decode()


def _judging_nodes(tree: ast.Module) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """Yields each node with its function and the node around it, but for what is not executed or only told."""

    def walk(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST, ast.AST]]:
        decorators = getattr(node, "decorator_list", [])
        for child in _children(node):
            inside = function.rpartition(".")[0] or MODULE if child in decorators else function
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inside = f"{function}.{child.name}" if function != MODULE else child.name
            yield inside, child, node
            yield from walk(child, inside)

    yield from walk(tree, MODULE)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_told(child):
                yield child


def _is_told(node: ast.AST) -> bool:
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.ClassDef) and any(ast.unparse(base) in ("IntEnum", "IntFlag") for base in node.bases):
        return True  # its numbers are only names
    if isinstance(node, ast.keyword) and node.arg in ("severity", "frozen"):
        return True  # only the order of them all means something; that nobody changes a value shows in none
    told = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return told or isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr | ast.arguments)


def _changes(node: ast.AST, text: Text) -> Iterator[tuple[str, Placed, str]]:
    """Yields (operator, which node is replaced, by which text) for one node."""
    for change in _CHANGES.get(type(node), ()):
        yield from change(node, text)


def _compare(node: ast.Compare, text: Text) -> Iterator[tuple[str, Placed, str]]:
    if len(node.ops) > 1:
        return
    left, right = _enclosed(node.left, text), _enclosed(node.comparators[0], text)
    for sign in COMPARISONS[type(node.ops[0])]:
        yield "comparison", node, f"{left} {sign} {right}"


def _binary(node: ast.BinOp, text: Text) -> Iterator[tuple[str, Placed, str]]:
    left, right = _enclosed(node.left, text), _enclosed(node.right, text)
    if type(node.op) in MASKS:
        yield "mask", node, f"({left} {MASKS[type(node.op)]} {right})"
        yield "dropped condition", node, left
        yield "dropped condition", node, right
    elif type(node.op) in ARITHMETIC and not _is_text(node):
        yield "arithmetic", node, f"({left} {ARITHMETIC[type(node.op)]} {right})"


def _boolean(node: ast.BoolOp, text: Text) -> Iterator[tuple[str, Placed, str]]:
    parts = [_enclosed(value, text) for value in node.values]
    sign, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    yield "mask", node, f"({f' {other} '.join(parts)})"
    for left_out in range(len(parts)):
        yield "dropped condition", node, f"({f' {sign} '.join(parts[:left_out] + parts[left_out + 1 :])})"


def _unary(node: ast.UnaryOp, text: Text) -> Iterator[tuple[str, Placed, str]]:
    if isinstance(node.op, ast.Invert | ast.Not):
        yield "inversion", node, _enclosed(node.operand, text)


def _condition(node: ast.If | ast.IfExp, text: Text) -> Iterator[tuple[str, Placed, str]]:
    if not isinstance(node.test, ast.UnaryOp | ast.Compare):  # those are turned round by their own operators
        yield "inversion", node.test, f"(not {_enclosed(node.test, text)})"


def _constant(node: ast.Constant, text: Text) -> Iterator[tuple[str, Placed, str]]:
    if isinstance(node.value, bool):
        yield "constant", node, str(not node.value)
    elif isinstance(node.value, int | float):
        small = abs(node.value) <= SMALL_MAX
        yield "constant", node, f"({node.value + 1 if small else node.value * 2})"
        yield "constant", node, f"({node.value - 1 if small else node.value // 2})"
    elif node.value in TEXTS:
        yield "direction", node, repr(TEXTS[node.value])


def _named(node: ast.Name, text: Text) -> Iterator[tuple[str, Placed, str]]:
    if node.id in NAMES and isinstance(node.ctx, ast.Load):
        yield "direction", node, NAMES[node.id]


def _attribute(node: ast.Attribute, text: Text) -> Iterator[tuple[str, Placed, str]]:
    if node.attr in NAMES and isinstance(node.ctx, ast.Load):
        yield "direction", node, f"{text.of(node.value)}.{NAMES[node.attr]}"


def _call(node: ast.Call, text: Text) -> Iterator[tuple[str, Placed, str]]:
    if text.of(node.func) == "np.where" and len(node.args) == 3:
        condition, chosen, otherwise = (text.of(argument) for argument in node.args)
        yield "swapped choice", node, f"np.where({condition}, {otherwise}, {chosen})"


def _statement(node: ast.stmt, text: Text) -> Iterator[tuple[str, Placed, str]]:
    yield "dropped line", node, "pass"


def _assignment(node: ast.Assign, text: Text) -> Iterator[tuple[str, Placed, str]]:
    """A name that is given a new value made of its old one; any other would only be missed by name."""
    names = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
    if isinstance(node.targets[0], ast.Subscript) or names & {text.of(one) for one in node.targets}:
        yield "dropped line", node, "pass"


def _enclosed(node: Placed, text: Text) -> str:
    written = text.of(node)
    return written if isinstance(node, ast.Name | ast.Constant | ast.Call | ast.Subscript) else f"({written})"


def _is_text(node: ast.AST) -> bool:
    values = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
    return any(isinstance(value, str) and " " in value for value in values)


_CHANGES: dict[type[ast.AST], tuple[Callable[[Any, Text], Iterator[tuple[str, Placed, str]]], ...]] = {
    ast.Compare: (_compare,),
    ast.BinOp: (_binary,),
    ast.BoolOp: (_boolean,),
    ast.UnaryOp: (_unary,),
    ast.If: (_condition,),
    ast.IfExp: (_condition,),
    ast.Constant: (_constant,),
    ast.Name: (_named,),
    ast.Attribute: (_attribute,),
    ast.Call: (_call,),
    ast.AugAssign: (_statement,),
    ast.Expr: (_statement,),
    ast.Assign: (_assignment,),
}
