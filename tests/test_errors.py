"""What a user is told can be read."""

import pickle

from napari_xcebra.errors import LONGEST, CannotWrite, InputError, _brief


def test_a_sentence_of_70_000_characters_keeps_its_beginning_and_its_end():
    error = InputError(f"Column {'0 1 ' * 17_000} of x.csv is not known: choose another.")
    assert len(str(error)) < LONGEST + 10
    assert str(error).startswith("Column 0 1")
    assert str(error).endswith("of x.csv is not known: choose another.")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_fits_stays_as_it_is():
    assert _brief("F.npy has 219 cells.") == "F.npy has 219 cells."
    assert str(CannotWrite("x" * 5000)).count("x") <= LONGEST
