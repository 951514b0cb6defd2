"""What went wrong is in a file that can be attached, without data and without folders."""

import logging
from pathlib import Path

import pytest

from napari_xcebra.cli import main
from napari_xcebra.jobs import Call, Failed, Worker
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.support import logs
from napari_xcebra.support.diagnostics import diagnostics
from napari_xcebra.support.logs import (
    LOGGER,
    _log_file,
    last_error,
    start_logging,
    stop_logging,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(logs.FOLDER, str(tmp_path / "logs"))
    monkeypatch.delenv(logs.LEVEL, raising=False)
    yield tmp_path / "logs"
    stop_logging()


def test_only_this_package_writes_and_by_its_level(folder):
    start_logging("window", "warning")
    logging.getLogger("somebody.else").error("not ours")
    LOGGER.info("too much")
    logging.getLogger("napari_xcebra.learn").warning("worth knowing")
    (line,) = _log_file().read_text(encoding="utf-8").splitlines()
    assert line.endswith("napari_xcebra.learn: worth knowing")
    assert "WARNING" in line


def test_a_log_that_was_turned_off_leaves_no_file(folder):
    assert start_logging("window", "off") is None
    LOGGER.error("nobody reads this")
    assert not folder.exists()


def test_starting_twice_writes_once(folder):
    start_logging("window")
    start_logging("window")
    LOGGER.error("once")
    assert _log_file().read_text(encoding="utf-8").count("once") == 1


def test_large_files_are_put_aside_and_few_are_kept(folder, monkeypatch):
    monkeypatch.setattr(logs, "LARGEST", 2000)
    start_logging("window")
    for number in range(200):
        LOGGER.error("a line of the log, number %d, of some length", number)
    files = sorted(folder.iterdir())
    assert len(files) == 1 + logs.KEPT
    assert all(file.stat().st_size <= 2000 for file in files)
    assert "number 199," in _log_file().read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_written_to_is_no_reason_to_fail(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(logs.FOLDER, str(tmp_path / "file" / "logs"))
    assert start_logging("window") is None
    LOGGER.error("lost")


def test_the_last_error_is_found_with_its_trace_and_without_folders(folder):
    start_logging("window")
    LOGGER.error("the first")
    try:
        Path("/home/ann/secret project/mouse.npz").read_bytes()
    except OSError:
        LOGGER.exception("reading failed")
    LOGGER.info("afterwards")
    told = last_error()
    assert told.splitlines()[0].endswith("napari_xcebra: reading failed")
    assert "Traceback" in told
    assert "the first" not in told
    assert "afterwards" not in told
    assert str(Path(__file__).parent) not in told


def test_a_background_process_writes_its_errors_to_a_file_of_its_own(folder):
    start_logging("window")
    with Worker() as worker:
        outcome = worker.submit(Call({}.__getitem__, ("quite unforeseen",))).wait(60)
    assert isinstance(outcome, Failed)
    for role in ("window", "background"):
        text = _log_file(role).read_text(encoding="utf-8")
        assert "quite unforeseen" in text
        assert "ERROR" in text
    assert _log_file("window") != _log_file("background")


def test_commands_log_what_they_were_but_not_what_they_were_given(folder, tmp_path, capsys):
    assert main(["info", str(tmp_path / "secret" / "mouse.npz")]) == 2
    text = _log_file("command").read_text(encoding="utf-8")
    assert "command: info" in text
    assert str(tmp_path) not in text


def test_diagnostics_tell_versions_device_settings_and_the_last_error_alone(folder):
    start_logging("window")
    LOGGER.error("It broke in /home/ann/mouse.npz")
    told = diagnostics(FitSettings(window=5), device="CPU")
    for words in ("napari-xcebra ", "torch ", "Python 3.", "device: CPU", "settings: window=5",
                  "It broke in mouse.npz"):  # fmt: skip
        assert words in told
    assert "/home" not in told
    assert diagnostics(error="another").endswith("last error:\nanother")


def test_the_command_prints_diagnostics_and_where_the_log_is(folder, capsys):
    assert main(["diagnostics"]) == 0
    said = capsys.readouterr().out
    assert "device: " in said
    assert str(folder) in said
