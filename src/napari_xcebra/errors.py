"""Errors that are shown to the user as they are."""


class InputError(ValueError):
    """A sentence to the scientist: what was found, where, and what is needed."""


class TrainingDiverged(RuntimeError):
    """The loss left the finite numbers; says what to change."""
