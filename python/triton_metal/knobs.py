"""Settings of the compiler and its runtime, each from an environment variable until a program sets it.

``knobs.GROUP.NAME`` has the value that the program has set, or else the environment variable's at this moment, or else
the default. ``del knobs.GROUP.NAME`` returns to the environment, ``with knobs.GROUP.scope():`` restores the group at its
end. A setting that the program makes goes into the environment, so that child processes have it too
(``knobs.propagate_env = False`` leaves the environment alone).

The groups ``nvidia``, ``amd`` and ``proton`` are there for programs that read them; they change nothing on Metal.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, TypeVar

from . import _native
from ._utils import FP_FUSION_DEFAULT_WARNING, warn_once


class Env:
    """The type of `env`: assigned to a knob, it returns the knob to its environment variable."""


env = Env()

#: Whether a knob that a program sets also sets its environment variable.
propagate_env: bool = True

_TRUE = ("1", "true", "on", "yes", "y")
_UNSET = object()


def getenv(key: str, default: str | None = None) -> str | None:
    """An environment variable's text."""
    return os.environ.get(key, default)


def getenv_bool(key: str, default: Any) -> Any:
    """An environment variable as a truth value: 1, true, on, yes and y, in any case, are true."""
    text = os.environ.get(key)
    return default if text is None else text.lower() in _TRUE


def setenv(key: str, value: str | None) -> None:
    """Sets an environment variable, or removes it for None, if ``propagate_env`` is on."""
    if not propagate_env:
        return
    if value is None:
        os.environ.pop(key, None)
    else:
        os.environ[key] = value


def toenv(value: Any) -> tuple[str | None] | None:
    """The text of a value in the environment, in a tuple; None for a value that has no text."""
    if value is None:
        return (None,)
    if type(value) is bool:
        return ("1" if value else "0",)
    if type(value) in (str, int):
        return (str(value),)
    return None


class env_base:
    """A knob: a descriptor of a class of knobs."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__.get(self.name, _UNSET)
        return self.get() if value is _UNSET else self.transform(value)

    def get(self) -> Any:
        """The value without a program's own setting."""
        raise NotImplementedError

    def __set__(self, instance: Any, value: Any) -> None:
        if isinstance(value, Env):
            self.__delete__(instance)
            return
        instance.__dict__[self.name] = value
        if text := toenv(value):
            setenv(self.key, text[0])

    def __delete__(self, instance: Any) -> None:
        instance.__dict__.pop(self.name, None)

    def transform(self, value: Any) -> Any:
        """What reading gives for a setting."""
        return value


class env_str(env_base):
    """Text."""

    def __init__(self, key: str, default: str) -> None:
        super().__init__(key)
        self.default = default

    def get(self) -> str | None:
        return getenv(self.key, self.default)


class env_str_callable_default(env_base):
    """Text with a default that depends on other knobs."""

    def __init__(self, key: str, default_factory: Callable[[], str]) -> None:
        super().__init__(key)
        self.default_factory = default_factory

    def get(self) -> str:
        text = getenv(self.key)
        return self.default_factory() if text is None else text


class env_bool(env_base):
    """A truth value."""

    def __init__(self, key: str, default: bool = False) -> None:
        super().__init__(key)
        self.default = default

    def get(self) -> bool:
        return getenv_bool(self.key, self.default)


class env_int(env_base):
    """An integer."""

    def __init__(self, key: str, default: int = 0) -> None:
        super().__init__(key)
        self.default = default

    def get(self) -> int:
        text = getenv(self.key)
        if text is None:
            return self.default
        try:
            return int(text)
        except ValueError:
            raise RuntimeError(f"{self.key} is {text!r}; it must be an integer") from None


class env_class(env_base):
    """A class, written as MODULE:CLASS. One of its bases must have the name ``type``."""

    def __init__(self, key: str, type: str) -> None:
        super().__init__(key)
        self.type = type

    def get(self) -> type | None:
        text = getenv(self.key)
        if text is None:
            return None
        module, colon, name = text.partition(":")
        if not colon:
            raise RuntimeError(f"{self.key} is {text!r}; it must have the form MODULE:CLASS")
        found = getattr(importlib.import_module(module), name)
        if not any(base.__name__ == self.type for base in found.mro()):
            raise RuntimeError(f"{self.key} is {text!r}, which is not a class of type {self.type}")
        return found


class env_opt_str(env_base):
    """Text, or None."""

    def get(self) -> str | None:
        return getenv(self.key)


class env_opt_bool(env_base):
    """A truth value, or None."""

    def get(self) -> bool | None:
        return getenv_bool(self.key, None)


@dataclass
class NvidiaTool:
    """A program of NVIDIA's toolkit, which nothing here calls."""

    path: str
    version: str

    @staticmethod
    def from_path(path: str) -> NvidiaTool | None:
        """The tool at this path; None if it does not run or does not tell its release."""
        try:
            said = subprocess.check_output([path, "--version"], stderr=subprocess.STDOUT, text=True)
        except (subprocess.CalledProcessError, OSError):
            return None
        found = re.search(r"release (\d+\.\d+)", said)
        return NvidiaTool(path, found[1]) if found else None


class env_nvidia_tool(env_base):
    """A program of NVIDIA's toolkit: settings are paths, values are `NvidiaTool`."""

    def __init__(self, binary: str) -> None:
        self.binary = binary + (sysconfig.get_config_var("EXE") or "")
        super().__init__(f"TRITON_{self.binary.upper().replace('-', '_')}_PATH")

    def get(self) -> NvidiaTool:
        return self.transform(getenv(self.key))

    def transform(self, value: Any) -> NvidiaTool:
        tool = NvidiaTool.from_path(value or self.binary)
        if tool is None:
            raise RuntimeError(f"cannot find {self.binary}: set {self.key} to its path")
        return tool


@dataclass(frozen=True)
class CompileTimes:
    """The times of a compilation, in microseconds."""

    #: From the Python function to Triton IR.
    ir_initialization: int
    #: The stages behind it, by name and in their order.
    lowering_stages: list[tuple[str, int]]
    #: Writing the results to the cache.
    store_results: int

    @property
    def total_lowering(self) -> int:
        return sum(time for _, time in self.lowering_stages)

    @property
    def total(self) -> int:
        return self.ir_initialization + self.total_lowering + self.store_results


class base_knobs:
    """A group of knobs."""

    @property
    def knob_descriptors(self) -> dict[str, env_base]:
        """The knobs that have an environment variable."""
        return {
            name: value for name, value in vars(type(self)).items() if isinstance(value, env_base)
        }

    @property
    def knobs(self) -> dict[str, Any]:
        """Their values."""
        return {name: getattr(self, name) for name in self.knob_descriptors}

    def copy(self) -> Any:
        """A group of the same settings."""
        result = type(self)()
        result.__dict__.update(self.__dict__)
        return result

    def reset(self) -> Any:
        """Returns all knobs to their environment variables. Returns the group."""
        for name in self.knob_descriptors:
            delattr(self, name)
        return self

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Restores the group, and its environment variables, at the end of a ``with`` block."""
        variables = {knob.key: getenv(knob.key) for knob in self.knob_descriptors.values()}
        settings = dict(self.__dict__)
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(settings)
            for key, value in variables.items():
                if value is None:
                    os.environ.pop(key, None)
                else:
                    os.environ[key] = value
            self._changed()

    def _changed(self) -> None:
        """Is called when settings were put back."""


class build_knobs(base_knobs):
    """How `triton.runtime.build` calls the C compiler."""

    cc = env_opt_str("CC")
    cudacrt_path = env_opt_str("TRITON_CUDACRT_PATH")
    cudart_path = env_opt_str("TRITON_CUDART_PATH")
    #: A function that takes the place of the call: (name, src, srcdir, library_dirs, include_dirs, libraries) -> path.
    impl: Callable[..., str] | None = None

    @property
    def backend_dirs(self) -> set[str]:
        return {path for path in (self.cudacrt_path, self.cudart_path) if path is not None}


class redis_knobs(base_knobs):
    """Where `triton.runtime.cache.RedisRemoteCacheBackend` keeps kernels."""

    key_format = env_str("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}")
    host = env_str("TRITON_REDIS_HOST", "localhost")
    port = env_int("TRITON_REDIS_PORT", 6379)


class cache_knobs(base_knobs):
    """Where files are kept. Compiled kernels go to ``dir`` if that is set, or to TRITON_METAL_CACHE_DIR."""

    home_dir = env_str("TRITON_HOME", os.path.expanduser("~/"))
    dump_dir = env_str_callable_default("TRITON_DUMP_DIR", lambda: cache.get_triton_dir("dump"))
    override_dir = env_str_callable_default(
        "TRITON_OVERRIDE_DIR", lambda: cache.get_triton_dir("override")
    )
    dir = env_str_callable_default("TRITON_CACHE_DIR", lambda: cache.get_triton_dir("cache"))
    manager_class = env_class("TRITON_CACHE_MANAGER", "CacheManager")
    remote_manager_class = env_class("TRITON_REMOTE_CACHE_BACKEND", "RemoteCacheBackend")

    def get_triton_dir(self, dirname: str) -> str:
        return os.path.join(self.home_dir, ".triton", dirname)


class compilation_knobs(base_knobs):
    """What a compilation does besides. ``always_compile`` reads no kernel from disk, ``dump_ir`` writes each stage's text
    to ``cache.dump_dir``, ``override`` takes a stage's text from ``cache.override_dir``, ``front_end_debugging`` keeps the
    compiler's own frames in tracebacks, and ``listener`` is called after each compilation.
    """

    override = env_bool("TRITON_KERNEL_OVERRIDE")
    dump_ir = env_bool("TRITON_KERNEL_DUMP")
    dump_ir_extract_di_local_variables = env_bool("LLVM_EXTRACT_DI_LOCAL_VARIABLES")
    store_binary_only = env_bool("TRITON_STORE_BINARY_ONLY")
    always_compile = env_bool("TRITON_ALWAYS_COMPILE")
    use_ir_loc = env_opt_str("USE_IR_LOC")
    enable_asan = env_bool("TRITON_ENABLE_ASAN")
    disable_line_info = env_bool("TRITON_DISABLE_LINE_INFO")
    front_end_debugging = env_bool("TRITON_FRONT_END_DEBUGGING")
    allow_non_constexpr_globals = env_bool("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS")
    instrumentation_mode: str = os.environ.get("TRITON_INSTRUMENTATION_MODE", "")
    fpsan_homomorphic_casts = env_bool("TRITON_FPSAN_HOMOMORPHIC_CASTS")
    listener: Callable[..., None] | None = None


class autotuning_knobs(base_knobs):
    """What autotuning keeps and says."""

    cache = env_bool("TRITON_CACHE_AUTOTUNING")
    print = env_bool("TRITON_PRINT_AUTOTUNING")
    chip: env_base = env_str("TRITON_METAL_CHIP", "")
    measure_all = env_bool("TRITON_METAL_AUTOTUNE_MEASURE_ALL")
    listener: Callable[..., None] | None = None


Hook = TypeVar("Hook", bound=Callable[..., Any])


class HookChain(Generic[Hook]):
    """Functions that are called one after another, or, with ``reversed``, the last one first."""

    def __init__(self, reversed: bool = False) -> None:
        self._calls: list[Hook] = []
        self.reversed = reversed

    @property
    def calls(self) -> list[Hook]:
        """The functions."""
        return self._calls

    @calls.setter
    def calls(self, calls: Iterable[Hook]) -> None:
        self._calls[:] = calls  # the native launcher looks at this list

    def add(self, func: Hook) -> None:
        """Appends a function, if it is not there yet."""
        if func not in self.calls:
            self.calls.append(func)

    def remove(self, func: Hook) -> None:
        """Takes a function out, if it is there."""
        if func in self.calls:
            self.calls.remove(func)

    def __bool__(self) -> bool:
        # A chain is a hook even while it is empty: code that was made for a launch keeps it.
        return True

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        for call in self.calls[::-1] if self.reversed else list(self.calls):
            call(*args, **kwargs)


class _Told:
    """A knob of the runtime that the native launcher knows, so that a launch need not ask for it."""

    def __init__(self, default: Any) -> None:
        self.default = default
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self.default
        return instance.__dict__.get(self.name, self.default)

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = value
        instance._changed()

    def __delete__(self, instance: Any) -> None:
        instance.__dict__.pop(self.name, None)
        instance._changed()


class _Debug(_Told):
    """``knobs.runtime.debug``: TRITON_DEBUG until a program sets it. It does not go into the environment."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        found = None if instance is None else instance.__dict__.get(self.name)
        return getenv_bool("TRITON_DEBUG", False) if found is None else found


class runtime_knobs(base_knobs):
    """Hooks of launches and compilations, and ``debug``, which turns assertions on in every kernel.

    A hook is a function or None; those that are chains have ``add`` and ``remove``.
    """

    interpret = env_bool("TRITON_INTERPRET")
    debug: Any = _Debug(None)
    override_arch = env_opt_str("TRITON_OVERRIDE_ARCH")

    launch_enter_hook: Any = _Told(HookChain())
    launch_exit_hook: Any = _Told(HookChain(reversed=True))
    kernel_load_start_hook: Any = HookChain()
    kernel_load_end_hook: Any = HookChain(reversed=True)
    kernel_unload_hook: Any = HookChain()
    jit_cache_hook: Callable[..., bool | None] | None = None
    jit_post_compile_hook: Callable[..., bool | None] | None = None
    add_stages_inspection_hook: Any = _Told(None)

    def _changed(self) -> None:
        if globals().get("runtime") is self:
            _tell(self)


_inspected_by: Any = None  # the hook that kernels are compiled with


def _tell(group: runtime_knobs) -> None:
    """Tells the native launcher what a launch has to call."""
    global _inspected_by

    def calls(hook: Any) -> list[Any]:
        return [] if hook is None else hook.calls if isinstance(hook, HookChain) else [hook]

    _native.set_launch_hooks(
        calls(group.launch_enter_hook), calls(group.launch_exit_hook), group.__dict__.get("debug")
    )
    # What the hook answers is part of the kernel.
    if group.add_stages_inspection_hook is not _inspected_by:
        _inspected_by = group.add_stages_inspection_hook
        _native.configuration_changed()


class _InKernels(env_opt_str):
    """Text that is part of kernels: they are compiled again after a change by the program."""

    def __set__(self, instance: Any, value: Any) -> None:
        super().__set__(instance, value)
        _native.configuration_changed()

    def __delete__(self, instance: Any) -> None:
        super().__delete__(instance)
        _native.configuration_changed()


class _ChoiceInKernels(env_bool):
    """A choice that is part of kernels, likewise."""

    def __set__(self, instance: Any, value: Any) -> None:
        super().__set__(instance, value)
        _native.configuration_changed()

    def __delete__(self, instance: Any) -> None:
        super().__delete__(instance)
        _native.configuration_changed()


class language_knobs(base_knobs):
    """Defaults of the language. ``fp32_default`` is the ``input_precision`` of `dot` for kernels that give none."""

    fp32_default = _InKernels("TRITON_F32_DEFAULT")
    default_fp_fusion = _ChoiceInKernels("TRITON_DEFAULT_FP_FUSION", True)
    force_disable_fp_fusion = _ChoiceInKernels("TRITON_FORCE_DISABLE_FP_FUSION")

    def fp_fusion_enabled(self, requested: bool | None) -> bool:
        """Whether multiplications and additions may be fused."""
        unsaid = requested is None and getenv("TRITON_DEFAULT_FP_FUSION") is None
        if unsaid and not self.force_disable_fp_fusion:
            warn_once(FP_FUSION_DEFAULT_WARNING)
        wanted = self.default_fp_fusion if requested is None else requested
        return wanted and not self.force_disable_fp_fusion

    def _changed(self) -> None:
        _native.configuration_changed()


class nvidia_knobs(base_knobs):
    """NVIDIA's backend has these; they change nothing here."""

    cuobjdump = env_nvidia_tool("cuobjdump")
    nvdisasm = env_nvidia_tool("nvdisasm")
    ptxas = env_nvidia_tool("ptxas")
    ptxas_blackwell = env_nvidia_tool("ptxas-blackwell")
    dump_nvptx = env_bool("NVPTX_ENABLE_DUMP")
    disable_ptxas_opt = env_bool("DISABLE_PTXAS_OPT")
    ptxas_options = env_opt_str("PTXAS_OPTIONS")
    mock_ptx_version = env_opt_str("TRITON_MOCK_PTX_VERSION")
    dump_ptxas_log = env_bool("TRITON_DUMP_PTXAS_LOG")
    libdevice_path = env_opt_str("TRITON_LIBDEVICE_PATH")
    libcuda_path = env_opt_str("TRITON_LIBCUDA_PATH")


class amd_knobs(base_knobs):
    """AMD's backend has these; they change nothing here."""

    codegen_path = env_opt_str("TRITON_AMD_CODEGEN_PATH")
    use_buffer_ops = env_bool("AMDGCN_USE_BUFFER_OPS", True)
    use_buffer_atomics = env_bool("AMDGCN_USE_BUFFER_ATOMICS", True)
    buffer_ops_analyze_small_tensor_range = env_bool("AMDGCN_ANALYZE_SMALL_TENSOR_RANGE")
    dump_amdgcn = env_bool("AMDGCN_ENABLE_DUMP")
    libhip_path = env_opt_str("TRITON_LIBHIP_PATH")
    use_block_pingpong = env_opt_bool("TRITON_HIP_USE_BLOCK_PINGPONG")
    use_in_thread_transpose = env_opt_bool("TRITON_HIP_USE_IN_THREAD_TRANSPOSE")
    use_async_copy = env_opt_bool("TRITON_HIP_USE_ASYNC_COPY")
    use_coexec_scheduler = env_opt_bool("TRITON_HIP_USE_COEXEC_SCHEDULER")
    use_expert_scheduling = env_opt_bool("TRITON_HIP_USE_EXPERT_SCHEDULING")
    scalarize_packed_fops = env_bool("AMDGCN_SCALARIZE_PACKED_FOPS")
    dump_mir = env_opt_str("TRITON_DUMP_MIR")
    swap_mir = env_opt_str("TRITON_SWAP_MIR")
    swap_mir_enable_misched = env_bool("TRITON_SWAP_MIR_ENABLE_MISCHED")


_LIBRARIES = pathlib.Path(__file__).parent / "backends" / "nvidia" / "lib"


class proton_knobs(base_knobs):
    """The profiler Proton has these; it measures other vendors' GPUs."""

    disable = env_bool("TRITON_PROTON_DISABLE")
    cupti_lib_dir = env_str("TRITON_CUPTI_LIB_PATH", str(_LIBRARIES / "cupti"))
    cupti_lib_blackwell_dir = env_str(
        "TRITON_CUPTI_LIB_BLACKWELL_PATH", str(_LIBRARIES / "cupti-blackwell")
    )
    hsa_runtime_path = env_opt_str("TRITON_HSA_RUNTIME_PATH")
    hsa_runtime_library = env_opt_str("TRITON_HSA_RUNTIME_LIBRARY")
    rocprofiler_sdk_include_path = env_opt_str("TRITON_ROCPROFILER_SDK_INCLUDE_PATH")
    rocprofiler_sdk_lib_path = env_opt_str("TRITON_ROCPROFILER_SDK_LIB_PATH")
    rocprofiler_sdk_library = env_opt_str("TRITON_ROCPROFILER_SDK_LIBRARY")
    roctracer_lib_path = env_opt_str("TRITON_ROCTRACER_LIB_PATH")
    roctracer_library = env_opt_str("TRITON_ROCTRACER_LIBRARY")
    roctx_lib_path = env_opt_str("TRITON_ROCTX_LIB_PATH")
    roctx_library = env_str("TRITON_ROCTX_LIBRARY", "libroctx64.so")
    profile_buffer_size = env_int("TRITON_PROFILE_BUFFER_SIZE", 64 << 20)
    profile_metric_buffer_size = env_int("TRITON_PROFILE_METRIC_BUFFER_SIZE", 64 << 20)
    enable_nvtx = env_bool("TRITON_ENABLE_NVTX", True)
    enable_hw_trace = env_bool("TRITON_ENABLE_HW_TRACE")


class _Knobs(ModuleType):
    """This module: a group that takes the place of ``runtime`` is told to the native launcher, too."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "runtime" and isinstance(value, runtime_knobs):
            _tell(value)


sys.modules[__name__].__class__ = _Knobs

build = build_knobs()
redis = redis_knobs()
cache = cache_knobs()
compilation = compilation_knobs()
autotuning = autotuning_knobs()
runtime = runtime_knobs()
language = language_knobs()
nvidia = nvidia_knobs()
amd = amd_knobs()
proton = proton_knobs()
_tell(runtime)


def refresh_knobs() -> None:
    """Reads the knobs again that are kept outside of the environment."""
    del runtime.debug
    compilation.instrumentation_mode = os.environ.get("TRITON_INSTRUMENTATION_MODE", "")
