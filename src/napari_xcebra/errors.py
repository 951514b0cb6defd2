"""Errors that are shown to the user as they are."""


class InputError(ValueError):
    """A sentence to the scientist: what was found, where, and what is needed."""


class Stopped(Exception):
    """The caller asked to stop, and there is nothing to show."""


class TrainingDiverged(RuntimeError):
    """The loss left the finite numbers; says what to change."""
