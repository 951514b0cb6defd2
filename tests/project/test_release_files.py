"""What is said beside the package agrees with what the package says."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
HOME = PROJECT["urls"]["Homepage"]
ON_CONDA = {"torch": "pytorch", "matplotlib": "matplotlib-base"}


def requirement(text: str) -> tuple[str, str]:
    """Name and range of a requirement, without spaces."""
    name, bounds = re.fullmatch(r"([A-Za-z0-9_.-]+)\s*(.*)", text).groups()
    return ON_CONDA.get(name, name).lower(), bounds.replace(" ", "")


def recipe() -> dict:
    return yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text("utf-8"))


def test_the_conda_recipe_asks_for_what_the_wheel_asks_for():
    wanted = dict(map(requirement, PROJECT["dependencies"]))
    asked = dict(map(requirement, recipe()["requirements"]["run"]))

    asked.pop("python")
    assert asked == wanted


def test_the_conda_recipe_begins_with_the_same_python():
    assert f">={recipe()['context']['python_min']}" == PROJECT["requires-python"]


def test_the_workflow_tests_every_python_that_is_promised():
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text("utf-8"))
    tested = set(workflow["jobs"]["newest"]["strategy"]["matrix"]["python"])
    promised = {
        found[1]
        for classifier in PROJECT["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", classifier))
    }

    assert tested == promised


def test_every_address_of_the_repository_is_the_same():
    """Written in files that cannot import it; said in pyproject.toml."""
    said = {
        *PROJECT["urls"].values(),
        recipe()["about"]["homepage"],
        yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["repository-code"],
    }
    elsewhere = [address for address in said if "napari-xcebra/napari-xcebra" not in address]

    assert elsewhere == [PROJECT["urls"]["Documentation"]]
    assert HOME in said


def test_every_constraint_is_one_version():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]

    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", pin) for pin in pins)
    assert pins == sorted(pins)


def test_what_is_needed_is_within_what_was_tested():
    """constraints.txt has a version of everything that pyproject.toml names."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {line.split("==")[0] for line in lines if "==" in line}
    named = {re.split(r"[<>=\[ ]", need)[0].lower() for need in PROJECT["dependencies"]}

    assert named <= pinned


def test_every_extra_of_all_is_installed_where_tests_run():
    """The wheel check and both jobs; `all` itself would bring a Qt of napari's choice."""
    (wanted,) = re.findall(
        r"napari-xcebra\[(.*?)\]", " ".join(PROJECT["optional-dependencies"]["all"])
    )
    for file, times in (("Makefile", 1), (".github/workflows/test.yml", 2)):
        found = re.findall(r'(?:whl\)|"\.)\[([a-z,]+)\]"', (ROOT / file).read_text("utf-8"))
        assert len(found) == times
        assert all(set(wanted.split(",")) <= set(extras.split(",")) for extras in found)


def test_every_extra_has_tested_versions():
    pinned = set(
        re.findall(r"(?m)^([a-z0-9_.-]+)==", (ROOT / "constraints.txt").read_text("utf-8"))
    )
    extras = PROJECT["optional-dependencies"]
    tested = [text for name in ("nwb", "parquet", "video", "zarr", "rastermap", "cluster")
              for text in extras[name]]  # fmt: skip
    assert {requirement(text)[0] for text in tested} <= pinned


def test_nothing_in_the_conda_recipe_is_to_be_filled_in():
    text = (ROOT / "conda" / "recipe.yaml").read_text("utf-8")
    assert "0000" not in text and "[]" not in text
