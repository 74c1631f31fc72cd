"""tools/check_tidy finds what clang-tidy finds, and checks again if a verdict may have changed."""

import json
import shutil

import pytest
from source_tree import run, write


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Verdicts of other runs are not seen."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def tidy(tree, text, options=""):
    """Runs clang-tidy, as `make lint` does, on a tree of one source."""
    write(tree, "src/base/big.c", text)
    build = tree / "build/werror-clang"
    source = str(tree / "src/base/big.c")
    command = f"ccache clang -I{tree}/src {options} -o big.o -c {source}"
    entry = {"directory": str(tree), "file": source, "command": command}
    write(tree, build / "compile_commands.json", json.dumps([entry]))
    return run(tree, "tools/check_tidy")


def clean(known):
    return 0, f"check_tidy: 1 sources, {known} of them known to be clean\n"


def body(lines):
    return "int big(int n);\n\nint big(int n)\n{\n" + "    n++;\n" * lines + "    return n;\n}\n"


def test_tidy_names_a_function_of_150_lines(tree):
    status, output = tidy(tree, body(150))
    assert status != 0
    assert "src/base/big.c:3:" in output
    assert "readability-function-size" in output


def test_tidy_lets_a_function_of_90_lines_pass(tree):
    assert tidy(tree, body(90)) == clean(known=0)


def test_tidy_names_a_null_dereference(tree):
    text = "int get(int *p);\n\nint get(int *p)\n{\n    if (!p)\n        return *p;\n"
    status, output = tidy(tree, text + "    return 0;\n}\n")
    assert status != 0
    assert "src/base/big.c:6:" in output
    assert "clang-analyzer-core.NullDereference" in output


REDUNDANT = "static inline int same(int n)\n{{\n    return n == n;{}\n}}\n"


def test_tidy_knows_a_source_that_it_found_clean(tree):
    assert tidy(tree, body(9)) == clean(known=0)
    assert tidy(tree, body(9)) == clean(known=1)
    assert tidy(tree, body(8)) == clean(known=0)
    assert tidy(tree, body(8), "-DN=1") == clean(known=0)


def test_tidy_knows_a_source_in_another_directory(tree, tmp_path_factory):
    assert tidy(tree, body(9)) == clean(known=0)
    other = tmp_path_factory.mktemp("other") / "tree"
    shutil.copytree(tree, other, symlinks=True)
    assert tidy(other, body(9)) == clean(known=1)


def test_tidy_looks_again_when_a_header_changes(tree):
    text = '#include "base/odd.h"\n'
    write(tree, "src/base/odd.h", REDUNDANT.format(" /* NOLINT */"))
    assert tidy(tree, text) == clean(known=0)
    write(tree, "src/base/odd.h", REDUNDANT.format(""))
    status, output = tidy(tree, text)
    assert status != 0
    assert "src/base/odd.h:3:" in output


def test_tidy_looks_again_when_its_configuration_changes(tree):
    assert tidy(tree, body(90)) == clean(known=0)
    config = tree / ".clang-tidy"
    config.write_text(config.read_text().replace("value: 100", "value: 50"))
    status, output = tidy(tree, body(90))
    assert status != 0
    assert "readability-function-size" in output


def test_tidy_keeps_no_finding(tree):
    assert tidy(tree, body(150)) == tidy(tree, body(150))


def test_tidy_names_a_source_that_does_not_compile(tree):
    status, output = tidy(tree, '#include "base/missing.h"\n')
    assert status != 0
    assert "src/base/big.c:1:" in output
