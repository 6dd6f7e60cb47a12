"""Compiles a kernel again in another form when Apple's compiler or GPU refuses it.

The forms mean the same: fewer SIMD-groups in a threadgroup, an older language version, loops that are not unrolled.
Triton IR does not say how many SIMD-groups run a program, so the kernel's results do not depend on it, except for the
order in which floats are added.
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from types import SimpleNamespace
from typing import Any

from . import _native
from .errors import DeviceRefusal, RefusalWarning
from .refusals import FRAMEWORKS, Refusal, recognise
from .stages import Stages

#: The language versions to fall back to, the newest first.
LANGUAGES = ("4.0", "3.2", "3.1", "3.0")

#: The exceptions with which frameworks report what is refused.
REPORTS = (RuntimeError, ValueError, SyntaxError)

#: At most so many other forms are tried for one kernel.
MAX_FORMS = 6

#: Seconds after which a compilation by Apple's compiler is worth a word.
SLOW_SECONDS = 60.0


@dataclass(frozen=True)
class Targets:
    """What is known of targets. The package of devices, which needs this module, fills it in."""

    baseline: str
    """The baseline's text."""
    since: Mapping[str, tuple[int, int]]
    """The language version that each feature needs."""
    understood: Callable[[], Collection[str]]
    """The cures that the compiler has."""


targets = Targets("", {}, frozenset)


@dataclass(frozen=True)
class Options:
    """What a kernel is compiled with."""

    num_warps: int
    num_stages: int
    target: str
    """The target's text; empty for the baseline."""
    arithmetic: str = ""
    """The words on arithmetic."""


@dataclass(frozen=True)
class Form:
    """A kernel in another form, and what differs, in words."""

    options: Options
    metal: str
    metadata: str
    words: str


#: Held while a kernel object changes, and while a route makes something of its parts.
lock = threading.RLock()
#: The form that a framework took in place of a text that it refused.
_taken: dict[tuple[str, str], Form] = {}
#: The newest language version that each framework's device is known to accept, where it refused a newer one.
_languages: dict[str, str] = {}


def language_limit(device: str) -> str | None:
    """The language version that a device fell back to; None if it has refused none."""
    return _languages.get(device)


def forget() -> None:
    """Forgets what was refused. Tests need it."""
    _taken.clear()
    _languages.clear()


def launching(framework: str, compiled: Any, launch: Callable[[], Any]) -> Any:
    """Calls ``launch``. If the framework refuses the kernel, gives it another form and launches again.

    The kernel object stays the same, so the launch caches have the new form; ``metadata.refits`` names the change.
    """
    try:
        return launch()
    except REPORTS as error:
        return after(error, framework, compiled, launch)


def after(error: Exception, framework: str, compiled: Any, launch: Callable[[], Any]) -> Any:
    """What ``launching`` does when the first launch has raised ``error``."""
    refusal = as_refusal(error, framework, compiled)
    if refusal is None:
        raise error
    return again(compiled, launch, refusal, error)


def again(
    compiled: Any, launch: Callable[[], Any], refusal: DeviceRefusal, error: BaseException
) -> Any:
    """Launches a refused kernel in other forms; raises the refusal if none is accepted."""
    framework = refusal.framework
    first = recognise(refusal, framework)
    if first is None or options_of(compiled) is None or first.kind.ran or not first.kind.changes:
        if refusal is error:
            raise refusal
        raise refusal from error
    with lock:
        if getattr(compiled.metadata, "refits", ()):
            # Another thread may have found a form since this launch was refused.
            try:
                return launch()
            except REPORTS as other:
                if as_refusal(other, framework, compiled) is None:
                    raise
        before = (compiled.asm, compiled.metadata, compiled.native)
        options = options_of(compiled)
        text = compiled.asm["metal"]
        known = _taken.get((framework, text))
        sources = [forms(compiled, options, first), iter([known] if known else [])]
        kinds, seen, tried = {first.kind.name}, {text}, []
        while sources and len(tried) < MAX_FORMS:
            form = next(sources[-1], None)
            if form is None:
                sources.pop()
                continue
            if form.metal in seen:
                continue
            seen.add(form.metal)
            tried.append(form.words)
            apply(compiled, form, before)
            try:
                result = launch()
            except REPORTS as other:
                another = as_refusal(other, framework, compiled)
                restore(compiled, before)
                if another is None:
                    raise
                recognised = recognise(another, framework)
                if recognised is None or recognised.kind.ran:
                    raise another from other
                if recognised.kind.name not in kinds:
                    # What this form lacks may be cured as well.
                    kinds.add(recognised.kind.name)
                    sources.append(both(form, forms(compiled, form.options, recognised)))
                continue
            except BaseException:
                restore(compiled, before)
                raise
            if form is not known:
                _taken[framework, text] = form
                accepted(compiled, form, options, first)
            return result
    raise refusal_after(refusal, tried) from error


def both(form: Form, others: Iterator[Form]) -> Iterator[Form]:
    """Other forms of a form, told with what was changed before."""
    for other in others:
        yield replace(other, words=f"{form.words} and {other.words}")


def accepted(compiled: Any, form: Form, options: Options, refusal: Refusal) -> None:
    """Remembers what a form says about the device, and warns."""
    spec, now = options.target or targets.baseline, form.options.target or targets.baseline
    if msl_of(spec) != msl_of(now):
        _languages[refusal.framework] = msl_of(now)
    name = FRAMEWORKS.get(refusal.framework, refusal.framework)
    said = refusal.summary()
    warnings.warn(
        f"{compiled.metadata.name} runs {form.words}: {refusal.kind.cause.format(framework=name)}"
        + (f" ({said})" if said else ""),
        RefusalWarning,
        stacklevel=2,
    )


def refusal_after(refusal: DeviceRefusal, tried: list[str]) -> DeviceRefusal:
    """The first refusal, with what else was tried in its message."""
    message = refusal.message
    if tried:
        message += f" (tried {', '.join(tried)}, which is refused too)"
    return DeviceRefusal(
        message,
        refusal.location,
        refusal.callers,
        kind=refusal.kind,
        framework=refusal.framework,
        said=refusal.said,
    )


def options_of(compiled: Any) -> Options | None:
    """What a kernel was compiled with; None if it was not compiled from Triton IR here."""
    stages = getattr(compiled, "asm", None)
    if not isinstance(stages, Stages):
        return None
    return Options(*stages.options)


def forms(compiled: Any, options: Options, refusal: Refusal) -> Iterator[Form]:
    """The other forms of a kernel for a refusal, the best first. Forms with the same text are left out."""
    makers: dict[str, Callable[[Options, Refusal], Iterator[tuple[Options, str]]]] = {
        "warps": fewer_warps,
        "language": older_languages,
        "rolled": rolled_loops,
    }
    tried = {compiled.asm["metal"]}
    same = made(compiled, options)
    if same is not None:
        tried.add(same.metal)
    for name in refusal.kind.changes:
        for other, words in makers[name](options, refusal):
            text = made(compiled, other)
            if text is None or text.metal in tried:
                continue
            tried.add(text.metal)
            yield Form(other, text.metal, text.metadata, words)


def made(compiled: Any, options: Options) -> Any:
    """The kernel's text with other options; None if it cannot be compiled with them."""
    try:
        return _native.compile_text(
            compiled.asm["ttir"],
            "<ttir>",
            options.num_warps,
            options.num_stages,
            options.target,
            options.arithmetic,
        )
    except ValueError:
        return None


def fewer_warps(options: Options, refusal: Refusal) -> Iterator[tuple[Options, str]]:
    """Half as many SIMD-groups, and half of that; those that fit come first if the message says how many do."""
    fitting = refusal.fits
    warps = options.num_warps // 2
    while warps >= 1:
        if fitting is None or warps * 32 <= fitting or warps == 1:
            words = f"with num_warps={warps} instead of {options.num_warps}"
            yield replace(options, num_warps=warps), words
        warps //= 2


def older_languages(options: Options, refusal: Refusal) -> Iterator[tuple[Options, str]]:
    """Older versions of the language, without the features that came later."""
    spec = options.target or targets.baseline
    now = msl_of(spec)
    for msl in LANGUAGES:
        if numbers(msl) < numbers(now):
            words = f"as Metal {msl} instead of {now}"
            yield replace(options, target=downgraded(spec, msl)), words


def rolled_loops(options: Options, refusal: Refusal) -> Iterator[tuple[Options, str]]:
    """Loops that are not unrolled, if the compiler has that."""
    spec = options.target or targets.baseline
    if "rolled_loops" in targets.understood() and "rolled_loops" not in spec.split(","):
        other = replace(options, target=f"{spec},rolled_loops")
        yield other, "with loops that are not unrolled"


def msl_of(spec: str) -> str:
    """The language version of a target's text.

    >>> msl_of("msl=3.1,threads=1024,bfloat")
    '3.1'
    """
    return next(part[4:] for part in spec.split(",") if part.startswith("msl="))


def numbers(msl: str) -> tuple[int, ...]:
    """A language version as numbers.

    >>> numbers("3.1") < numbers("3.2")
    True
    """
    return tuple(map(int, msl.split(".")))


def downgraded(spec: str, msl: str) -> str:
    """A target's text with an older language version, without the features that need a newer one.

    >>> downgraded("msl=3.2,threads=1024,bfloat,fp_pragmas", "3.1")
    'msl=3.1,threads=1024,bfloat'
    """
    parts = []
    for part in spec.split(","):
        if part.startswith("msl="):
            parts.append(f"msl={msl}")
        elif targets.since.get(part, (0, 0)) <= numbers(msl):
            parts.append(part)
    return ",".join(parts)


def apply(compiled: Any, form: Form, before: tuple[Any, Any, Any]) -> None:
    """Puts another form into a kernel object, whose parts were ``before``."""
    options = form.options
    refits = (*getattr(before[1], "refits", ()), form.words)
    restore(
        compiled,
        (
            Stages(
                before[0]["ttir"],
                form.metal,
                astuple(options),
            ),
            SimpleNamespace(
                **(json.loads(form.metadata) | {"num_stages": options.num_stages}), refits=refits
            ),
            _native.Kernel(form.metal, form.metadata, list(getattr(compiled, "aligned", ()))),
        ),
    )


def restore(compiled: Any, parts: tuple[Any, Any, Any]) -> None:
    """Sets the parts of a kernel object, and drops what the routes made of others."""
    compiled.asm, compiled.metadata, compiled.native = parts
    for name in ("_mps_shaders", "_mlx_functional", "_coverage"):
        vars(compiled).pop(name, None)


def as_refusal(error: BaseException, framework: str, compiled: Any) -> DeviceRefusal | None:
    """A framework's exception as a refusal of a kernel; None if it is something else."""
    if isinstance(error, DeviceRefusal):
        return error
    found = recognise(error, framework)
    if found is None:
        return None
    metadata = getattr(compiled, "metadata", None)
    name = getattr(metadata, "name", None) or getattr(compiled, "name", "a kernel")
    return found.error(name, metadata)


def warn_if_slow(kernel: str, seconds: float) -> None:
    """Warns of a kernel that takes Apple's compiler long."""
    if seconds < SLOW_SECONDS:
        return
    cure = (
        "TRITON_METAL_QUIRKS=rolled_loops makes its text shorter"
        if "rolled_loops" in targets.understood()
        else "smaller blocks make its text shorter"
    )
    warnings.warn(
        f"{kernel}: Apple's compiler took {seconds:.0f} s for this kernel; {cure}",
        RefusalWarning,
        stacklevel=3,
    )
