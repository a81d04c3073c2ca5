"""Jinja2 cut down to what a notification needs: no calls into Python, and a bound on size, steps and time.

A construct that is not listed here can't be written in a template. Jinja's own sandbox keeps templates away from
Python's insides; it does not keep them from filling the memory, so every way to make much out of little is closed or
metered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, Undefined, nodes, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import escape

from ulak.clock import SystemClock
from ulak.errors import Invalid
from ulak.templates.filters import filters_of


@dataclass(frozen=True, slots=True)
class Caps:
    template_chars: int = 65_536
    nodes: int = 2_000
    variables_bytes: int = 65_536
    output_chars: int = 262_144
    steps: int = 100_000
    seconds: float = 0.25


class Budget:
    """The budget of one rendering. A step is about one node evaluated.

    Its seconds are real ones, whatever a test's clock says: rendering holds up the loop.
    """

    def __init__(self, caps: Caps) -> None:
        self._steps = caps.steps
        self._until = SystemClock.monotonic() + caps.seconds
        self.chars = caps.output_chars

    def spend(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0 or SystemClock.monotonic() > self._until:
            raise Invalid("The template takes too many steps; give it shorter lists or fewer loops.")

    def check_size(self, chars: int) -> None:
        if chars > self.chars:
            raise Invalid(f"The template makes a text of more than {self.chars} characters; make it shorter.")


class MeteredContext(Context):
    """One per rendering, so the budget is too."""

    def __init__(self, environment: Sandbox, *args: Any, **kwargs: Any) -> None:
        super().__init__(environment, *args, **kwargs)
        self.budget = Budget(environment.caps)


class Sandbox(ImmutableSandboxedEnvironment):
    """Compiles templates of one language, as plain text or as HTML (which escapes every variable)."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self, language: str, *, html: bool, caps: Caps) -> None:
        super().__init__(
            undefined=StrictUndefined,
            autoescape=html,
            finalize=_printable,
            optimized=False,
            keep_trailing_newline=False,
        )
        self.language = language
        self.caps = caps
        self.context_class = MeteredContext
        self.globals.clear()
        self.filters = {name: _metered(function) for name, function in filters_of(language).items()}
        self.filters |= {"join": _join, _WALK: _walk}

    def compile_text(self, text: str) -> Template:
        if len(text) > self.caps.template_chars:
            raise Invalid(f"The template has {len(text)} characters; at most {self.caps.template_chars} are allowed.")
        try:
            tree = self.parse(text)
            _check(tree, self)
            return Template.from_code(self, self.compile(tree), {})
        except TemplateSyntaxError as error:
            raise Invalid(f"Line {error.lineno} of the template is wrong: {error.message}") from None
        except (RecursionError, ValueError):
            raise Invalid("The template is nested too deeply or has a number that is too long.") from None

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        for value in (left, right):
            if isinstance(value, Undefined):
                str(value)  # says which variable is missing
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            _budget(context).check_size(len(left) + len(right))
        elif not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise Invalid(f"The template uses {operator} on something that is not a number.")
        return _small(self.binop_table[operator](left, right))


# What may stand in a template. No macros, imports, blocks, calls of functions, `~`, `**` or {% autoescape %}.
_ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Assign),
    *(nodes.Name, nodes.Const, nodes.Tuple, nodes.List, nodes.CondExpr, nodes.Filter, nodes.Test, nodes.Keyword),
    *(nodes.Getitem, nodes.Getattr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.Pos),
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Call),
)
_METHODS = frozenset({"items", "keys", "values"})
_WALK = "a loop"  # no template can write a name with a space


def _check(tree: nodes.Template, sandbox: Sandbox) -> None:
    every = list(tree.find_all(nodes.Node))
    if len(every) > sandbox.caps.nodes:
        raise Invalid(f"The template has {len(every)} parts; at most {sandbox.caps.nodes} are allowed.")
    for node in every:
        if not isinstance(node, _ALLOWED) or not _is_plain(node):
            raise Invalid(f"Line {node.lineno} of the template uses {_word(node)}, which templates may not.")
        if isinstance(node, nodes.Filter) and node.name not in sandbox.filters:
            known = ", ".join(sorted(name for name in sandbox.filters if name != _WALK))
            raise Invalid(f"Line {node.lineno} of the template uses the filter {node.name!r}; there are: {known}.")
    for loop in [node for node in every if isinstance(node, nodes.For)]:
        weight = 1 + sum(1 for part in loop.body for _ in part.find_all(nodes.Node))
        loop.iter = nodes.Filter(loop.iter, _WALK, [nodes.Const(weight)], [], None, None, lineno=loop.lineno)


def _is_plain(node: nodes.Node) -> bool:
    """The parts that are allowed in one form only."""
    if isinstance(node, nodes.For):
        return not node.recursive
    if isinstance(node, nodes.Tuple | nodes.List):
        # A list of variables could be doubled again and again: {% set a = [a, a] %}
        return getattr(node, "ctx", "load") == "store" or all(isinstance(item, nodes.Const) for item in node.items)
    if isinstance(node, nodes.Call):
        return isinstance(node.node, nodes.Getattr) and node.node.attr in _METHODS and not (node.args or node.kwargs)
    if isinstance(node, nodes.Getattr):
        return not node.attr.startswith("_")
    if isinstance(node, nodes.Assign):
        return isinstance(node.target, nodes.Name)
    return getattr(node, "dyn_args", None) is None and getattr(node, "dyn_kwargs", None) is None


def _word(node: nodes.Node) -> str:
    return {"Call": "a function call", "Concat": "~", "Pow": "**"}.get(type(node).__name__, type(node).__name__.lower())


def _printable(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, str | int | float | Undefined):
        return value
    raise Invalid("The template prints a list or an object; loop over it, join it, or print one of its parts.")


def _small(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > 10**18:
        raise Invalid("The template computes a number that is too large.")
    return value


def _budget(context: Context) -> Budget:
    assert isinstance(context, MeteredContext)
    return context.budget


@pass_context
def _walk(context: Context, items: Any, weight: int) -> Iterator[Any]:
    if not isinstance(items, Iterable):
        raise Invalid("The template loops over something that is not a list.")
    for item in items:
        _budget(context).spend(weight)
        yield item


@pass_context
def _join(context: Context, items: Any, separator: str = "") -> str:
    texts = [_text(context, item) for item in _walk(context, items, 1)]
    between = _text(context, separator)
    _budget(context).check_size(sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


def _text(context: Context, value: Any) -> str:
    text = _printable(value)
    return escape(text) if context.eval_ctx.autoescape else str(text)


def _metered(function: Callable[..., Any]) -> Callable[..., Any]:
    @pass_context
    def run(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        budget = _budget(context)
        budget.spend(1 + _size(value) // 1024)
        result = function(value, *args, **kwargs)
        budget.check_size(_size(result))
        return result

    return run


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | list | Mapping) else 1
