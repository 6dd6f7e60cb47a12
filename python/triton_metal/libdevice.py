"""The functions of libdevice: their names in Triton, and for each combination of argument types a symbol and a type.

The compiler knows functions by these symbols (compiler/conversion/LibraryPatterns.cpp). docs/libdevice.md says how exact
they are. Both this package's language and stock Triton's take their functions from here.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

# Each line: a name, then for each form its argument types, its symbol without "__nv_" and the type of its result.
_TABLE = """
abs i32>abs:i32 i64>llabs:i64 f32>fabsf:f32 f64>fabs:f64
acos f32>acosf:f32 f64>acos:f64
acosh f32>acoshf:f32 f64>acosh:f64
add_rd f64,f64>dadd_rd:f64 f32,f32>fadd_rd:f32
add_rn f64,f64>dadd_rn:f64 f32,f32>fadd_rn:f32
add_ru f64,f64>dadd_ru:f64 f32,f32>fadd_ru:f32
add_rz f64,f64>dadd_rz:f64 f32,f32>fadd_rz:f32
asin f32>asinf:f32 f64>asin:f64
asinh f32>asinhf:f32 f64>asinh:f64
atan f32>atanf:f32 f64>atan:f64
atan2 f32,f32>atan2f:f32 f64,f64>atan2:f64
atanh f32>atanhf:f32 f64>atanh:f64
brev i32>brev:i32 i64>brevll:i64
byte_perm i32,i32,i32>byte_perm:i32
cbrt f32>cbrtf:f32 f64>cbrt:f64
ceil f64>ceil:f64 f32>ceilf:f32
clz i32>clz:i32 i64>clzll:i32
copysign f32,f32>copysignf:f32 f64,f64>copysign:f64
cos f32>cosf:f32 f64>cos:f64
cosh f32>coshf:f32 f64>cosh:f64
cospi f32>cospif:f32 f64>cospi:f64
cyl_bessel_i0 f32>cyl_bessel_i0f:f32 f64>cyl_bessel_i0:f64
cyl_bessel_i1 f32>cyl_bessel_i1f:f32 f64>cyl_bessel_i1:f64
div_rd f32,f32>fdiv_rd:f32 f64,f64>ddiv_rd:f64
div_rn f32,f32>fdiv_rn:f32 f64,f64>ddiv_rn:f64
div_ru f32,f32>fdiv_ru:f32 f64,f64>ddiv_ru:f64
div_rz f32,f32>fdiv_rz:f32 f64,f64>ddiv_rz:f64
double2float_rd f64>double2float_rd:f32
double2float_rn f64>double2float_rn:f32
double2float_ru f64>double2float_ru:f32
double2float_rz f64>double2float_rz:f32
double2hiint f64>double2hiint:i32
double2int_rd f64>double2int_rd:i32
double2int_rn f64>double2int_rn:i32
double2int_ru f64>double2int_ru:i32
double2int_rz f64>double2int_rz:i32
double2ll_rd f64>double2ll_rd:i64
double2ll_rn f64>double2ll_rn:i64
double2ll_ru f64>double2ll_ru:i64
double2ll_rz f64>double2ll_rz:i64
double2loint f64>double2loint:i32
double2uint_rd f64>double2uint_rd:i32
double2uint_rn f64>double2uint_rn:i32
double2uint_ru f64>double2uint_ru:i32
double2uint_rz f64>double2uint_rz:i32
double2ull_rd f64>double2ull_rd:i64
double2ull_rn f64>double2ull_rn:i64
double2ull_ru f64>double2ull_ru:i64
double2ull_rz f64>double2ull_rz:i64
double_as_longlong f64>double_as_longlong:i64
erf f32>erff:f32 f64>erf:f64
erfc f32>erfcf:f32 f64>erfc:f64
erfcinv f32>erfcinvf:f32 f64>erfcinv:f64
erfcx f32>erfcxf:f32 f64>erfcx:f64
erfinv f32>erfinvf:f32 f64>erfinv:f64
exp f32>expf:f32 f64>exp:f64
exp10 f32>exp10f:f32 f64>exp10:f64
exp2 f32>exp2f:f32 f64>exp2:f64
expm1 f32>expm1f:f32 f64>expm1:f64
fast_cosf f32>fast_cosf:f32
fast_dividef f32,f32>fast_fdividef:f32
fast_exp10f f32>fast_exp10f:f32
fast_expf f32>fast_expf:f32
fast_log10f f32>fast_log10f:f32
fast_log2f f32>fast_log2f:f32
fast_logf f32>fast_logf:f32
fast_powf f32,f32>fast_powf:f32
fast_sinf f32>fast_sinf:f32
fast_tanhf f32>tanhf:f32
fast_tanf f32>fast_tanf:f32
fdim f32,f32>fdimf:f32 f64,f64>fdim:f64
ffs i32>ffs:i32 i64>ffsll:i32
finitef f32>finitef:i32
float2int_rd f32>float2int_rd:i32
float2int_rn f32>float2int_rn:i32
float2int_ru f32>float2int_ru:i32
float2int_rz f32>float2int_rz:i32
float2ll_rd f32>float2ll_rd:i64
float2ll_rn f32>float2ll_rn:i64
float2ll_ru f32>float2ll_ru:i64
float2ll_rz f32>float2ll_rz:i64
float2uint_rd f32>float2uint_rd:i32
float2uint_rn f32>float2uint_rn:i32
float2uint_ru f32>float2uint_ru:i32
float2uint_rz f32>float2uint_rz:i32
float2ull_rd f32>float2ull_rd:i64
float2ull_rn f32>float2ull_rn:i64
float2ull_ru f32>float2ull_ru:i64
float2ull_rz f32>float2ull_rz:i64
float_as_int f32>float_as_int:i32
float_as_uint f32>float_as_uint:i32
floor f32>floorf:f32 f64>floor:f64
fma f32,f32,f32>fmaf:f32 f64,f64,f64>fma:f64
fma_rd f32,f32,f32>fmaf_rd:f32 f64,f64,f64>fma_rd:f64
fma_rn f32,f32,f32>fmaf_rn:f32 f64,f64,f64>fma_rn:f64
fma_ru f32,f32,f32>fmaf_ru:f32 f64,f64,f64>fma_ru:f64
fma_rz f32,f32,f32>fmaf_rz:f32 f64,f64,f64>fma_rz:f64
fmod f32,f32>fmodf:f32 f64,f64>fmod:f64
hadd i32,i32>hadd:i32 u32,u32>uhadd:u32
hiloint2double i32,i32>hiloint2double:f64
hypot f32,f32>hypotf:f32 f64,f64>hypot:f64
ilogb f32>ilogbf:i32 f64>ilogb:i32
int2double_rn i32>int2double_rn:f64
int2float_rd i32>int2float_rd:f32
int2float_rn i32>int2float_rn:f32
int2float_ru i32>int2float_ru:f32
int2float_rz i32>int2float_rz:f32
int_as_float i32>int_as_float:f32
isfinited f64>isfinited:i32
isinf f32>isinff:i32 f64>isinfd:i32
isnan f32>isnanf:i32 f64>isnand:i32
j0 f32>j0f:f32 f64>j0:f64
j1 f32>j1f:f32 f64>j1:f64
jn i32,f32>jnf:f32 i32,f64>jn:f64
ldexp f32,i32>ldexpf:f32 f64,i32>ldexp:f64
lgamma f32>lgammaf:f32 f64>lgamma:f64
ll2double_rd i64>ll2double_rd:f64
ll2double_rn i64>ll2double_rn:f64
ll2double_ru i64>ll2double_ru:f64
ll2double_rz i64>ll2double_rz:f64
ll2float_rd i64>ll2float_rd:f32
ll2float_rn i64>ll2float_rn:f32
ll2float_ru i64>ll2float_ru:f32
ll2float_rz i64>ll2float_rz:f32
llrint f32>llrintf:i64 f64>llrint:i64
llround f32>llroundf:i64 f64>llround:i64
log f32>logf:f32 f64>log:f64
log10 f32>log10f:f32 f64>log10:f64
log1p f32>log1pf:f32 f64>log1p:f64
log2 f32>log2f:f32 f64>log2:f64
logb f32>logbf:f32 f64>logb:f64
longlong_as_double i64>longlong_as_double:f64
mul24 i32,i32>mul24:i32 u32,u32>umul24:u32
mul_rd f64,f64>dmul_rd:f64 f32,f32>fmul_rd:f32
mul_rn f64,f64>dmul_rn:f64 f32,f32>fmul_rn:f32
mul_ru f64,f64>dmul_ru:f64 f32,f32>fmul_ru:f32
mul_rz f64,f64>dmul_rz:f64 f32,f32>fmul_rz:f32
mulhi i32,i32>mulhi:i32 u32,u32>umulhi:u32 i64,i64>mul64hi:i64 u64,u64>umul64hi:u64
nearbyint f32>nearbyintf:f32 f64>nearbyint:f64
nextafter f32,f32>nextafterf:f32 f64,f64>nextafter:f64
norm3d f32,f32,f32>norm3df:f32 f64,f64,f64>norm3d:f64
norm4d f32,f32,f32,f32>norm4df:f32 f64,f64,f64,f64>norm4d:f64
normcdf f32>normcdff:f32 f64>normcdf:f64
normcdfinv f32>normcdfinvf:f32 f64>normcdfinv:f64
popc i32>popc:i32 i64>popcll:i32
pow f32,i32>powif:f32 f64,i32>powi:f64 f32,f32>powf:f32 f64,f64>pow:f64
rcbrt f32>rcbrtf:f32 f64>rcbrt:f64
rcp64h f64>rcp64h:f64
rcp_rd f32>frcp_rd:f32 f64>drcp_rd:f64
rcp_rn f32>frcp_rn:f32 f64>drcp_rn:f64
rcp_ru f32>frcp_ru:f32 f64>drcp_ru:f64
rcp_rz f32>frcp_rz:f32 f64>drcp_rz:f64
remainder f32,f32>remainderf:f32 f64,f64>remainder:f64
rhadd i32,i32>rhadd:i32 u32,u32>urhadd:u32
rhypot f32,f32>rhypotf:f32 f64,f64>rhypot:f64
rint f32>rintf:f32 f64>rint:f64
rnorm3d f32,f32,f32>rnorm3df:f32 f64,f64,f64>rnorm3d:f64
rnorm4d f32,f32,f32,f32>rnorm4df:f32 f64,f64,f64,f64>rnorm4d:f64
round f32>roundf:f32 f64>round:f64
rsqrt f32>rsqrtf:f32 f64>rsqrt:f64
rsqrt_rn f32>frsqrt_rn:f32
sad i32,i32,u32>sad:i32 u32,u32,u32>usad:u32
saturatef f32>saturatef:f32
scalbn f32,i32>scalbnf:f32 f64,i32>scalbn:f64
signbit f32>signbitf:i32 f64>signbitd:i32
sin f32>sinf:f32 f64>sin:f64
sinh f32>sinhf:f32 f64>sinh:f64
sinpi f32>sinpif:f32 f64>sinpi:f64
sqrt f32>sqrtf:f32 f64>sqrt:f64
sqrt_rd f32>fsqrt_rd:f32 f64>dsqrt_rd:f64
sqrt_rn f32>fsqrt_rn:f32 f64>dsqrt_rn:f64
sqrt_ru f32>fsqrt_ru:f32 f64>dsqrt_ru:f64
sqrt_rz f32>fsqrt_rz:f32 f64>dsqrt_rz:f64
sub_rd f32,f32>fsub_rd:f32 f64,f64>dsub_rd:f64
sub_rn f32,f32>fsub_rn:f32 f64,f64>dsub_rn:f64
sub_ru f32,f32>fsub_ru:f32 f64,f64>dsub_ru:f64
sub_rz f32,f32>fsub_rz:f32 f64,f64>dsub_rz:f64
tan f32>tanf:f32 f64>tan:f64
tanh f32>tanhf:f32 f64>tanh:f64
tgamma f32>tgammaf:f32 f64>tgamma:f64
trunc f64>trunc:f64 f32>truncf:f32
uint2double_rn u32>uint2double_rn:f64
uint2float_rd u32>uint2float_rd:f32
uint2float_rn u32>uint2float_rn:f32
uint2float_ru u32>uint2float_ru:f32
uint2float_rz u32>uint2float_rz:f32
uint_as_float u32>uint_as_float:f32
ull2double_rd u64>ull2double_rd:f64
ull2double_rn u64>ull2double_rn:f64
ull2double_ru u64>ull2double_ru:f64
ull2double_rz u64>ull2double_rz:f64
ull2float_rd u64>ull2float_rd:f32
ull2float_rn u64>ull2float_rn:f32
ull2float_ru u64>ull2float_ru:f32
ull2float_rz u64>ull2float_rz:f32
y0 f32>y0f:f32 f64>y0:f64
y1 f32>y1f:f32 f64>y1:f64
yn i32,f32>ynf:f32 i32,f64>yn:f64
"""

#: What says whether something holds: Triton's functions make truth values of the symbols' int32.
TESTS = frozenset({"finitef", "isfinited", "isinf", "isnan"})

_TYPES = {"i": "int", "u": "uint", "f": "fp"}


class Form(NamedTuple):
    """One form of a function, with the names of types that Triton uses ("fp32")."""

    arguments: tuple[str, ...]
    symbol: str
    result: str


def _type(short: str) -> str:
    return _TYPES[short[0]] + short[1:]


@functools.cache
def functions() -> dict[str, tuple[Form, ...]]:
    """The forms of each function.

    >>> functions()["erfinv"][0]
    Form(arguments=('fp32',), symbol='__nv_erfinvf', result='fp32')
    """
    result = {}
    for line in _TABLE.split("\n")[1:-1]:
        name, *forms = line.split()
        result[name] = tuple(_form(form) for form in forms)
    return result


def _form(text: str) -> Form:
    arguments, _, rest = text.partition(">")
    symbol, _, result = rest.partition(":")
    return Form(tuple(map(_type, arguments.split(","))), f"__nv_{symbol}", _type(result))
