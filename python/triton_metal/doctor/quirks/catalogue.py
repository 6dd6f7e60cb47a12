"""All probes and questions, by their keys."""

from __future__ import annotations

import functools

from . import arithmetic, control, memory, promises, tensors
from .form import Probe, Question


@functools.cache
def probes() -> tuple[Probe, ...]:
    """The probes of known defects, by their rows."""
    found = (
        memory.barrier_of_one_simdgroup(),
        arithmetic.remainder_of_quotient(),
        arithmetic.wide_remainder_of_narrow_numbers(),
        memory.one_thread_accumulates(),
        memory.store_seen_in_the_next_iteration(),
        memory.arrays_change_places(),
        arithmetic.remainder_as_an_address(),
        memory.bytes_by_chained_offsets(),
        memory.local_array_in_a_large_kernel(),
        memory.threadgroup_memory_as_argument(),
        arithmetic.fast_math(),
        arithmetic.fast_tanh(),
        control.loop_without_visible_end(),
        arithmetic.signed_overflow(),
        memory.atomics_in_bytes(),
        memory.plain_stores_and_compare_exchange(),
        control.long_unrolled_body(),
        control.matrices_as_arguments(),
        control.rolled_loop_over_matrices(),
        control.matrices_in_threadgroup_memory(),
        control.first_lane_in_a_branch(),
        memory.uninitialised_local_array(),
        *tensors.probes(),
    )
    return tuple(sorted(found, key=lambda probe: probe.row))


@functools.cache
def questions() -> tuple[Question, ...]:
    """What Metal does not promise."""
    return promises.questions()


def find(key: str) -> Probe | Question:
    """The probe or question with this key."""
    for item in (*probes(), *questions()):
        if item.key == key:
            return item
    raise KeyError(key)
