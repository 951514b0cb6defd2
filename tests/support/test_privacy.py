"""Nobody's folders, name or address leave this computer in a log or a report."""

import re
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_xcebra.support.diagnostics import diagnostics
from napari_xcebra.support.logs import traceback_without_folders, without_folders


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/home/ann/a/mouse.nwb has 3 cells.", "mouse.nwb has 3 cells."),
        (r"C:\Users\ann\mouse.nwb is damaged", "mouse.nwb is damaged"),
        ("12 m/s and/or 3 of 5, ~5/10", "12 m/s and/or 3 of 5, ~5/10"),
        (f"{Path.home()}/my data/mouse.nwb", "mouse.nwb"),
        (f"{Path.home()} is full", "~ is full"),
        ("see https://napari.org/stable/x", "see https://napari.org/stable/x"),
        ("/data/mouse 3/plane0: 4 cells at 2 m/s", "plane0: 4 cells at 2 m/s"),
        ("/data/a b/mouse.nwb has 3 cells at 2 m/s", "mouse.nwb has 3 cells at 2 m/s"),
        ("/a/b c/d and /e f/g/h differ", "d and h differ"),
        ("'/a/b c/d' -> \"/e f/it's/h\"", "'d' -> \"h\""),
        ("run /a b/c --out /d/e f", "run c --out e f"),
        ("/home/ben is full, /Users/eve/ too", "~ is full, ~ too"),
        ("/root is closed", "~ is closed"),
        ("~ben/data/x.csv and ../lab/y", "x.csv and y"),
        ("folder mice/secret/mouse.nwb", "folder mouse.nwb"),
        ("ask ann.smith@lab.example.org", "ask (address)"),
        ("ann@server:/data/my mice/mouse", "(address):mouse"),
        ("https://ann:key@lab.org/mice/x.nwb", "x.nwb"),
        ("https://lab.org/mice/x?token=abc", "https://lab.org/mice/x"),
        (r"\\\\server\share\my mice\x.nwb", "x.nwb"),
        ("'C:\\\\Users\\\\Ann Smith\\\\x.nwb'", "'x.nwb'"),
    ],
)
def test_files_are_called_by_their_names(text, told):
    assert without_folders(text) == told


def test_a_known_path_is_taken_out_whatever_it_is_called():
    path = "/data/a: b; c.nwb old/mouse"
    assert without_folders(f"{path} has 3 cells", path) == "mouse has 3 cells"


SECRET = "zqsecret"
around = st.text(st.sampled_from("abAZ019 -_.'\"()[]{}&,+#%$!=@äß漢é"), max_size=6)


def folder(before, after):
    """Name of a folder, unless it ends as if another path began."""
    return re.sub(r"\s+[.\"'(\[=]*$", "", f"{before}{SECRET}{after}").strip()


folders = st.lists(st.builds(folder, around, around), min_size=1, max_size=4)
names = st.sampled_from(["mouse.nwb", "plane0", "my mouse 3.npy", "it's.csv"])


def posix(parts, name):
    return str(PurePosixPath("/", *parts, name))


def windows(parts, name):
    return str(PureWindowsPath("D:\\", *parts, name))


def share(parts, name):
    return "\\\\server\\" + "\\".join([*parts, name])


def home(parts, name):
    return f"/Users/{'/'.join([*parts, name])}"


def address(parts, name):
    return f"smb://{SECRET}@server/{'/'.join([*parts, name])}"


def local_address(parts, name):
    return f"file:///{'/'.join([*parts, name])}"


def own(parts, name):
    return str(Path.home().joinpath(*parts, name))


SENTENCES = [
    "{} is damaged.",
    "Opened {}: 3 cells at 12 m/s",
    'File "{}", line 3, in read',
    "FileNotFoundError: [Errno 2] No such file or directory: {!r}",
    "{} and {} differ",
    "moved '{}' -> '{}'",
    "run --out={} --behavior {}",
    "({})",
]


@given(
    folders, names, st.sampled_from([posix, windows, share, home, address, local_address, own]),
    st.sampled_from(SENTENCES),
)  # fmt: skip
def test_no_folder_is_told_whatever_its_name_and_where_it_stands(parts, name, written, sentence):
    text = sentence.format(*[written(parts, name)] * 2)
    for told in (without_folders(text), traceback_without_folders(text)):
        assert SECRET not in told, told
    assert SECRET not in diagnostics(error=text)


@given(st.text(max_size=60))
def test_any_text_goes_through(text):
    without_folders(text)


@given(st.lists(st.sampled_from(["place", "3", "m/s", "cells,", "0.5", "R²", "x_cm:"])))
def test_words_without_folders_stay(words):
    assert without_folders(" ".join(words)) == " ".join(words)


def test_modules_in_a_trace_are_found_by_their_packages():
    trace = 'File "/home/ann b/e/lib/python3.11/site-packages/torch/nn/x.py", line 3'
    assert traceback_without_folders(trace) == 'File "torch/nn/x.py", line 3'
    ours = 'File "/home/ann b/src/napari_xcebra/files.py", line 3'
    assert traceback_without_folders(ours) == 'File "napari_xcebra/files.py", line 3'
    assert SECRET not in traceback_without_folders(f"/home/ann/src/{SECRET}/mouse.nwb")
