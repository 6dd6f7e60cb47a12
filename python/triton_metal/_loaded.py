"""Loads the compiled part, before anything else imports it."""

from .interrupts import deferred

with deferred():
    from . import _native as _native
