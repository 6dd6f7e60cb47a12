"""Changes texts of Triton IR token by token."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

TOKEN = re.compile(
    rb'"(?:[^"\\\n]|\\.)*"|//[^\n]*|%[\w$.-]+|[#!@^][\w$.-]+|-?\d+\.\d*(?:[eE][-+]?\d+)?|0x[0-9A-Fa-f]+|-?\d+(?=x)|x(?=[\d!a-z])'
    rb"|-?\d+|[A-Za-z_][\w$.]*|->|::|==|\n|[ \t]+|.",
    re.S,
)
NUMBERS = [
    b"0", b"1", b"-1", b"2", b"3", b"7", b"8", b"16", b"31", b"32", b"33", b"63", b"64", b"100", b"128", b"255", b"256",
    b"1024", b"4096", b"65535", b"65536", b"1048576", b"2097152", b"1073741824", b"2147483647", b"2147483648",
    b"-2147483648", b"4294967295", b"4294967296", b"9223372036854775807", b"-9223372036854775808",
    b"18446744073709551615", b"18446744073709551616", b"99999999999999999999999999", b"0x7FF0000000000000", b"0xFFFFFFFF",
    b"1.0", b"-0.0", b"1.0e400", b"00", b"-00",
]  # fmt: skip
TYPES = [
    b"i1", b"i8", b"i16", b"i32", b"i64", b"i128", b"i3", b"i0", b"i16777215", b"i16777216", b"si32", b"ui8", b"index",
    b"f16", b"bf16", b"f32", b"f64", b"f80", b"f128", b"tf32", b"f8E5M2", b"f8E4M3FN", b"f8E4M3FNUZ", b"f4E2M1FN",
    b"none", b"!tt.ptr<f32>", b"!tt.ptr<i8>", b"!tt.ptr<f32, 3>", b"!tt.ptr<!tt.ptr<f32>>", b"!tt.ptr<i128>",
    b"tensor<f32>", b"tensor<0xf32>", b"tensor<?xf32>", b"tensor<*xf32>", b"tensor<1xf32>", b"tensor<16x16xf32>",
    b"tensor<1073741824xf32>", b"tensor<1048576x4611686018427387904xi32>", b"tensor<4x!tt.ptr<f32>>",
    b"tensor<2x2x2x2x2x2x2x2xi32>", b"tensor<4xtensor<4xf32>>", b"vector<4xf32>", b"memref<4xf32>", b"complex<f32>",
    b"tuple<i32, f32>", b"(i32) -> i32", b"tensor<16xf32, #ttm.linear<{register = [[1]], lane = [], simdgroup = []}>>",
    b"tensor<16xf32, 7 : i32>", b"!llvm.ptr", b"!msl.ptr<f32, device>", b"!tt.nothing", b"!unknown.type",
]  # fmt: skip
TYPE = re.compile(rb"i\d+|bf16|f\d+(E\dM\d\w*)?|tf32|index$")
RESULT = re.compile(rb"^ *(%[\w$.-]+) = \"[^\n]* -> ([^\n()]+)$", re.M)
USE = re.compile(rb"%[\w$.-]+(?=[,)])")
WORDS = re.compile(rb"[A-Za-z_]")


def tokens_of(text: bytes) -> list[bytes]:
    return TOKEN.findall(text)


def is_blank(token: bytes) -> bool:
    return not token.strip(b" \t\n")


def is_number(token: bytes) -> bool:
    return token.lstrip(b"-")[:1].isdigit()


class Mutator:
    """Draws changed texts of a corpus."""

    def __init__(self, corpus: list[bytes], seed: int) -> None:
        self.random = random.Random(seed)
        self.corpus = [tokens_of(text) for text in corpus]
        self.lines = [line for text in corpus for line in text.splitlines(keepends=True)]
        words = {token for tokens in self.corpus for token in tokens if WORDS.match(token)}
        self.words = sorted(words)
        self.operations = [word for word in self.words if b"." in word]
        self.known = set(self.operations)

    def draw(self) -> bytes:
        tokens = list(self.random.choice(self.corpus))
        for _ in range(self.random.choice([1, 1, 1, 1, 2, 2, 3, 5])):
            change = self.random.choice(self.CHANGES)
            tokens = change(self, tokens) or [b" "]
        text = b"".join(tokens)
        if self.random.random() < 0.01:
            text = self.spoil(text)
        return text

    def place(
        self, tokens: list[bytes], wanted: Callable[[bytes], object] | None = None
    ) -> int | None:
        """Where there is a wanted token, or any that is not blank."""
        wanted = wanted or (lambda token: not is_blank(token))
        places = [index for index, token in enumerate(tokens) if wanted(token)]
        return self.random.choice(places) if places else None

    def spoil(self, text: bytes) -> bytes:
        """Bytes that are no text."""
        where = self.random.randrange(len(text) + 1)
        what = self.random.choice([b"\0", b"\xff\xfe", b"\xc3\x28", b"\r", b"\\", b'"', b"ML\xefR"])
        return self.random.choice([text[:where] + what + text[where:], text[:where], what + text])

    # One token.

    def delete(self, tokens: list[bytes]) -> list[bytes]:
        if (at := self.place(tokens)) is not None:
            del tokens[at]
        return tokens

    def duplicate(self, tokens: list[bytes]) -> list[bytes]:
        if (at := self.place(tokens)) is not None:
            tokens[at:at] = [tokens[at], b" "]
        return tokens

    def swap(self, tokens: list[bytes]) -> list[bytes]:
        a, b = self.place(tokens), self.place(tokens)
        if a is not None and b is not None:
            tokens[a], tokens[b] = tokens[b], tokens[a]
        return tokens

    def number(self, tokens: list[bytes]) -> list[bytes]:
        if (at := self.place(tokens, is_number)) is not None:
            tokens[at] = self.random.choice(NUMBERS)
        return tokens

    def type(self, tokens: list[bytes]) -> list[bytes]:
        if (at := self.place(tokens, TYPE.match)) is not None:
            tokens[at] = self.random.choice(TYPES)
        return tokens

    def word(self, tokens: list[bytes]) -> list[bytes]:
        if (at := self.place(tokens, WORDS.match)) is not None:
            tokens[at] = self.random.choice(self.words)
        return tokens

    def operation(self, tokens: list[bytes]) -> list[bytes]:
        """Another operation of the same dialect."""
        at = self.place(tokens, lambda token: token in self.known)
        if at is not None:
            dialect = tokens[at].split(b".")[0] + b"."
            tokens[at] = self.random.choice([w for w in self.operations if w.startswith(dialect)])
        return tokens

    def value(self, tokens: list[bytes]) -> list[bytes]:
        """Another value of the text, sometimes one of its results."""
        at = self.place(tokens, lambda token: token.startswith(b"%"))
        if at is not None:
            tokens[at] = self.random.choice([token for token in tokens if token.startswith(b"%")])
            if self.random.random() < 0.05:
                tokens[at] += b"#" + self.random.choice(NUMBERS)
        return tokens

    def same_type(self, tokens: list[bytes]) -> list[bytes]:
        """Another value of the same type, in MLIR's generic form, which tells the types."""
        text = b"".join(tokens)
        types = dict(RESULT.findall(text))
        uses = [use for use in USE.finditer(text) if use[0] in types]
        if not uses:
            return self.value(tokens)
        use = self.random.choice(uses)
        others = [value for value, type in types.items() if type == types[use[0]]]
        return tokens_of(text[: use.start()] + self.random.choice(others) + text[use.end() :])

    # The whole text at once: what is consistent comes further.

    def every(self, tokens: list[bytes]) -> list[bytes]:
        at = self.place(tokens, lambda token: is_number(token) or TYPE.match(token) is not None)
        if at is None:
            return tokens
        old = tokens[at]
        usual = [b"i1", b"i8", b"i16", b"i32", b"i64", b"f16", b"bf16", b"f32", b"f64", b"f8E5M2"]
        new = self.random.choice(
            [b"1", b"2", b"4", b"8", b"16", b"32", b"64", b"128", b"256", b"512", b"0", b"-1", b"3"]
            if is_number(old)
            else usual * 3 + TYPES
        )
        return [new if token == old else token for token in tokens]

    # Lines.

    def line(self, tokens: list[bytes]) -> list[bytes]:
        lines = b"".join(tokens).splitlines(keepends=True)
        if not lines:
            return tokens
        a, b = self.random.randrange(len(lines)), self.random.randrange(len(lines))
        kind = self.random.randrange(5)
        if kind == 0:
            del lines[a]
        elif kind == 1:
            lines.insert(b, lines[a])
        elif kind == 2:
            lines[a], lines[b] = lines[b], lines[a]
        elif kind == 3:
            lines.insert(a, self.random.choice(self.lines))
        else:
            lines[a] = self.random.choice(self.lines)
        return tokens_of(b"".join(lines))

    def part(self, tokens: list[bytes]) -> list[bytes]:
        """A stretch of another text, or of this one once more."""
        other = self.random.choice([tokens, self.random.choice(self.corpus)])
        a, b = self.random.randrange(len(other) + 1), self.random.randrange(len(tokens) + 1)
        tokens[b:b] = other[a : a + self.random.choice([2, 5, 20, 100])]
        return tokens

    def nest(self, tokens: list[bytes]) -> list[bytes]:
        """Something deep."""
        if self.random.random() < 0.9:
            return self.every(tokens)
        depth = self.random.choice([10, 100, 1000, 20000])
        if (at := self.place(tokens)) is not None:
            pair = self.random.choice(
                [(b"[", b"]"), (b"(", b")"), (b"{", b"}"), (b"!tt.ptr<", b">"), (b"tuple<", b">")]
            )
            tokens[at : at + 1] = [pair[0]] * depth + [tokens[at]] + [pair[1]] * depth
        return tokens

    CHANGES = (
        delete, duplicate, swap, number, number, number, type, type, word, operation, operation, value, same_type, same_type, same_type,
        same_type, every, every, every, line, line, line, part, nest,
    )  # fmt: skip
