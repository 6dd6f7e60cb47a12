"""Compilation in the threads of an executor."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, as_completed
from contextvars import ContextVar
from typing import Any

#: The mode of this context.
active_mode: ContextVar[AsyncCompileMode | None] = ContextVar(
    "async_compile_active_mode", default=None
)


class FutureKernel:
    """A kernel that may still be compiled. Its attributes are those of the compiled kernel, for which they wait."""

    def __init__(
        self,
        finalize_compile: Callable[[Any], None],
        cleanup_compile: Callable[[FutureKernel], None],
        future: Future[Any],
    ) -> None:
        """``finalize_compile(kernel)`` is called when ``result`` has the kernel, ``cleanup_compile`` if it has none."""
        self.finalize_compile = finalize_compile
        self.cleanup_compile = cleanup_compile
        self.kernel: Any = None
        self.future: Future[Any] | None = future

    def result(self, ignore_errors: bool = False) -> Any:
        """The compiled kernel. Raises what the compilation raised, or returns None with ``ignore_errors``."""
        if self.kernel is None and self.future is not None:
            try:
                kernel = self.future.result()
            except Exception:
                self.cleanup_compile(self)
                self.future = None
                if ignore_errors:
                    return None
                raise
            self.finalize_compile(kernel)
            self.future, self.kernel = None, kernel
        return self.kernel

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.result(), name)


class AsyncCompileMode:
    """In this ``with`` block, ``kernel.warmup`` returns a `FutureKernel`, and an executor compiles.

    The end of the block waits for all kernels and raises the first error, unless ``ignore_errors`` is set.
    """

    def __init__(self, executor: Executor, *, ignore_errors: bool = False) -> None:
        self.executor = executor
        self.ignore_errors = ignore_errors
        self.raw_futures: list[Future[Any]] = []
        self.future_kernels: dict[Any, FutureKernel] = {}

    def submit(
        self,
        key: Any,
        compile_fn: Callable[[], Any],
        finalize_fn: Callable[[Any], None],
        cleanup_fn: Callable[[FutureKernel], None],
    ) -> FutureKernel:
        """The kernel with this key; ``compile_fn`` is called if it is new."""
        known = self.future_kernels.get(key)
        if known is not None:
            return known
        future = self.executor.submit(compile_fn)
        self.raw_futures.append(future)
        result = self.future_kernels[key] = FutureKernel(finalize_fn, cleanup_fn, future)
        return result

    def __enter__(self) -> AsyncCompileMode:
        if active_mode.get() is not None:
            raise RuntimeError("an AsyncCompileMode is active already")
        active_mode.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        active_mode.set(None)
        kernels = {kernel.future: kernel for kernel in self.future_kernels.values()}
        try:
            for future in as_completed(self.raw_futures):
                if future in kernels:
                    kernels[future].result(self.ignore_errors)
        finally:
            self.raw_futures = []
            self.future_kernels = {}
