"""The notebooks and the longer examples of docs/python.md run, and what they say is so."""

import json
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent


def executed(name):
    """The names that the cells of a notebook leave behind."""
    cells = json.loads((PACKAGE / "notebooks" / name).read_text(encoding="utf-8"))["cells"]
    found = {}
    for at, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}, cell {at}", "exec"), found)
    return found


def test_why_greedy_wins():
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    found = executed("why_greedy_wins.ipynb")
    assert (found["amplification"].idxmin() == "greedy").all()
    assert (found["latency"].idxmin() == "greedy").all()
    assert found["hot"].done == len(found["rules"])


def test_which_of_2000_designs():
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    found = executed("which_of_2000_designs.ipynb")
    swept = found["swept"]
    assert (len(swept.designs), swept.failed) == (2000, 0) and swept.impossible > 0
    assert 0 < len(found["front"]) < 100 and len(found["cheapest"]) == 1


def test_the_example_of_optuna():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    text = (PACKAGE.parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
    (example,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "import optuna" in block)
    found = {}
    exec(compile(example, "docs/python.md", "exec"), found)
    assert len(found["study"].trials) == 10 and found["study"].best_value > 0
