"""Tables are read as labs write them, and put on the clock that they bring."""

import builtins
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.behavior import tables
from napari_xcebra.io.clocks.placing import on_frames
from napari_xcebra.io.clocks.timestamps import runs_forward, scale_of
from napari_xcebra.io.containers.tables import read_table
from napari_xcebra.io.settings import OpenSettings

ROWS = 200
TIMES = np.arange(ROWS) / 20
X = np.sin(TIMES)


def loaded(path, table, **choices):
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False)
    return tables.load(path, OpenSettings(**choices))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a,b\n1,2\n3,4\n", {"a": [1, 3], "b": [2, 4]}),
        ("1.5,2\n3,4\n", {0: [1.5, 3], 1: [2, 4]}),
        ("a;b\n1,5;2\n3,25;4\n", {"a": [1.5, 3.25], "b": [2, 4]}),
        ("a\tb\n1\t2\n3\t4\n", {"a": [1, 3], "b": [2, 4]}),
        ("# rig 3\n\n% 2024\na,b\n1,2\n3,4\n", {"a": [1, 3], "b": [2, 4]}),
        ("a,b\n1,2,\n3,4,\n", {"a": [1, 3], "b": [2, 4]}),
        ('"a","b"\n"r1",1,2\n"r2",3,4\n', {"a": [1, 3], "b": [2, 4]}),
        (",a,b\n0,1,2\n1,3,4\n", {"a": [1, 3], "b": [2, 4]}),
        ("frame,a,b\n0,1,2\n1,3,4\n", {"a": [1, 3], "b": [2, 4]}),
        (" a , b\n1, 2\n3, 4\n", {"a ": [1, 3], "b": [2, 4]}),
        (
            "rig;3\nday;2\na;b;c;d\n" + "1;2;3;4\n" * 3,
            {"a": [1] * 3, "b": [2] * 3, "c": [3] * 3, "d": [4] * 3},
        ),
        (
            '"Number of header lines:";"5"\n"Arena";"1"\n""\n"a";"b"\n"s";"cm"\n1;5\n2;3\n',
            {"a_s": [1, 2], "b_cm": [5, 3]},
        ),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_is_read_as_labs_write_it(tmp_path, text, columns, encoding):
    (tmp_path / "t.csv").write_text(text, encoding=encoding)
    table = read_table(tmp_path / "t.csv")
    assert {name: list(column) for name, column in table.items()} == columns


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("t\tx\n0,1\t7,5\n0,2\t8,25\n", [7.5, 8.25]),
        ('t,x\n"0,1","7,5"\n"0,2","8,25"\n', [7.5, 8.25]),
        ("t;x\n0,1;1.234,5\n0,2;8,25\n", [1234.5, 8.25]),
        ("t;x\n0.1;1,234.5\n0.2;8.25\n", [1234.5, 8.25]),
        ("t;x\n0,1;75\n0,2;NA\n", [75, np.nan]),
    ],
)
def test_a_decimal_comma_never_becomes_a_larger_number(tmp_path, text, numbers):
    (tmp_path / "t.txt").write_text(text)
    np.testing.assert_array_equal(read_table(tmp_path / "t.txt")["x"], numbers)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("3,7,9", "1.5,2,0.1\n1.25,2.5,0.2\n"),
        ("14,3,22", "0.5,0.25,1\n0.75,0.5,0.25\n"),
        ("1203,1207,1310", "5,7,9\n6,6,8\n5,8,7\n6,7,9\n"),
        ("2,3,5,8,9,11,14,15", "5,1,2,7,7,3,0,1\n4,1,3,8,6,3,1,2\n5,2,2,7,6,4,0,1\n"),
        ("0.0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9", "5,1,2,7,7,3,0,1,2,5\n" * 3),
    ],
)
def test_a_first_row_of_ids_or_times_names_the_columns(tmp_path, head, body):
    (tmp_path / "t.csv").write_text(f"{head}\n{body}")
    table = read_table(tmp_path / "t.csv")
    assert (",".join(table.columns), len(table)) == (head, body.count("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "312,200\n313,202\n315,203\n",  # a place in pixels
        "0,512,600\n1,510,605\n2,509,604\n",  # rows that are numbered
        "0,512,600\n0.1,510,605\n0.2,509,604\n",  # and timed
        "512,498,1200\n520,480,1190\n515,491,1220\n",
        "1.5,2.5,3.5\n1,2,3\n3,1,2\n",
    ],
)
def test_a_first_row_of_values_is_a_row(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    table = read_table(tmp_path / "t.csv")
    assert list(table.columns) == list(range(text.split("\n")[0].count(",") + 1))
    assert len(table) == 3


def test_a_first_row_that_may_be_ids_or_counts_is_asked_about(tmp_path):
    (tmp_path / "t.csv").write_text("3,7,9\n4,5,2\n1,6,8\n7,3,5\n")
    with pytest.raises(InputError, match=r"first row of .*t\.csv \(3, 7, 9\) may name"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("heads", "names"),
    [
        (("x,y,time", "cm,cm,ms"), ["x_cm", "y_cm", "time_ms"]),
        (("x,y,time", "(cm),(cm),(s)", "a,b,"), ["x_cm_a", "y_cm_b", "time_s"]),
        (("animal,m1,m1,m1", "quantity,x,y,speed"), ["animal_quantity", "x", "y", "speed"]),
        (("animal,m1,m1", "what,x,v", "unit,cm,cm/s"), ["animal_what_unit", "x_cm", "v_cm/s"]),
        (("animal,m1,m1,m2", "quantity,x,y,x"), ["animal_quantity", "m1_x", "m1_y", "m2_x"]),
    ],
)
def test_several_rows_of_words_name_the_columns_together(tmp_path, heads, names):
    rows = [",".join(str(7.5 * row + i) for i in range(len(names))) for row in range(5)]
    (tmp_path / "t.csv").write_text("\n".join([*heads, *rows]) + "\n")
    table = read_table(tmp_path / "t.csv")
    assert list(table.columns) == names
    assert table.iloc[0].tolist() == list(range(len(names)))


def test_words_in_the_first_rows_of_a_column_of_words_are_its_values(tmp_path):
    (tmp_path / "t.csv").write_text("time,event\nNA,start\n,lick\n1.5,reward\n")
    assert list(read_table(tmp_path / "t.csv")["event"]) == ["start", "lick", "reward"]


@pytest.mark.parametrize("text", ["0,0;12,3;5,1\n0,1;12,4;5,2\n", 't,"a;b"\n1,2\n3,4\n'])
def test_what_separates_all_rows_alike_is_the_separator(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    assert read_table(tmp_path / "t.csv").shape == (2, 3 if ";5" in text else 2)


def test_a_number_that_may_be_two_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text('n,x\n1,"1,234"\n2,"5,678"\n')
    with pytest.raises(InputError, match=r"may be 1\.234 or 1234"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("word", ["None", "NA", "null", "nan", "N/A", "<NA>", "-", "none"])
def test_a_class_may_be_called_nothing(tmp_path, word):
    (tmp_path / "b.csv").write_text(f"odour\nair\n{word}\n\nair\n".replace("\n\n", '\n""\n'))
    series = tables.load(tmp_path / "b.csv", OpenSettings()).series[0]
    assert [series.labels[int(v)] if v == v else "" for v in series.values] == [
        "air", word, "", "air",
    ]  # fmt: skip


@pytest.mark.parametrize("gap", [False, True])
def test_ids_that_no_float_tells_apart_stay_different(tmp_path, gap):
    ids = [2**60 + row // 2 for row in range(8)]
    lines = ["id,x", *(f"{n},1" for n in ids), *([",1"] if gap else [])]
    (tmp_path / "b.csv").write_text("\n".join(lines))
    series = tables.load(tmp_path / "b.csv", OpenSettings()).series[0]
    assert len(np.unique(series.values[:8])) == 4
    assert series.labels == tuple(str(2**60 + n) for n in range(4))


def test_an_old_windows_encoding_is_read(tmp_path):
    (tmp_path / "t.csv").write_bytes("angle (°),µm\n1,2\n3,4\n".encode("cp1252"))
    assert list(read_table(tmp_path / "t.csv").columns) == ["angle (°)", "µm"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "cannot be read as a table"),
        (b"a,b\n", "has no rows"),
        (b"a,b\n1,2,3,4\n", "4 entries in its second row but 2 names"),
        (b"\x00\x01\x02\x03" * 50, "holds no text"),
        (b"a,b\n1,2\n1,2,3\n", "Expected 2 fields in line 3"),
    ],
)
def test_what_is_no_table_gets_a_sentence(tmp_path, content, sentence):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        *((name, 1.0) for name in ("t", "time", "Time (s)", "time_s", "timestamps", "seconds")),
        *((name, 1.0) for name in ("TimeStamp", "elapsed time [s]", "t_sec", "frame_time")),
        *((name, 1e-3) for name in ("ms", "time_ms", "Time (ms)", "timestamp_milliseconds")),
        *((name, 1e-6) for name in ("time_us", "Timestamp (µs)")),
        ("time_min", 60.0),
        *((name, None) for name in ("x", "reaction_time", "trial_time_s", "start_time", "t1")),
        *((name, None) for name in ("speed_cm_s", "min", "temperature", "", "time_since_reward")),
    ],
)
def test_a_clock_is_known_by_its_name_and_unit(name, scale):
    assert scale_of(name) == scale


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(("name", "scale"), [("Time (s)", 1), ("time_ms", 1000), ("t", 1)])
def test_a_column_of_times_is_the_clock_of_the_others(tmp_path, ending, name, scale):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    table = pd.DataFrame({name: TIMES * scale, "x": X, "choice": ["l", "r"] * (ROWS // 2)})
    behavior = loaded(tmp_path / f"b.{ending}", table)
    assert [series.name for series in behavior.series] == ["x", "choice"]
    for series in behavior.series:
        np.testing.assert_allclose(series.times, TIMES, atol=1e-9)
    assert behavior.series[1].labels == ("l", "r")


@pytest.mark.parametrize(
    "form", ["%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f+02:00", "%H:%M:%S.%f"]
)
def test_dates_and_times_of_day_count_from_the_first(tmp_path, form):
    dates = pd.Timestamp("2024-05-01 09:30") + pd.to_timedelta(TIMES, unit="s")
    behavior = loaded(tmp_path / "b.csv", pd.DataFrame({"Timestamp": dates.strftime(form), "x": X}))
    np.testing.assert_allclose(behavior.series[0].times, TIMES, atol=1e-5)
    assert "counted from the first" in behavior.notes[0] and "30:00" in behavior.notes[0]


def test_an_index_of_dates_in_parquet_is_the_clock(tmp_path):
    pytest.importorskip("pyarrow")
    dates = pd.Timestamp("2024-05-01 09:30", tz="UTC") + pd.to_timedelta(TIMES, unit="s")
    behavior = loaded(tmp_path / "b.parquet", pd.DataFrame({"x": X}, index=dates))
    np.testing.assert_allclose(behavior.series[0].times, TIMES, atol=1e-5)


def test_what_is_named_as_a_clock_but_starts_again_is_a_variable(tmp_path):
    table = pd.DataFrame({"time": np.tile(TIMES[:50], 4), "x": X})
    behavior = loaded(tmp_path / "b.csv", table)
    assert [series.name for series in behavior.series] == ["time", "x"]
    assert all(series.times is None for series in behavior.series)
    assert "does not run forward" in behavior.notes[0]


def test_a_second_clock_is_no_variable(tmp_path):
    table = pd.DataFrame({"time": TIMES, "timestamp": TIMES + 1.7e9, "x": X})
    behavior = loaded(tmp_path / "b.csv", table)
    assert [series.name for series in behavior.series] == ["x"]


@given(st.permutations(range(12)))
@example(list(range(12)))
def test_running_forward_admits_late_samples_and_no_shuffling(order):
    back = sum(b < a for a, b in pairwise(order))
    forward = runs_forward(np.array(order, float))
    assert forward or back > 0
    assert not forward or back <= 0.2 * 11
    assert runs_forward(np.sort(order).astype(float))


def test_missing_numbers_of_any_type_are_unknown(tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"n": pd.array([1, None, 3], "Int64"), "b": pd.array([True, None, False])})
    found = {s.name: s.values for s in loaded(tmp_path / "b.parquet", table).series}
    np.testing.assert_array_equal(found["n"], [1, np.nan, 3])
    np.testing.assert_array_equal(found["b"].astype(float), [1, np.nan, 0])


def test_columns_that_are_no_behaviour_are_left_out(tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"x": [1.0, 2.0], "lists": [[1], [2, 3]], "empty": [None, None]})
    behavior = loaded(tmp_path / "b.parquet", table)
    assert [series.name for series in behavior.series] == ["x"]
    assert len(behavior.notes) == 2


def test_a_table_under_another_name_is_recognised_by_its_lines(tmp_path):
    (tmp_path / "rig.log").write_text("time,x\n0,1\n1,2\n")
    (tmp_path / "note.md").write_text("This is, as it were,\nno table.\n")
    assert tables.sniff(tmp_path / "rig.log")
    assert not tables.sniff(tmp_path / "note.md")
    assert not tables.sniff(tmp_path)


def test_parquet_without_its_library_says_what_to_install(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"x": X}).to_parquet(tmp_path / "b.parquet")
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install napari-xcebra\[parquet\]"):
        read_table(tmp_path / "b.parquet")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@given(cut=st.floats(0, 1), place=st.floats(0, 1), byte=st.integers(0, 255), renamed=st.booleans())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_table_gets_a_sentence(tmp_path, ending, cut, place, byte, renamed):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"b.{ending}"
    table = pd.DataFrame({"time": TIMES[:40], "x": X[:40], "choice": ["l", "r"] * 20})
    table.to_parquet(path) if ending == "parquet" else table.to_csv(path)
    content = bytearray(path.read_bytes())
    content[int(place * (len(content) - 1))] = byte
    if renamed:
        path = path.with_suffix(".csv" if ending == "parquet" else ".parquet")
    path.write_bytes(content[: int(cut * len(content)) + 1])
    with suppress(InputError):
        on_frames(tables.load(path, OpenSettings()), np.arange(0, 2, 0.1), OpenSettings())


@given(
    st.binary(max_size=300)
    | st.text(alphabet='0123456789.,;-e"\n\txt ', max_size=200).map(str.encode)
)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_as_a_table_get_a_sentence_or_are_read(tmp_path, content):
    (tmp_path / "b.csv").write_bytes(content)
    with suppress(InputError):
        behavior = tables.load(tmp_path / "b.csv", OpenSettings())
        on_frames(behavior, np.arange(0, 2, 0.1), OpenSettings())


@pytest.mark.parametrize("gap", [" ", "   "])
@pytest.mark.parametrize("header", ["", "time x y\n"])
def test_spaces_separate_columns_where_nothing_else_does(tmp_path, gap, header):
    path = tmp_path / "track.txt"
    rows = ["", *(gap.join((f"{i / 10}", f"{i}", "1e-3")) for i in range(20))]
    path.write_text(header + f"\n{gap}".join(rows).lstrip("\n") + "\n")
    table = read_table(path)
    assert table.shape == (20, 3)
    assert list(map(str, table.columns)) == (["time", "x", "y"] if header else ["0", "1", "2"])
    np.testing.assert_allclose(table.iloc[:, 0], np.arange(20) / 10)


def test_traces_separated_by_spaces_are_opened(tmp_path):
    traces = np.random.default_rng(0).normal(size=(3000, 8)).cumsum(axis=0)
    np.savetxt(tmp_path / "traces.txt", traces)
    recording = open_recording(tmp_path / "traces.txt", rate=10.0)
    np.testing.assert_allclose(recording.traces, traces, rtol=1e-6)
