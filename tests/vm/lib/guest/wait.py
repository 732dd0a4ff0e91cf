# SPDX-License-Identifier: LGPL-2.1-or-later
"""Polling with a deadline. What is awaited is said in the user's words, so that a failure reads as what they would have seen."""

import time


def _attempt(fn):
    """(value, note): an assertion or a vanished file counts as not yet, and says why."""
    try:
        return fn(), ""
    except (AssertionError, OSError, KeyError, ValueError, TypeError, IndexError) as error:
        return None, f"{type(error).__name__}: {error}"


def wait_until(fn, timeout=10, what="", interval=0.1):
    """Calls fn until it answers something true and gives that back; AssertionError "WHAT did not come within ..." at the deadline."""
    end = time.monotonic() + timeout
    while True:
        value, note = _attempt(fn)
        if value:
            return value
        if time.monotonic() >= end:
            last = note or f"last seen: {value!r}"
            raise AssertionError(f"{what or fn.__name__} did not come within {timeout} s ({last})")
        time.sleep(interval)


def holds(fn, seconds, what="", interval=0.1):
    """Asserts that fn answers something true for this long, without a gap that polling can see."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value, note = _attempt(fn)
        left = end - time.monotonic()
        assert value, f"{what or fn.__name__} held only {seconds - left:.1f} of {seconds} s ({note or f'seen: {value!r}'})"
        time.sleep(interval)
