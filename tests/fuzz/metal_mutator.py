"""Changes Metal texts token by token and line by line, so that most of what comes out is nearly right."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from metal_fragments import ATTRIBUTES, DECLARATIONS, FUNCTIONS, STATEMENTS, TYPES

TOKEN = re.compile(
    r"//[^\n]*|\#[^\n]*|\s+|[A-Za-z_]\w*|\.?\d(?:[\w.]|(?<=[eEpP])[+-])*"
    r"|<<=|>>=|\[\[|\]\]|<<|>>|[-+*/%&|^<>=!]=|&&|\|\||\+\+|--|->|::|.",
    re.S,
)
NUMBERS = (
    "0 1 -1 2 3 7 8 16 31 32 33 40 63 64 65 127 128 255 256 1024 32767 65535 65536 2147483647 (-2147483647-1) "
    "4294967295u 9223372036854775807l 18446744073709551615ul 0.0f -0.0f 1e20f -1e20f INFINITY NAN 65504.0h 1e-45f 0x7fffffff"
).split()
OPERATORS = (
    "+ - * / % & | ^ << >> && || == != < > <= >= = += -= *= /= %= <<= >>= ? : , ; ! ~ ++ -- . ->"
).split()
BINARY = "+ - * / % & | ^ << >> && || == != < > <= >=".split()
WORDS = (
    "int uint float half bfloat char uchar short ushort long ulong bool float4 int4 uint3 half2 void auto const constexpr static "
    "device threadgroup constant thread if else for while do switch case default break continue return struct template typename "
    "namespace using true false nullptr sizeof inline volatile goto this new delete throw operator enum union "
    "as_type simd_sum simd_shuffle simd_broadcast threadgroup_barrier mem_flags mem_threadgroup atomic_fetch_add_explicit clamp select "
    "simdgroup_float8x8 simdgroup_load simdgroup_multiply_accumulate"
).split()
ODDITIES = ("\0", "\\\n", "\r", "\r\n", "\f", "é", "\u200b", "\ufeff", "??/", "@", "`", "$", '"', "'", "\\", "/*", "*/", "#")  # fmt: skip
COUNTS = ("2", "3", "4", "7", "33", "100", "1000")
VISIBLE = 12  # the variables that are declared last are taken for those in scope
BRACKETS = {"(": ")", "[": "]", "{": "}", "[[": "]]"}


def tokens_of(text: str) -> list[str]:
    return TOKEN.findall(text)


def is_space(token: str) -> bool:
    return token.isspace() or token.startswith("//")


def group_end(tokens: list[str], start: int) -> int:
    """One past the token that closes the bracket at ``start``."""
    open_, close = tokens[start], BRACKETS[tokens[start]]
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index] == open_) - (tokens[index] == close)
        if depth == 0:
            return index + 1
    return len(tokens)


def variables_before(tokens: list[str], end: int) -> list[str]:
    """The names that look declared before a place: behind a name, ``>``, ``*`` or ``&``, and before what ends a declarator."""
    names, words = [], [token for token in tokens[:end] if not is_space(token)]
    for before, name, after in zip(words, words[1:], words[2:], strict=False):
        is_behind_type = (before[0].isalpha() and before != "return") or before in (">", "*", "&")
        if is_behind_type and name[0].isalpha() and after in ("=", ";", ",", ")", "[", "[["):
            names.append(name)
    return names


class Mutator:
    """Makes one text out of others. The same texts, seed and number give the same mutant."""

    def __init__(self, texts: Sequence[str], seed: int) -> None:
        self.texts = [tokens_of(text) for text in texts]
        self.seed = seed
        self.random = random.Random()

    def mutant(self, number: int) -> str:
        self.random.seed(f"{self.seed}/{number}")
        tokens = list(self.random.choice(self.texts))
        gentle = self.random.random() < 0.6
        for _ in range(self.random.choice((1, 1, 1, 1, 2, 2, 3, 6))):
            self.mutate(tokens, gentle)
        return "".join(tokens)

    def mutate(self, tokens: list[str], gentle: bool) -> None:
        """Changes a place. A gentle change most often leaves a text that compiles."""
        choices: list[Callable[[list[str]], None]] = [self.number, self.wrap] * 6
        choices += [self.operator, self.function, self.statement] * 2 + [self.declaration]
        if not gentle:
            choices += [self.type, self.operator, self.statement, self.declaration] * 2
            choices += [self.delete, self.duplicate, self.swap, self.word, self.rename, self.line]
            choices += [self.splice, self.nest, self.drop_group, self.repeat_line, self.cut]
            choices += [self.attribute, self.oddity, self.long_expression]
        self.random.choice(choices)(tokens)

    def pick(
        self,
        tokens: list[str],
        accept: Callable[[str], bool] = lambda token: not is_space(token),
    ) -> int | None:
        places = [index for index, token in enumerate(tokens) if accept(token)]
        return self.random.choice(places) if places else None

    def pick_start(self, tokens: list[str], outside: bool) -> int | None:
        """A place behind ``;``, ``{`` or ``}`` where a declaration outside of functions, or a statement, may stand."""
        places, depth, braces = [], 0, 0
        for index, token in enumerate(tokens):
            braces += (token == "{") - (token == "}")
            depth += (token in "([") - (token in ")]") if len(token) == 1 else 0
            if token in (";", "{", "}") and depth == 0 and (braces == 0) == outside:
                places.append(index + 1)
        return self.random.choice(places) if places else None

    def pick_operand(self, tokens: list[str]) -> int | None:
        """A number, or a name between what stands around operands."""
        words = [(index, token) for index, token in enumerate(tokens) if not is_space(token)]
        places = [
            index
            for (_, before), (index, name), (_, after) in zip(
                words, words[1:], words[2:], strict=False
            )
            if name[0].isdigit()
            or (
                name[0].isalpha()
                and before in ("=", "(", ",", "return", "[", *BINARY)
                and after in (";", ")", ",", "]", *BINARY)
            )
        ]
        return self.random.choice(places) if places else None

    def number(self, tokens: list[str]) -> None:
        at = self.pick(tokens, lambda token: token[0].isdigit())
        if at is not None:
            tokens[at] = self.random.choice(NUMBERS)

    def operator(self, tokens: list[str]) -> None:
        at = self.pick(tokens, lambda token: token in OPERATORS)
        if at is not None:
            alike = BINARY if tokens[at] in BRACKETS or tokens[at] in BINARY else OPERATORS
            tokens[at] = self.random.choice(self.random.choice((alike, alike, OPERATORS)))

    def type(self, tokens: list[str]) -> None:
        at = self.pick(tokens, TYPES.__contains__)
        if at is not None:
            tokens[at] = self.random.choice(TYPES)

    def function(self, tokens: list[str]) -> None:
        """Another function of the library with as many operands."""
        group = self.random.choice(FUNCTIONS)
        at = self.pick(tokens, group.__contains__)
        if at is not None:
            tokens[at] = self.random.choice(group)

    def wrap(self, tokens: list[str]) -> None:
        """Makes an operand of an operator or a function out of a name or a number."""
        at = self.pick_operand(tokens)
        if at is None:
            return
        operand, choose = tokens[at], self.random.choice
        other = choose(
            (choose(NUMBERS), operand, f"{choose(FUNCTIONS[0])}({operand})", choose(NUMBERS))
        )
        tokens[at] = choose(
            (
                f"({operand} {choose(BINARY)} {other})",
                f"{choose(FUNCTIONS[0])}({operand})",
                f"{choose(FUNCTIONS[1])}({operand}, {other})",
                f"{choose(TYPES)}({operand})",
                f"({operand} {choose(BINARY)} {other} ? {operand} : {other})",
                f"as_type<{choose(TYPES)}>({operand})",
            )
        )

    def statement(self, tokens: list[str]) -> None:
        self.insert(tokens, self.pick_start(tokens, outside=False), STATEMENTS)

    def declaration(self, tokens: list[str]) -> None:
        self.insert(tokens, self.pick_start(tokens, outside=True), DECLARATIONS)

    def insert(self, tokens: list[str], at: int | None, fragments: Sequence[str]) -> None:
        """Puts a fragment at a place: ``@T``, ``@N`` and ``@V`` in it are a type, a number and a name of the text."""
        if at is None:
            return
        names = variables_before(tokens, at)
        draw = {"T": TYPES, "N": NUMBERS, "V": names[-VISIBLE:] or ["x"], "C": COUNTS}
        text = re.sub(
            "@([TNVC])",
            lambda found: self.random.choice(draw[found[1]]),
            self.random.choice(fragments),
        )
        tokens[at:at] = tokens_of("\n" + text + "\n")

    def attribute(self, tokens: list[str]) -> None:
        at = self.pick(tokens, lambda token: token == "[[")
        if at is not None and self.random.random() < 0.5:
            tokens[at : group_end(tokens, at)] = [f"[[{self.random.choice(ATTRIBUTES)}]]"]
        elif (at := self.pick(tokens)) is not None:
            tokens[at:at] = [f" [[{self.random.choice(ATTRIBUTES)}]] "]

    def oddity(self, tokens: list[str]) -> None:
        at = self.pick(tokens)
        if at is not None:
            tokens[at:at] = [self.random.choice(ODDITIES)]

    def long_expression(self, tokens: list[str]) -> None:
        at = self.pick(tokens, lambda token: token[0].isalnum())
        if at is not None:
            operator = self.random.choice((*BINARY, ","))
            count = self.random.choice((10, 100, 1000, 3000))
            operand = self.random.choice((tokens[at], self.random.choice(NUMBERS)))
            tokens[at] = "(" + f" {operator} ".join([tokens[at]] + [operand] * count) + ")"

    def delete(self, tokens: list[str]) -> None:
        at = self.pick(tokens)
        if at is not None:
            del tokens[at : at + self.random.choice((1, 1, 1, 2, 5))]

    def duplicate(self, tokens: list[str]) -> None:
        at = self.pick(tokens)
        if at is not None:
            part = tokens[at : at + self.random.choice((1, 2, 6, 20))]
            tokens[at:at] = part * self.random.choice((1, 1, 1, 3))

    def swap(self, tokens: list[str]) -> None:
        a, b = self.pick(tokens), self.pick(tokens)
        if a is not None and b is not None:
            tokens[a], tokens[b] = tokens[b], tokens[a]

    def word(self, tokens: list[str]) -> None:
        at = self.pick(tokens)
        if at is not None:
            tokens[at : at + self.random.choice((0, 1))] = [" ", self.random.choice(WORDS), " "]

    def rename(self, tokens: list[str]) -> None:
        a = self.pick(tokens, lambda token: token[0].isalpha())
        b = self.pick(tokens, lambda token: token[0].isalpha())
        if a is not None and b is not None:
            tokens[a] = tokens[b]

    def splice(self, tokens: list[str]) -> None:
        other = self.random.choice(self.texts)
        at, start = self.pick(tokens), self.random.randrange(len(other))
        if at is not None:
            tokens[at:at] = other[start : start + self.random.choice((3, 10, 40, 200))]

    def nest(self, tokens: list[str]) -> None:
        kind = self.random.choice(list(BRACKETS) + ["!", "-", "~", "*", "&", "(int)", "if (1) "])
        depth = self.random.choice((2, 10, 100, 3000))
        if kind in BRACKETS:
            at = self.pick(tokens, lambda token: token == kind)
            if at is None:
                return
            end = group_end(tokens, at)
            tokens[at:end] = [kind] * depth + tokens[at:end] + [BRACKETS[kind]] * depth
        else:
            at = self.pick(tokens)
            if at is not None:
                tokens[at:at] = [kind] * depth

    def drop_group(self, tokens: list[str]) -> None:
        at = self.pick(tokens, lambda token: token in BRACKETS)
        if at is not None:
            del tokens[at : group_end(tokens, at)]

    def line_at(self, tokens: list[str]) -> tuple[int, int] | None:
        """The tokens of a line."""
        at = self.pick(tokens, lambda token: "\n" in token)
        if at is None:
            return None
        end = next((k for k in range(at + 1, len(tokens)) if "\n" in tokens[k]), len(tokens))
        return at, end

    def repeat_line(self, tokens: list[str]) -> None:
        if found := self.line_at(tokens):
            at, end = found
            tokens[at:end] = tokens[at:end] * self.random.choice((2, 3, 50))

    def line(self, tokens: list[str]) -> None:
        """Moves, copies or drops a line."""
        if found := self.line_at(tokens):
            line, kind = tokens[slice(*found)], self.random.choice(("move", "copy", "drop"))
            if kind != "copy":
                del tokens[slice(*found)]
            if kind != "drop" and (target := self.line_at(tokens)):
                tokens[target[0] : target[0]] = line

    def cut(self, tokens: list[str]) -> None:
        at = self.pick(tokens)
        if at is not None:
            del tokens[at:]
