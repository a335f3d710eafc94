from __future__ import annotations

import ast

import pytest

from rlkernel.sources.renaming import as_model


def test_names_change_and_strings_comments_and_attributes_do_not() -> None:
    source = (
        'import lib\nclass Net(lib.Net):  # Net\n    """Net."""\n    def __init__(self):\n        super(Net, self).__init__()\n'
    )
    assert as_model(source, "Net") == source.replace("class Net(", "class Model(").replace("super(Net", "super(Model")


def test_another_class_that_is_called_model_gives_up_its_name() -> None:
    source = "class Model:\n    pass\n\n\nclass Model0(Model):\n    pass\n\n\nclass Net(Model0):\n    inner = Model\n"
    renamed = as_model(source, "Net")
    assert [node.name for node in ast.parse(renamed).body if isinstance(node, ast.ClassDef)] == ["Model1", "Model0", "Model"]
    assert "inner = Model1" in renamed and "Model0(Model1)" in renamed


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\n\x0c\n"])
def test_line_endings_and_letters_of_several_bytes_stay(ending: str) -> None:
    source = f"größe = 'ü'; Net = 1{ending}class Net:{ending.replace(chr(12), '')}    é = Net{ending}"
    assert as_model(source, "Net") == source.replace("Net", "Model")


def test_a_file_without_the_class() -> None:
    with pytest.raises(ValueError, match="no class Net; the file has no class"):
        as_model("Net = 1\n", "Net")
