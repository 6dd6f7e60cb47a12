"""Targets: the Metal language version, features and limits that the compiler prints for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..errors import DeviceError
from .chip import Chip, parse_chip

#: What a feature needs: the Metal language version, and the GPU family of Apple's Metal feature set tables (edition of
#: May 2026, https://developer.apple.com/metal/feature-sets/; M1 is Apple7, M2 Apple8, M3 and M4 Apple9, M5 Apple10).
#: A language version of 0 means any that the compiler prints for.
FEATURES: dict[str, Requirement] = {}


@dataclass(frozen=True)
class Requirement:
    """The minimum language version and GPU family of a feature, and its description.

    ``later`` is whether later families are known to have it, too. ``macos`` is the minimum version of macOS, where it
    is more than the language version says.
    """

    msl: tuple[int, int]
    family: int
    words: str
    later: bool = True
    macos: tuple[int, int] = (0, 0)


FEATURES.update(
    {
        # MSL specification, 2.1 (scalar types): bfloat is in all OS since Metal 3.1.
        "bfloat": Requirement((3, 1), 6, "bfloat (bfloat16)"),
        # MSL specification, 6.9.2; feature set tables, "SIMD-scoped reduction operations".
        "simd_reductions": Requirement((2, 1), 7, "reductions over a SIMD-group"),
        # MSL specification, 6.7; feature set tables, "SIMD-scoped matrix multiply operations".
        "simdgroup_matrix": Requirement((2, 3), 7, "simdgroup matrices"),
        # MSL specification, 6.15.4 (atomic_float, device memory); feature set tables, "Floating-point atomics".
        "float_atomics": Requirement((3, 0), 7, "atomic addition of floats"),
        # Feature set tables, "64-bit atomics" and its footnote: on macOS family Apple8 has min and max of ulong.
        "atomic64_min_max": Requirement((2, 4), 8, "64-bit atomic min and max"),
        # MSL specification, 6.15.3: atomic_thread_fence, and with it memory orders other than relaxed.
        "memory_orders": Requirement((3, 2), 7, "memory orders other than relaxed"),
        # MSL specification, "#pragma METAL fp math_mode(...)" and "contract(...)".
        "fp_pragmas": Requirement((3, 2), 7, "#pragma METAL fp"),
        # Metal 4: MetalPerformancePrimitives. The compiler fills cooperative tensors in the layout of family Apple10,
        # which is no other's (pytorch/pytorch#182256); what is made for macOS before 26.2 gives wrong rows
        # (ml-explore/mlx#3586), and MLX has these kernels from 26.2 on (mlx/backend/metal/device.cpp).
        "tensor_ops": Requirement(
            (4, 0), 10, "Metal 4 tensor operations", later=False, macos=(26, 2)
        ),
    }
)

OLDEST_MSL = (3, 0)

#: Cures that are no words of the compiler's: they leave features of the chip out of what kernels are compiled for.
WITHOUT: dict[str, tuple[str, ...]] = {"simdgroup_dots": ("tensor_ops",)}


@dataclass(frozen=True)
class Target:
    """A target to compile for.

    A feature is True (available), False (not available) or None (unknown, which the compiler treats as not
    available).

    >>> apple("14.5", "Apple M1").spec()
    'msl=3.1,threads=1024,threadgroup=32768,bfloat,float_atomics,simd_reductions,simdgroup_matrix'
    """

    name: str
    msl_version: str
    features: Mapping[str, bool | None] = field(default_factory=dict, compare=False)
    max_threads: int = 1024
    threadgroup_bytes: int = 32768
    quirks: tuple[str, ...] = ()
    """Cures of defects that this target needs, from quirks.QUIRKS."""

    def spec(self) -> str:
        """The target as the compiler and the caches use it.

        >>> replace(APPLE10, quirks=("simdgroup_dots",)).spec() == APPLE10.spec().replace(",tensor_ops", "")
        True
        """
        without = {name for quirk in self.quirks for name in WITHOUT.get(quirk, ())}
        parts = [
            f"msl={self.msl_version}",
            f"threads={self.max_threads}",
            f"threadgroup={self.threadgroup_bytes}",
        ]
        parts += sorted(n for n, there in self.features.items() if there and n not in without)
        parts += sorted(name for name in self.quirks if name not in WITHOUT)
        return ",".join(parts)


def msl_of_macos(version: str) -> str | None:
    """The newest Metal language version of a macOS; None if it is unknown or too old.

    From the availability of MTLLanguageVersion's cases in Apple's documentation.

    >>> [msl_of_macos(v) for v in ("13.6", "14.4.1", "15.0", "26.2", "12.7", "")]
    ['3.0', '3.1', '3.2', '4.0', None, None]
    """
    head = version.split(".")[0]
    if not head.isdigit():
        return None
    major = int(head)
    for first, msl in ((27, "4.1"), (26, "4.0"), (15, "3.2"), (14, "3.1"), (13, "3.0")):
        if major >= first:
            return msl
    return None


def parse_msl(version: str) -> tuple[int, int]:
    """A language version as two numbers.

    >>> parse_msl("3.1")
    (3, 1)
    """
    major, dot, minor = version.partition(".")
    if not (dot and major.isdigit() and minor.isdigit()):
        raise DeviceError(f"{version!r} is not a version of the Metal language such as 3.1")
    return int(major), int(minor)


def features_of(
    msl: str, family: int | None, at_least: int | None = None, virtual: bool = False
) -> dict[str, bool | None]:
    """The features of a GPU family with a language version.

    A family has all features of the earlier ones, except those that are not known of it. ``at_least`` is the minimum family of a chip whose own family is
    unknown.

    >>> features_of("3.0", 7)["bfloat"], features_of("3.2", 7)["bfloat"]
    (False, True)
    >>> features_of("4.0", None, at_least=7)["tensor_ops"] is None
    True
    """
    version = parse_msl(msl)
    result: dict[str, bool | None] = {}
    for name, needs in FEATURES.items():
        if version < needs.msl:
            result[name] = False
        elif family is not None:
            result[name] = family >= needs.family
            if family > needs.family and not needs.later:
                result[name] = None
        else:
            result[name] = True if at_least is not None and at_least >= needs.family else None
    if virtual:
        # The paravirtual GPU of macOS guests has no simdgroup matrices.
        result["simdgroup_matrix"] = False
        result["tensor_ops"] = False
    return result


def apple(
    macos: str,
    chip: Chip | str | None,
    limit_msl: str | None = None,
    quirks: tuple[str, ...] = (),
) -> Target:
    """The target of a Mac. ``limit_msl`` is the newest language version that a framework uses.

    ``quirks`` are the cures that this Mac needs.
    """
    parsed = chip if chip is not None and not isinstance(chip, str) else parse_chip(chip)
    chip = parsed.name

    msl = msl_of_macos(macos)
    if msl is None:
        raise DeviceError(
            f"macOS {macos or '(unknown version)'} is not supported: kernels need Metal 3, which requires macOS 13 or "
            "later"
        )
    if limit_msl is not None and parse_msl(limit_msl) < parse_msl(msl):
        msl = limit_msl
    if not parsed.is_apple_gpu:
        raise DeviceError(
            f"the chip {chip or '(unknown)'} is not supported: kernels need a Mac with Apple silicon"
        )
    features = features_of(msl, parsed.family, at_least=7, virtual=parsed.virtual)
    version = tuple(int(part) for part in macos.split(".")[:2] if part.isdigit())
    for name, needs in FEATURES.items():
        if version < needs.macos:
            features[name] = False
    return Target(name=f"{chip}, Metal {msl}", msl_version=msl, features=features, quirks=quirks)


def downgraded(target: Target, msl: str) -> Target:
    """A target with an older language version, without the features that need a newer one.

    >>> downgraded(apple("15.0", "Apple M1"), "3.1").spec()
    'msl=3.1,threads=1024,threadgroup=32768,bfloat,float_atomics,simd_reductions,simdgroup_matrix'
    """
    version = parse_msl(msl)
    features = {
        name: False if name in FEATURES and FEATURES[name].msl > version else there
        for name, there in target.features.items()
    }
    return replace(target, msl_version=msl, features=features)


#: A Mac with M5: Metal 4's tensor operations multiply matrices. The host device runs it, too.
APPLE10 = Target(name="apple10", msl_version="4.0", features=features_of("4.0", 10))

#: What the host device runs, and what is printed where no target is named: everything that the compiler prints.
BASELINE = Target(
    name="baseline",
    msl_version="3.2",
    features=features_of("3.2", 9),
)
