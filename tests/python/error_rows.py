"""The rows of the table of errors: for each, a name, the kernel's lines, the line that is at fault, and words of the
message. ``x`` is a pointer to float32, ``i`` one to int32, ``n`` an int32, and ``N`` the constexpr 16.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One kernel that is refused."""

    name: str
    body: str
    #: The text of the line that the message points at.
    line: str
    words: tuple[str, ...]


def _rows(text: str) -> list[Row]:
    """Rows from blocks of text: ``# name | words | line`` and the kernel's lines. Without a line, the last one counts."""
    rows = []
    for block in text.strip("\n").split("\n\n"):
        head, *lines = block.split("\n")
        name, words, *line = (part.strip() for part in head.removeprefix("#").split("|"))
        body = "\n".join(lines)
        rows.append(
            Row(name, body, line[0] if line else lines[-1].strip(), tuple(words.split("; ")))
        )
    return rows


#: Python that kernels do not hold.
PYTHON = _rows("""
# try | try; exceptions | try:
try:
    n = 1
except ValueError:
    n = 2

# raise | raise; tl.static_assert
raise ValueError("no")

# class | class definitions | class A:
class A:
    pass

# dictionary | dictionaries
d = {"a": 1}

# set | sets
d = {1, 2}

# dictionary comprehension | dictionary comprehensions
d = {k: k for k in (1, 2)}

# set comprehension | set comprehensions
d = {k for k in (1, 2)}

# generator | generator expressions
d = (k for k in (1, 2))

# yield | yield
yield n

# import | import; outside
import math

# from import | import; outside
from math import pi

# with | with | with n:
with n:
    pass

# match | match; if and elif | match n:
match n:
    case 1:
        pass

# del | del
del n

# global | global
global GLOBAL

# async def | async | async def f():
async def f():
    pass

# attribute assignment | attributes cannot be assigned
x.shape = 1

# subscript assignment | cannot be assigned; tl.store(x + 0, value)
x[0] = 1

# subscript augmented | assigned
x[0] += 1

# starred target | * in assignment
a, *b = (1, 2, 3)

# annotated attribute | name can be annotated
x.y: tl.constexpr = 1

# else after for | else after a loop | for k in range(4):
for k in range(4):
    pass
else:
    pass

# else after while | else after a loop | while n > 0:
while n > 0:
    n -= 1
else:
    pass

# keyword expansion | **
tl.store(**n)

# nested comprehension | nested comprehensions
a = [j + k for j in (1, 2) for k in (3, 4)]

# comprehension over a number | iterates over a tuple
a = [k for k in N]

# decorator inside | decorators; module level | def f(a):
@triton.jit
def f(a):
    return a

# early returns of two types in a local function | Return type mismatch | return v
def f(a):
    if a > 0:
        return 1
    return v
v = tl.load(x + tl.arange(0, 16))
b = f(n)

# local function with kwargs | **rest | def f(**rest):
def f(**rest):
    return 1

# lambda with too many arguments | takes 1 arguments, but 2
b = (lambda a: a)(1, 2)

# lambda without an argument | argument a is missing
b = (lambda a: a)()

# lambda with an unknown keyword | no parameter b
b = (lambda a: a)(b=1)

# recursive local function | calls itself; recursion | return f(a)
def f(a):
    return f(a)
b = f(n)

# undefined name | missing is not defined
b = missing

# undefined in augmented assignment | b is not defined
b += 1

# global integer | GLOBAL; global; constexpr
b = GLOBAL

# global list | TABLE; global; constexpr
b = TABLE

# unknown tl name | has no 'nothing'
tl.nothing(n)

# host function | host_function; @triton
b = host_function(n)

# math of a tensor | sqrt; compile-time
b = math.sqrt(n)

# int of a tensor | int; compile-time
b = int(n)

# len of a scalar | len
b = len(n)

# bytes index | compile-time
b = (1, 2)[n]

# tuple index out of range | range
b = (1, 2)[5]

# unpack a scalar | cannot unpack; not a tuple
a, b = n

# unpack too many | 2 names for a tuple of 3
a, b = (1, 2, 3)

# call a number | not a function of the language
b = N(3)

# iterate over a tensor | must iterate over | for k in x:
for k in x:
    pass

# iterate over a number | must iterate over | for k in N:
for k in N:
    pass

# step 0 | step of a loop must not be 0 | for k in range(0, n, 0):
for k in range(0, n, 0):
    pass

# a step without a negative | int32 does not have its negative | for k in range(n, 0, -(2**31)):
for k in range(n, 0, -(2**31)):
    pass

# two targets over a range | one name | for a, b in range(4):
for a, b in range(4):
    pass

# zip of a tensor | zip takes tuples | for a, b in zip(n, n):
for a, b in zip(n, n):
    pass

# enumerate of a tensor | enumerate takes tuples | for a, b in enumerate(n):
for a, b in enumerate(n):
    pass

# unpack in a static loop | 2 names for a tuple of 3 | for a, b in ((1, 2, 3),):
for a, b in ((1, 2, 3),):
    pass

# f-string of a tensor | f-string; compile-time
tl.static_print(f"{n}")

# return a value | cannot return a value
return n

# matmul operator | MatMult
b = n @ n

# power of a tensor | **; compile-time
b = n ** 2

# in of a tensor | In
b = n in (1, 2)

# string plus number | unsupported operand
b = 0 + "a"

# float shift | unsupported operand
b = 1.0 << 1

# minus tuple | bad operand
b = -(1, 2)

# tensor plus string | unsupported operands for +
b = n + "a"

# tensor plus None | unsupported operands for +
b = n + None

# tensor plus dtype | unsupported operands for +
b = n + tl.float32

# compile-time exception | ZeroDivisionError; division
b = 1 // 0
""")

#: What loops and branches may not change.
CONTROL = _rows("""
# constexpr changed in a loop | compile-time value cannot change | for k in range(n):
c: tl.constexpr = 1
for k in range(n):
    c: tl.constexpr = 2

# constexpr changed in while | compile-time value cannot change | while n > 0:
c: tl.constexpr = 1
while n > 0:
    c: tl.constexpr = 2
    n -= 1

# type changed in a loop | type must stay the same | for k in range(n):
a = 0
for k in range(n):
    a = 1.5

# shape changed in a loop | type must stay the same | for k in range(n):
a = tl.arange(0, 8)
for k in range(n):
    a = tl.arange(0, 16)

# type differs between branches | Mismatched type for | if n > 0:
if n > 0:
    a = 1
else:
    a = 1.5

# type changed in a branch | type must not depend | if n > 0:
a = 1
if n > 0:
    a = 1.5

# expression with two types | has inconsistent types
a = 1 if n > 0 else 1.5

# loop variable of another type after the loop | loop that has ended
k = 1.5
for k in range(n):
    pass
tl.store(i, k)

# assigned in a loop only | only a loop assigns it
for k in range(n):
    a = k
tl.store(i, a)

# assigned on one path only | only one path
if n > 0:
    a = 1
tl.store(i, a)

# float bound | integer | for k in range(1.5):
for k in range(1.5):
    pass

# string bound | integer | for k in range("a"):
for k in range("a"):
    pass

# range without arguments | 1 to 3 arguments | for k in range():
for k in range():
    pass

# run-time static range | static_range | for k in tl.static_range(n):
for k in tl.static_range(n):
    pass

# unknown option of range | unroll | for k in tl.range(4, unroll=2):
for k in tl.range(4, unroll=2):
    pass

# break that depends on a run-time value | run-time condition; tl.range | break
for k in tl.static_range(4):
    if n > 2:
        break

# condition of a tile | scalar | if tl.arange(0, 8) > 2:
if tl.arange(0, 8) > 2:
    n = 1

# condition of a string | boolean | if "a":
if "a":
    n = 1

# condition of a tuple | boolean | if (1, 2):
if (1, 2):
    n = 1

# while of a tile | scalar | while tl.arange(0, 8) > 2:
while tl.arange(0, 8) > 2:
    n = 1

# false static assert | static assertion failed; too small
tl.static_assert(N > 100, "N is too small")

# run-time static assert | compile-time condition
tl.static_assert(n > 0)

# static assert without a condition | condition
tl.static_assert()

# false assert | assertion failed
assert N > 100, "N is too small"
""")

#: Wrong arguments of the language's functions.
FUNCTIONS = _rows("""
# program_id axis | axis
tl.store(i, tl.program_id(3))

# program_id of a tensor | axis; constexpr
tl.store(i, tl.program_id(n))

# num_programs axis | axis
tl.store(i, tl.num_programs(-1))

# arange not a power of two | power of 2
a = tl.arange(0, 7)

# arange of a tensor | constexpr
a = tl.arange(0, n)

# arange backwards | arange
a = tl.arange(8, 0)

# arange too few arguments | end
a = tl.arange(0)

# full shape | power of 2
a = tl.full((33,), 0, tl.int32)

# full shape of a tensor | constexpr; shape
a = tl.full((n,), 0, tl.int32)

# full dtype | dtype
a = tl.full((8,), 0, "float")

# zeros without dtype | dtype
a = tl.zeros((8,))

# too large a tile | elements
a = tl.zeros((1024, 1024, 4), tl.float32)

# load of a number | pointer
a = tl.load(5)

# load of a tile of numbers | pointer
a = tl.load(tl.arange(0, 8))

# load mask shape | broadcast; shape
a = tl.load(x + tl.arange(0, 8), mask=tl.arange(0, 16) < 3)

# load other without mask | other; mask
a = tl.load(x + tl.arange(0, 8), other=0.0)

# load boundary check | block pointers
a = tl.load(x + tl.arange(0, 8), boundary_check=(0,))

# load cache modifier | cache
a = tl.load(x, cache_modifier=".zz")

# load eviction policy | eviction
a = tl.load(x, eviction_policy="never")

# load unknown keyword | keyword
a = tl.load(x, masks=None)

# store to a number | pointer
tl.store(5, 1)

# store shape | broadcast; shape
tl.store(x + tl.arange(0, 8), tl.arange(0, 16))

# store scalar pointer of a tile | store
tl.store(x, tl.arange(0, 8))

# store without value | value
tl.store(x)

# store mask | mask
tl.store(x, 1.0, mask=tl.arange(0, 8) < 4)

# pointer plus float | pointer
a = x + 1.5

# pointer plus pointer | pointer
a = x + x

# pointer times | pointer
a = x * 2

# pointer minus | pointer
a = -x

# float and | float
a = tl.load(x) & 1

# float shift of a tensor | float
a = tl.load(x) << 1

# float invert | float
a = ~tl.load(x)

# broadcast of shapes | broadcast; shape
a = tl.arange(0, 8) + tl.arange(0, 16)

# broadcast_to | cannot broadcast [8] to [16]
a = tl.broadcast_to(tl.arange(0, 8), (16,))

# reshape numel | elements
a = tl.reshape(tl.arange(0, 8), (16,))

# reshape of a tensor size | constexpr
a = tl.reshape(tl.arange(0, 8), (n,))

# expand_dims axis | axis
a = tl.expand_dims(tl.arange(0, 8), 5)

# expand_dims twice | twice
a = tl.expand_dims(tl.arange(0, 8), (0, 0))

# permute dims | permut
a = tl.permute(tl.zeros((8, 8), tl.int32), (0, 0))

# trans of one dimension | 2 dimensions
a = tl.trans(tl.arange(0, 8))

# join shapes | shape
a = tl.join(tl.arange(0, 8), tl.arange(0, 16))

# split last dimension | 2
a, b = tl.split(tl.zeros((8, 4), tl.int32))

# cat shapes | cat
a = tl.cat(tl.arange(0, 8), tl.arange(0, 16))

# index with a number | ':' and None
a = tl.arange(0, 8)[3]

# index with a slice | ':' and None
a = tl.arange(0, 8)[1:3]

# index with an ellipsis | ':' and None
a = tl.arange(0, 8)[..., None]

# attribute of a tensor | no attribute 'strides'
a = tl.arange(0, 8).strides

# method of a tensor | no attribute 'mean'
a = tl.arange(0, 8).mean()

# cast to a string | dtype
a = n.to("float")

# cast without dtype | dtype
a = n.to()

# bitcast width | bits
a = n.to(tl.float64, bitcast=True)

# rounding | rounding
a = tl.load(x).to(tl.float16, fp_downcast_rounding="up")

# cast pointer to float | pointer
a = x.to(tl.float32)

# sum axis | axis
a = tl.sum(tl.arange(0, 8), axis=1)

# sum of a string | sum
a = tl.sum("a")

# max axis of a tensor | axis
a = tl.max(tl.arange(0, 8), axis=n)

# argmax without axis | axis
a = tl.argmax(tl.arange(0, 8))

# xor_sum of floats | integers
a = tl.xor_sum(tl.load(x + tl.arange(0, 8)))

# reduce with a number | @triton
a = tl.reduce(tl.arange(0, 8), 0, 5)

# reduce with too few parameters | reduce_one
a = tl.reduce(tl.arange(0, 8), 0, reduce_one)

# scan axis | axis
a = tl.cumsum(tl.arange(0, 8), axis=2)

# sort axis | last dimension
a = tl.sort(tl.zeros((8, 8), tl.int32), dim=0)

# topk k | power of two
a = tl.topk(tl.arange(0, 8), 3)

# squeeze size | size 1
a = tl.squeeze(tl.zeros((8, 8), tl.int32), 0)

# gather rank | gather
a = tl.gather(tl.arange(0, 8), tl.zeros((8, 8), tl.int32), 0)

# gather index type | gather
a = tl.gather(tl.arange(0, 8), tl.zeros((8,), tl.float32), 0)

# histogram of floats | histogram
a = tl.histogram(tl.load(x + tl.arange(0, 8)), 8)

# where condition only | where
a = tl.where(n > 0)

# where shapes | broadcast; shape
a = tl.where(tl.arange(0, 8) > 1, tl.arange(0, 16), 0)

# minimum nan | propagate_nan
a = tl.minimum(n, 1, propagate_nan=True)

# clamp without max | max
a = tl.clamp(tl.load(x), 0.0)

# exp of an integer | float
a = tl.exp(n)

# sqrt of an integer | float
a = tl.sqrt(tl.arange(0, 8))

# exp of a string | exp
a = tl.exp("a")

# umulhi of floats | umulhi
a = tl.umulhi(tl.load(x), tl.load(x))

# fma of strings | fma
a = tl.fma("a", 1.0, 2.0)

# fdiv of integers | fdiv; float
a = tl.fdiv(n, n)

# dot of scalars | tile
a = tl.dot(n, n)

# dot of numbers | tiles
a = tl.dot(1, 2)

# dot inner size | dot
a = tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((32, 16), tl.float16))

# dot dtypes | dot
a = tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.int8))

# dot accumulator shape | acc
a = tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float16), tl.zeros((16, 32), tl.float32))

# dot precision | precision
a = tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32), input_precision="best")

# dot two precisions | not both
a = tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32), input_precision="ieee", allow_tf32=True)

# atomic_add of a number | pointer
tl.atomic_add(5, 1)

# atomic_add order | sem
tl.atomic_add(i, 1, sem="fast")

# atomic_add scope | scope
tl.atomic_add(i, 1, scope="room")

# atomic_and of floats | float
tl.atomic_and(x, 1)

# atomic_cas without value | val
tl.atomic_cas(i, 0)

# multiple_of zero | positive
a = tl.multiple_of(n, 0)

# multiple_of a tensor | constexpr
a = tl.multiple_of(n, n)

# max_contiguous count | one number for each dimension
a = tl.max_contiguous(tl.arange(0, 8), (2, 2))

# assume a tile | scalar
tl.assume(tl.arange(0, 8) > 0)

# device_print prefix | prefix; constexpr
tl.device_print(n)

# device_print of a string | number
tl.device_print("a", "b")

# rand of a float seed | integer
a = tl.rand(1.5, tl.arange(0, 8))

# static_print is fine, but not with a tensor of the wrong kind | has no 'staticprint'
tl.staticprint(n)

# inline assembly | another vendor's GPU; tanh.approx
a = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=r,r", [tl.load(x)], tl.float32, True, 1)

# libdevice type | fp32; .to()
a = tl.extra.libdevice.tanh(n)

# libdevice count | takes 1 arguments
a = tl.extra.libdevice.tanh(tl.load(x), 1.0)

# libdevice name | has no 'tanhh'
a = tl.extra.libdevice.tanhh(tl.load(x))

# extern symbol | no function 'f' for Metal
a = tl.core.extern_elementwise("lib", "", [tl.load(x)], SYMBOLS.value, True)

# block pointer order | order
p = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (1,))

# block pointer base | base must be a pointer
p = tl.make_block_ptr(n, (n,), (1,), (0,), (16,), (0,))

# block pointer shape | shape must be a tuple
p = tl.make_block_ptr(x, n, (1,), (0,), (16,), (0,))

# advance a pointer | block pointer
p = tl.advance(x, (1,))

# descriptor base | base must be a pointer
d = tl.make_tensor_descriptor(n, (n,), (1,), (16,))

# descriptor stride | stride
d = tl.make_tensor_descriptor(x, (n, n), (n, n), (16, 16))

# descriptor attribute | no attribute 'width'
d = tl.make_tensor_descriptor(x, (n,), (1,), (16,))
a = d.width

# load_tensor_descriptor of a pointer | tensor descriptor
a = tl.load_tensor_descriptor(x, (0,))

# dtype name | no dtype
a = tl.dtype("float7")

# tuple of two | one tuple
a = tl.tuple(1, 2)

# map_elementwise without tiles | at least one
a = tl.map_elementwise(reduce_one)

# too large an integer | fits in no type
a = n + 123456789012345678901234567890
""")

#: Calls of other functions, aggregates and builtins of programs.
CALLS = _rows("""
# missing argument | helper; 'b'
a = helper(n)

# too many arguments | helper
a = helper(n, n, n)

# unknown keyword of a function | helper; 'c'
a = helper(n, n, c=1)

# constexpr parameter | must be a constexpr integer; run-time value
a = static_helper(n)

# recursion | recursion
a = endless(n)

# two return types | Return type mismatch
a = two_types(n)

# not all paths return a value | Return type mismatch
a = half_return(n)

# constexpr function of a tensor | compile-time
a = next_odd(n)

# constexpr function raises | not seven
a = next_odd(7)

# unused result | is not being used
must_use(n)

# aggregate without a field | missing required argument: 'second'
p = Pair(n)

# aggregate with too many | takes 2 values
p = Pair(n, 1, 2)

# aggregate keyword | unexpected keyword argument 'third'
p = Pair(n, third=2)

# aggregate field type | Expected; 'first'
p = Pair("a", 2)

# aggregate constexpr field | Expected; 'second'
p = Pair(n, n)

# aggregate attribute | no attribute 'third'
p = Pair(n, 2)
a = p.third

# aggregate assignment | attributes cannot be assigned
p = Pair(n, 2)
p.first = n

# aggregate unpacked | cannot unpack
p = Pair(n, 2)
a, b = p

# aggregate operator | unsupported operands for +
p = Pair(n, 2)
a = p + p

# aggregate replace | no field 'third'
p = tl.aggregate_replace(Pair(n, 2), third=1)

# aggregate index | no attribute '__getitem__'
p = Pair(n, 2)
a = p[0]

# program's builtin raises | too small
a = checked(N)

# program's builtin argument | unexpected keyword
a = checked(N, size=2)
""")

ROWS = [*PYTHON, *CONTROL, *FUNCTIONS, *CALLS]
