"""Wherever a kernel reads a value from Python, a change of it gives another kernel: in one process, and in the next.

Each place is a module whose kernel stores what it reads. The text has `{v}` where the value stands, so that another process
finds another value there with the same lines, and `change(v)` changes it where it is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import triton_metal
from triton_metal import launcher

from kernel_support import ON_STOCK
from process_support import load_module, run_program

pytestmark = [
    pytest.mark.own_route,
    pytest.mark.skipif(ON_STOCK, reason="the interpreter compiles nothing"),
]

ROOT = Path(__file__).resolve().parents[2]

HEADER = """
import abc, collections, dataclasses, enum, functools, os, sys, types, typing
import numpy as np
import triton_metal as triton
import triton_metal.language as tl

def launch(*arguments, **constants):
    x = np.full(16, -1, np.float32)
    kernel[(1,)](x, *(arguments or extra()), **constants)
    return float(x[0])

def extra():
    return ()

def module(name, **values):
    made = types.ModuleType(name)
    vars(made).update(values)
    return made

def scope(**values):
    return types.SimpleNamespace(**values)
"""

# A kernel that stores an expression, and whatever comes before it.
KERNEL = """
{before}

@triton.jit
def kernel(x{parameters}):
    tl.store(x + tl.arange(0, 16), {expression})

def change(v):
{change}
"""


def place(before, expression, change, parameters=""):
    lines = "\n".join("    " + line for line in change.strip().splitlines())
    text = KERNEL.replace("{before}", before.strip()).replace("{expression}", expression)
    return text.replace("{change}", lines).replace("{parameters}", parameters)


PLACES = {
    # --- Globals and what hangs on them
    "global": place("K = tl.constexpr({v})", "K", "global K; K = tl.constexpr(v)"),
    "global_in_place": place("K = tl.constexpr({v})", "K", "K.value = v"),
    "global_tuple": place(
        "K = tl.constexpr((1, ({v},)))", "K[1][0]", "global K; K = tl.constexpr((1, (v,)))"
    ),
    "constexpr_in_tuple": place(
        "K = tl.constexpr((tl.constexpr({v}), 1))", "K[0]", "K.value[0].value = v"
    ),
    "global_list": place("K = tl.constexpr([{v}, 1])", "K[0]", "K.value[0] = v"),
    "global_list_length": place(
        "K = tl.constexpr([0] * {v})", "len(K)", "K.value[:] = [0] * v"
    ),
    "global_list_contains": place(
        "K = tl.constexpr([{v}])", "(2 if 2 in K else 5)", "K.value[0] = v"
    ),
    "global_list_sum": place(
        "K = tl.constexpr([{v}])",
        "total(*K)",
        "K.value[0] = v",
    ).replace("@triton.jit", "@triton.jit\ndef total(a):\n    return a\n\n@triton.jit", 1),
    "global_list_passed": place(
        "@triton.jit\ndef first(t):\n    return t[0]\n\nK = tl.constexpr([{v}])",
        "first(K)",
        "K.value[0] = v",
    ),
    "global_list_as_shape": place(
        "K = tl.constexpr([1 << {v}])", "(2 if tl.full(K, 1, tl.float32).shape[0] == 4 else 5)", "K.value[0] = 1 << v"
    ),
    "global_dict": place("K = tl.constexpr({{'a': {v}}})", "K['a']", "K.value['a'] = v"),
    "global_dict_get": place("K = tl.constexpr({{'a': {v}}})", "K.get('a')", "K.value['a'] = v"),
    "global_dict_nested": place(
        "K = tl.constexpr({{'a': [0, [{v}]]}})", "K['a'][1][0]", "K.value['a'][1][0] = v"
    ),
    "class_attribute": place("class C:\n    K = {v}", "C.K", "C.K = v"),
    "class_rebound": place("class C:\n    K = {v}", "C.K", "global C; C = type('C', (), {'K': v})"),
    "inherited_attribute": place(
        "class B:\n    K = {v}\nclass C(B):\n    pass", "C.K", "B.K = v"
    ),
    "nested_class": place("class C:\n    class D:\n        K = {v}", "C.D.K", "C.D.K = v"),
    "class_property": place(
        "N = {v}\nclass M(type):\n    K = property(lambda self: N)\nclass C(metaclass=M):\n    pass",
        "C.K",
        "global N; N = v",
    ),
    "static_method": place(
        "N = {v}\nclass C:\n    @staticmethod\n    @triton.constexpr_function\n    def f():\n        return N",
        "C.f()",
        "global N; N = v",
    ),
    "class_method": place(
        "class C:\n    K = {v}\n    @classmethod\n    def f(cls):\n        return cls.K", "C.f()", "C.K = v"
    ),
    "module_attribute": place("conf = module('conf', N={v})", "conf.N", "conf.N = v"),
    "module_constexpr": place(
        "conf = module('conf', N=tl.constexpr({v}))", "conf.N", "conf.N = tl.constexpr(v)"
    ),
    "module_of_module": place(
        "conf = module('conf', inner=module('inner', N={v}))", "conf.inner.N", "conf.inner.N = v"
    ),
    "module_getattr": place(
        "conf = module('conf')\nN = {v}\nconf.__getattr__ = lambda name: N", "conf.K", "global N; N = v"
    ),
    "module_rebound": place(
        "conf = module('conf', N={v})", "conf.N", "global conf; conf = module('conf', N=v)"
    ),
    "enum_value": place(
        "class E(enum.Enum):\n    A = {v}",
        "E.A.value",
        "global E; E = enum.Enum('E', {'A': v})",
    ),
    "int_enum": place(
        "class E(enum.IntEnum):\n    A = {v}", "E.A + 0", "global E; E = enum.IntEnum('E', {'A': v})"
    ),
    "dtype": place(
        "F = tl.float32 if {v} == 2 else tl.int8",
        "tl.full((16,), 2.5, tl.float32).to(F).to(tl.float32) * (4 / 5 if F == tl.float32 else 2.5)",
        "global F; F = tl.float32 if v == 2 else tl.int8",
    ),
    "numpy_dtype": place(
        "F = tl.constexpr(np.dtype('int16' if {v} == 2 else 'S5'))",
        "F.itemsize",
        "global F; F = tl.constexpr(np.dtype('int16' if v == 2 else 'S5'))",
    ),
    "function_attribute": place(
        "@triton.constexpr_function\ndef f():\n    pass\nf.K = {v}", "f.K", "f.K = v"
    ),
    # --- What shadows
    "builtin_shadowed": place(
        "if {v} == 5:\n    min = triton.constexpr_function(lambda a, b: 5)",
        "min(2, 3)",
        "globals().update(min=triton.constexpr_function(lambda a, b: 5)) if v == 5 else globals().pop('min')",
    ),
    "builtins_module": place(
        "conf = module('conf', K=2)\nif {v} == 5:\n    conf = module('conf', K=2, L=5)",
        "getattr(conf, 'L', 2)",
        "setattr(conf, 'L', 5) if v == 5 else delattr(conf, 'L')",
    ),
    "attribute_added": place(
        "class C:\n    pass\nif {v} == 5:\n    C.K = 1",
        "(5 if hasattr(C, 'K') else 2)",
        "setattr(C, 'K', 1) if v == 5 else delattr(C, 'K')",
    ),
    # --- Closures
    "closure": place(
        """
def make():
    K = tl.constexpr({v})
    def change_it(v):
        nonlocal K
        K = tl.constexpr(v)
    @triton.jit
    def inner():
        return K
    return inner, change_it
inner, change_it = make()
""",
        "inner()",
        "change_it(v)",
    ),
    "closure_of_constexpr_function": place(
        """
def make():
    K = {v}
    def change_it(v):
        nonlocal K
        K = v
    @triton.constexpr_function
    def inner():
        return K
    return inner, change_it
inner, change_it = make()
""",
        "inner()",
        "change_it(v)",
    ),
    # --- Functions
    "helper": place(
        "@triton.jit\ndef two():\n    return 2\n@triton.jit\ndef five():\n    return 5\nf = two if {v} == 2 else five",
        "f()",
        "global f; f = two if v == 2 else five",
    ),
    "helper_global": place(
        "K = tl.constexpr({v})\n@triton.jit\ndef g():\n    return K\n@triton.jit\ndef f():\n    return g()",
        "f()",
        "global K; K = tl.constexpr(v)",
    ),
    "helper_default": place(
        "@triton.jit\ndef f(a=0, b: tl.constexpr = {v}):\n    return b",
        "f()",
        "f.function.__defaults__ = (0, v)",
    ),
    "helper_keyword_default": place(
        "@triton.jit\ndef f(*, b: tl.constexpr = {v}):\n    return b",
        "f()",
        "f.function.__kwdefaults__['b'] = v",
    ),
    "helper_default_constexpr": place(
        "D = tl.constexpr({v})\n@triton.jit\ndef f(b=D):\n    return b", "f()", "D.value = v"
    ),
    "helper_code": place(
        "@triton.jit\ndef f():\n    return {v}\ndef two():\n    return 2\ndef five():\n    return 5",
        "f()",
        "f.function.__code__ = (two if v == 2 else five).__code__",
    ).replace("def two", "def f_two").replace("two if", "f_two if"),
    "function_of_module": place(
        "@triton.jit\ndef two():\n    return 2\n@triton.jit\ndef five():\n    return 5\n"
        "h = module('h', f=two if {v} == 2 else five)",
        "h.f()",
        "h.f = two if v == 2 else five",
    ),
    "functions_in_tuple": place(
        "@triton.jit\ndef two():\n    return 2\n@triton.jit\ndef five():\n    return 5\n"
        "fs = tl.constexpr([two if {v} == 2 else five])",
        "fs[0]()",
        "fs.value[0] = two if v == 2 else five",
    ),
    "combine_function": place(
        "@triton.jit\ndef two(a, b):\n    return a * 0 + 2\n@triton.jit\ndef five(a, b):\n    return a * 0 + 5\n"
        "f = two if {v} == 2 else five",
        "tl.reduce(tl.full((16,), 1.0, tl.float32), 0, f)",
        "global f; f = two if v == 2 else five",
    ),
    "kernel_default": place(
        "", "K", "kernel.function.__defaults__ = (v,)", ", K: tl.constexpr = {v}"
    ),
    "kernel_keyword_default": place(
        "", "K", "kernel.function.__kwdefaults__['K'] = v", ", *, K: tl.constexpr = {v}"
    ),
    "kernel_default_list": place(
        "L = [{v}]", "K[0]", "L[0] = v", ", K: tl.constexpr = L"
    ),
    "static_range": place(
        "N = tl.constexpr({v})",
        "count(0)",
        "global N; N = tl.constexpr(v)",
    ).replace(
        "@triton.jit",
        "@triton.jit\ndef count(n):\n    for _ in tl.static_range(N):\n        n += 1\n    return n\n\n@triton.jit",
        1,
    ),
    # --- Functions that run while compiling
    "called_global": place(
        "N = {v}\n@triton.constexpr_function\ndef f():\n    return N", "f()", "global N; N = v"
    ),
    "called_global_list": place(
        "N = [{v}]\n@triton.constexpr_function\ndef f():\n    return N[0]", "f()", "N[0] = v"
    ),
    "called_default": place(
        "@triton.constexpr_function\ndef f(n={v}):\n    return n",
        "f()",
        "f.function.__defaults__ = (v,)",
    ),
    "called_default_list": place(
        "@triton.constexpr_function\ndef f(n=[{v}]):\n    return n[0]",
        "f()",
        "f.function.__defaults__[0][0] = v",
    ),
    "called_helper": place(
        "N = {v}\ndef g(i):\n    return N + i\n@triton.constexpr_function\ndef f(i):\n    return g(i)",
        "f(0)",
        "global N; N = v",
    ),
    "called_helper_rebound": place(
        "def g():\n    return {v}\n@triton.constexpr_function\ndef f():\n    return g()",
        "f()",
        "global g; g = lambda: v",
    ),
    "called_module": place(
        "conf = module('conf', N={v})\n@triton.constexpr_function\ndef f():\n    return conf.N",
        "f()",
        "conf.N = v",
    ),
    "called_class": place(
        "class C:\n    N = {v}\n@triton.constexpr_function\ndef f():\n    return C.N", "f()", "C.N = v"
    ),
    "called_getattr": place(
        "conf = module('conf', N={v})\n@triton.constexpr_function\ndef f(name):\n    return getattr(conf, name)",
        "f('N')",
        "conf.N = v",
    ),
    "called_globals": place(
        "N = {v}\n@triton.constexpr_function\ndef f():\n    return globals()['N']", "f()", "global N; N = v"
    ),
    "called_import": place(
        "sys.modules['place_conf'] = conf = module('place_conf', N={v})\n"
        "@triton.constexpr_function\ndef f():\n    import place_conf\n    return place_conf.N",
        "f()",
        "conf.N = v",
    ),
    "called_environment": place(
        "os.environ['PLACE_N'] = '{v}'\n@triton.constexpr_function\ndef f():\n    return int(os.environ['PLACE_N'])",
        "f()",
        "os.environ['PLACE_N'] = str(v)",
    ),
    "called_environment_get": place(
        "os.environ['PLACE_M'] = '{v}'\n@triton.constexpr_function\ndef f():\n    return int(os.getenv('PLACE_M'))",
        "f()",
        "os.environ['PLACE_M'] = str(v)",
    ),
    "environment": place(
        "os.environ['PLACE_O'] = '{v}'", "int(os.environ.get('PLACE_O'))", "os.environ['PLACE_O'] = str(v)"
    ),
    "called_file": place(
        "PATH = __file__ + '.txt'\nopen(PATH, 'w').write('{v}')\n"
        "@triton.constexpr_function\ndef f():\n    with open(PATH) as file:\n        return int(file.read())",
        "f()",
        "open(PATH, 'w').write(str(v))",
    ),
    "called_partial": place(
        "N = {v}\ndef g(a, b):\n    return a * 0 + N\nf = triton.constexpr_function(functools.partial(g, 1))",
        "f(1)",
        "global N; N = v",
    ),
    "called_decorated": place(
        "N = {v}\ndef deco(g):\n    @functools.wraps(g)\n    def h():\n        return g() + 1\n    return h\n"
        "@triton.constexpr_function\n@deco\ndef f():\n    return N - 1",
        "f()",
        "global N; N = v",
    ),
    "called_object": place(
        "class F:\n    n = {v}\n    def __call__(self):\n        return self.n\nobj = F()\n"
        "@triton.constexpr_function\ndef f():\n    return obj()",
        "f()",
        "obj.n = v",
    ),
    "called_code": place(
        "@triton.constexpr_function\ndef f():\n    return {v}\ndef two():\n    return 2\ndef five():\n    return 5",
        "f()",
        "f.function.__code__ = (two if v == 2 else five).__code__",
    ),
    "called_comprehension": place(
        "N = {v}\n@triton.constexpr_function\ndef f():\n    return sum([N for _ in range(1)])",
        "f()",
        "global N; N = v",
    ),
    "called_nested": place(
        "N = {v}\n@triton.constexpr_function\ndef f():\n    def g():\n        return N\n    return g()",
        "f()",
        "global N; N = v",
    ),
    "called_other": place(
        "N = {v}\n@triton.constexpr_function\ndef g():\n    return N\n@triton.constexpr_function\ndef f():\n    return g()",
        "f()",
        "global N; N = v",
    ),
    "called_shadows_builtin": place(
        "if {v} == 5:\n    min = lambda a, b: 5\n@triton.constexpr_function\ndef f():\n    return min(2, 3)",
        "f()",
        "globals().update(min=lambda a, b: 5) if v == 5 else globals().pop('min')",
    ),
    "called_gives_object": place(
        "N = {v}\n@dataclasses.dataclass\nclass C:\n    n: int\n@triton.constexpr_function\ndef f():\n    return C(N)",
        "f().n",
        "global N; N = v",
    ),
    "called_gives_list": place(
        "N = {v}\n@triton.constexpr_function\ndef f():\n    return [1, N]", "f()[1]", "global N; N = v"
    ),
    "called_gives_function": place(
        "@triton.jit\ndef two():\n    return 2\n@triton.jit\ndef five():\n    return 5\nN = {v}\n"
        "@triton.constexpr_function\ndef f():\n    return two if N == 2 else five",
        "f()()",
        "global N; N = v",
    ),
    "called_configuration": place(
        "triton.set_kernel_config(num_stages={v})\n@triton.constexpr_function\ndef f():\n"
        "    return triton.kernel_config().num_stages",
        "f()",
        "triton.set_kernel_config(num_stages=v)",
    ),
    # --- Objects and their operators
    "object_attribute": place(
        "class C:\n    pass\nc = C()\nc.n = {v}\nK = tl.constexpr(c)", "K.n", "c.n = v"
    ),
    "object_slot": place(
        "class C:\n    __slots__ = ('n',)\nc = C()\nc.n = {v}\nK = tl.constexpr(c)", "K.n", "c.n = v"
    ),
    "object_property": place(
        "N = {v}\nclass C:\n    n = property(lambda self: N)\nK = tl.constexpr(C())", "K.n", "global N; N = v"
    ),
    "object_property_of_object": place(
        "N = {v}\nclass D:\n    def __init__(self, n):\n        self.n = n\n"
        "class C:\n    d = property(lambda self: D(N))\nK = tl.constexpr(C())",
        "K.d.n",
        "global N; N = v",
    ),
    "object_method": place(
        "class C:\n    n = {v}\n    def f(self, i):\n        return self.n + i\nK = tl.constexpr(C())",
        "K.f(0)",
        "C.n = v",
    ),
    "object_getattr": place(
        "N = {v}\nclass C:\n    def __getattr__(self, name):\n        if name == 'n':\n            return N\n"
        "        raise AttributeError(name)\nK = tl.constexpr(C())",
        "K.n",
        "global N; N = v",
    ),
    "object_operator": place(
        "class C:\n    n = {v}\n    def __add__(self, other):\n        return self.n + other\nK = tl.constexpr(C())",
        "K + 0",
        "C.n = v",
    ),
    "object_negation": place(
        "class C:\n    n = {v}\n    def __neg__(self):\n        return self.n\nK = tl.constexpr(C())",
        "-K",
        "C.n = v",
    ),
    "object_comparison": place(
        "class C:\n    n = {v}\n    def __lt__(self, other):\n        return self.n < other\nK = tl.constexpr(C())",
        "(2 if K < 3 else 5)",
        "C.n = v",
    ),
    "object_truth": place(
        "class C:\n    n = {v}\n    def __bool__(self):\n        return self.n == 2\nK = tl.constexpr(C())",
        "(5 if not K else 2)",
        "C.n = v",
    ),
    "object_item": place(
        "class C:\n    n = {v}\n    def __getitem__(self, i):\n        return self.n\nK = tl.constexpr(C())",
        "K[0]",
        "C.n = v",
    ),
    "object_length": place(
        "class C:\n    n = {v}\n    def __len__(self):\n        return self.n\nK = tl.constexpr(C())",
        "len(K)",
        "C.n = v",
    ),
    "object_text": place(
        "class C:\n    n = {v}\n    def __str__(self):\n        return str(self.n)\nK = tl.constexpr(C())",
        "(2 if f'{K}' == '2' else 5)".replace("{", "{{").replace("}", "}}"),
        "C.n = v",
    ),
    "object_int": place(
        "class C:\n    n = {v}\n    def __int__(self):\n        return self.n\nK = tl.constexpr(C())",
        "int(K)",
        "C.n = v",
    ),
    "int_subclass": place(
        "class C(int):\n    n = {v}\n    def __add__(self, other):\n        return self.n + other\nK = tl.constexpr(C(1))",
        "K + 0",
        "C.n = v",
    ),
    "instance_check": place(
        "class A(abc.ABC):\n    n = {v}\n    @classmethod\n    def __subclasshook__(cls, other):\n"
        "        return cls.n == 2 and hasattr(other, 'bit_length')\n"
        "class M(type):\n    def __instancecheck__(cls, other):\n        return A.n == 2\n"
        "class C(metaclass=M):\n    pass",
        "(2 if isinstance(3, C) else 5)",
        "A.n = v",
    ),
    "named_tuple_attribute": place(
        "class P(typing.NamedTuple):\n    a: int\nP.K = {v}\nK = tl.constexpr(P(1))", "K.K", "P.K = v"
    ),
    "named_tuple_passed_on": place(
        "class P(typing.NamedTuple):\n    a: int\nP.K = {v}\n@triton.jit\ndef f(p):\n    return p.K",
        "f(K)",
        "P.K = v",
        ", K: tl.constexpr",
    ).replace("def change", "def extra():\n    return (P(1),)\n\ndef change"),
    # --- Arguments that are changed
    "argument_list": place("L = [{v}]\ndef extra():\n    return (L,)", "K[0]", "L[0] = v", ", K: tl.constexpr"),
    "argument_list_in_tuple": place(
        "L = [{v}]\ndef extra():\n    return ((1, L),)", "K[1][0]", "L[0] = v", ", K: tl.constexpr"
    ),
    "argument_dict": place(
        "L = {{'a': {v}}}\ndef extra():\n    return (L,)", "K['a']", "L['a'] = v", ", K: tl.constexpr"
    ),
    "argument_object": place(
        "L = scope(n={v})\ndef extra():\n    return (L,)", "K.n", "L.n = v", ", K: tl.constexpr"
    ),
    "argument_fresh_object": place(
        "N = {v}\ndef extra():\n    return (scope(n=N),)", "K.n", "global N; N = v", ", K: tl.constexpr"
    ),
    "argument_method": place(
        "N = {v}\nclass C:\n    def __init__(self):\n        self.n = N\n    def f(self):\n        return self.n\n"
        "def extra():\n    return (C(),)",
        "K.f()",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_nested_object": place(
        "N = {v}\ndef extra():\n    return (scope(a=scope(n=N)),)",
        "K.a.n",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_passed_on": place(
        "N = {v}\n@triton.constexpr_function\ndef f(c):\n    return c.n\n@triton.jit\ndef g(c: tl.constexpr):\n"
        "    return f(c)\ndef extra():\n    return (scope(n=N),)",
        "g(K)",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_in_tuple_passed_on": place(
        "N = {v}\n@triton.constexpr_function\ndef f(c):\n    return c[0].n\n@triton.jit\ndef g(c: tl.constexpr):\n"
        "    return f((c, 1))\ndef extra():\n    return (scope(n=N),)",
        "g(K)",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_that_is_a_global": place(
        "G = scope(n={v})\nC = tl.constexpr(G)\nO = scope(n={v})\ncount = [0]\n"
        "def extra():\n    count[0] += 1\n    return (G if count[0] == 1 else O,)",
        "K.n * 0 + C.n",
        "G.n = v",
        ", K: tl.constexpr",
    ),
    "arguments_that_are_one": place(
        "N = {v}\nclass C:\n    pass\nG, O = C(), C()\ndef extra():\n    return (G, G if N == 2 else O)",
        "(2 if K is L else 5)",
        "global N; N = v",
        ", K: tl.constexpr, L: tl.constexpr",
    ),
    "argument_frozen": place(
        "N = {v}\n@dataclasses.dataclass(frozen=True)\nclass C:\n    a: int\n"
        "    n: int = dataclasses.field(compare=False, repr=False)\ndef extra():\n    return (C(1, N),)",
        "K.n",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_named_tuple_type": place(
        "class P(typing.NamedTuple):\n    a: int = 1\n    n = property(lambda self: 2)\n"
        "class Q(typing.NamedTuple):\n    a: int = 1\n    n = property(lambda self: 5)\n"
        "Q.__name__ = Q.__qualname__ = 'P'\nN = {v}\ndef extra():\n    return (P() if N == 2 else Q(),)",
        "K.n",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_named_tuple_in_tuple": place(
        "P = collections.namedtuple('P', 'a b')\nQ = collections.namedtuple('P', 'b a')\n"
        "N = {v}\ndef extra():\n    return ((1, P(2, 5) if N == 2 else Q(2, 5)),)",
        "K[1].a",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_bool_or_int": place(
        "N = {v}\ndef extra():\n    return (((1,) if N == 2 else (True,)),)",
        "(5 if isinstance(K[0], bool) else 2)",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_int_or_float": place(
        "N = {v}\ndef extra():\n    return (1 if N == 2 else 1.0,)",
        "(5 if isinstance(K, float) else 2)",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_negative_zero": place(
        "N = {v}\ndef extra():\n    return ((0.0,) if N == 2 else (-0.0,),)",
        "(2 if f'{{K[0]}}' == '0.0' else 5)",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_str_or_bytes": place(
        "N = {v}\ndef extra():\n    return ('a' if N == 2 else b'a',)",
        "(2 if isinstance(K, str) else 5)",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_tuple_or_list": place(
        "N = {v}\ndef extra():\n    return (scope(l=(1,) if N == 2 else [1]),)",
        "(2 if isinstance(K.l, tuple) else 5)",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_class": place(
        "class A:\n    n = 2\nclass B:\n    n = 5\nN = {v}\ndef extra():\n    return (A if N == 2 else B,)",
        "K.n",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_class_changed": place(
        "class A:\n    n = {v}\ndef extra():\n    return (A,)", "K.n", "A.n = v", ", K: tl.constexpr"
    ),
    "argument_enum": place(
        "class E(enum.Enum):\n    A = 2\n    B = 5\nN = {v}\ndef extra():\n    return (E(N),)",
        "K.value",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_dtype": place(
        "N = {v}\ndef extra():\n    return (tl.float16 if N == 2 else tl.dtype('float32'),)",
        "(2 if K == tl.float16 else 5)",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_numpy_dtype": place(
        "N = {v}\ndef extra():\n    return (np.dtype('S' + str(N)),)",
        "K.itemsize",
        "global N; N = v",
        ", K: tl.constexpr",
    ),
    "argument_function": place(
        "K0 = tl.constexpr({v})\n@triton.jit\ndef f():\n    return K0\ndef extra():\n    return (f,)",
        "K()",
        "global K0; K0 = tl.constexpr(v)",
        ", K: tl.constexpr",
    ),
    "argument_function_unannotated": place(
        "K0 = tl.constexpr({v})\n@triton.jit\ndef f():\n    return K0\ndef extra():\n    return (f,)",
        "K()",
        "global K0; K0 = tl.constexpr(v)",
        ", K",
    ),
    "argument_constexpr": place(
        "N = tl.constexpr({v})\ndef extra():\n    return (N,)", "K", "N.value = v", ", K"
    ),
    "argument_constexpr_in_tuple": place(
        "N = tl.constexpr({v})\ndef extra():\n    return ((N, 1),)", "K[0]", "N.value = v", ", K: tl.constexpr"
    ),
    "argument_numpy_scalar": place(
        "N = {v}\ndef extra():\n    return ((np.float64(N),),)", "K[0]", "global N; N = v", ", K: tl.constexpr"
    ),
}  # fmt: skip

# They are read anew at each launch, since nothing tells whether they would be the same.
WALKED_ANEW = {
    "argument_in_tuple_passed_on",
    "argument_numpy_scalar",
    "argument_that_is_a_global",  # the second launch passes another object
}


def text_of(name, value):
    body = PLACES[name].replace("{v}", str(value)).replace("{{", "{").replace("}}", "}")
    return HEADER + body


@pytest.fixture(autouse=True)
def own_configuration(cache_directory, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    triton_metal.set_kernel_config(num_stages=None)


@pytest.mark.parametrize("name", PLACES)
def test_a_change_in_the_process_is_noticed(name, tmp_path, monkeypatch):
    walks = []
    compile = launcher.Launcher.compile
    monkeypatch.setattr(
        launcher.Launcher,
        "compile",
        lambda self, *arguments: (walks.append(1), compile(self, *arguments))[1],
    )
    path = tmp_path / f"place_{name}.py"
    path.write_text(text_of(name, 2))
    module = load_module(path)
    assert module.launch() == 2
    before = len(walks)
    assert module.launch() == 2
    assert (len(walks) == before) != (name in WALKED_ANEW)
    for value in (5, 2, 5):
        module.change(value)
        assert module.launch() == value


def test_functions_that_only_compute_are_not_called_again(tmp_path):
    body = place(
        """
def twice(n):
    return 2 * n
def double(n):
    return int(math.sqrt(n * n)) + (lambda m: m)(twice(n)) - n * len([i for i in range(0)])
import math
@triton.constexpr_function
def pure(n):
    return max(double(n) - 2 * n, 0)
log = []
@triton.constexpr_function
def counted(n):
    log.append(n)
    return n
""",
        "pure(2) + counted(0)",
        "pass",
    )
    path = tmp_path / "place_pure.py"
    path.write_text(HEADER + body)
    module = load_module(path)
    made = []
    sys.setprofile(lambda frame, event, _: made.append(frame.f_code.co_name))
    try:
        assert module.launch() == 2
        first = list(made)
        made.clear()
        assert module.launch() == 2
    finally:
        sys.setprofile(None)
    assert "pure" in first
    assert "pure" not in made
    assert "counted" in made


SCRIPT = """
import json, sys
from pathlib import Path
sys.dont_write_bytecode = True
sys.path[:0] = [{tests!r}]
from process_support import load_module
results = {{}}
for path in sorted(Path({folder!r}).glob("place_*.py")):
    results[path.stem.removeprefix("place_")] = load_module(path).launch()
print(json.dumps(results))
"""


def test_another_process_finds_the_other_values(tmp_path):
    folder = tmp_path / "places"
    folder.mkdir()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent), folder=str(folder)))
    for value in (2, 5, 2):
        for name in PLACES:
            (folder / f"place_{name}.py").write_text(text_of(name, value))
        result = run_program(script, TRITON_METAL_CACHE_DIR=tmp_path / "cache")
        assert result.returncode == 0, result.stderr
        found = json.loads(result.stdout)
        assert found == dict.fromkeys(PLACES, float(value))
