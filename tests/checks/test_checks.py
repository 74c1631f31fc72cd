"""Each check of `make lint` fails on what it guards against, and names the file and the line.

A test copies the sources, breaks one thing and runs the check of the copy.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path):
    """A copy of this tree's sources, as a git repository of its own."""
    names = subprocess.check_output(["tools/sources", "c", "header"], cwd=ROOT, text=True).split()
    names += [".clang-format", ".clang-tidy", "ruff.toml", "meson.build", "meson_options.txt"]
    names += [str(p.relative_to(ROOT)) for p in ROOT.glob("tools/*")]
    for name in names:
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    subprocess.run(["git", "init", "--quiet", "."], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("/build/\n__pycache__/\n")
    return tmp_path


def run(tree, *command):
    """Exit status and output of a check of the copy."""
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def write(tree, name, text):
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text(text)


def fails(tree, check, *words):
    """The check fails, and one line of its output has all the words."""
    status, output = run(tree, check)
    assert status != 0, f"{check} passed"
    assert any(all(word in line for word in words) for line in output.splitlines()), output


CHECKS = [
    "tools/check_format",
    "tools/check_layers.py",
    "tools/check_banned",
    "tools/check_sizes",
    "tools/check_shell",
]


@pytest.mark.parametrize("check", CHECKS)
def test_check_of_the_unbroken_tree_passes(tree, check):
    assert run(tree, check) == (0, "")


def test_format_names_the_line_that_is_laid_out_otherwise(tree):
    write(tree, "src/base/odd.c", "int odd(void);\nint odd(void) { return 1; }\n")
    fails(tree, "tools/check_format", "src/base/odd.c:2:", "make format")


@pytest.mark.parametrize(
    ("name", "include", "reason"),
    [
        ("src/base/up.c", '"codec/base64.h"', "codec/ is not below base/"),
        ("src/codec/side.c", '"loop/loop.h"', "loop/ is not below codec/"),
        ("src/core/side.h", '"codec/base64.h"', "codec/ is not below core/"),
        ("src/cli/cmd.c", '"daemon/op.h"', "programs never include each other"),
        ("src/runtime/main.c", '"worker/worker.h"', "programs never include each other"),
        ("src/init/main.c", '"codec/base64.h"', "init/ may include only"),
        ("src/daemon/plan.c", '"init/plan.h"', "programs never include each other"),
        ("src/rpc/call.c", '"sandbox.pb-c.h"', "stay in src/wire"),
        ("src/worker/main.c", "<Python.h>", "alone includes CPython's header"),
        ("src/cli/cmd.c", '"pyext/py.h"', "Python stays in"),
        ("src/codec/clock.c", "<time.h>", "no I/O, clock or threads"),
        ("src/codec/sock.c", "<sys/socket.h>", "no I/O, clock or threads"),
        ("src/base/near.c", '"buf.h"', "no such layer"),
        ("include/agentix/client.h", '"base/buf.h"', "base/ is not below agentix/"),
    ],
)
def test_layers_name_an_include_that_breaks_them(tree, name, include, reason):
    write(tree, name, f"/* broken */\n#include {include}\n")
    fails(tree, "tools/check_layers.py", f"{name}:2:", reason)


@pytest.mark.parametrize(
    ("name", "include"),
    [
        ("src/codec/fine.c", '"base/buf.h"'),
        ("src/cli/cmd.c", '"client/client.h"'),
        ("src/init/main.c", '"codec/initproto.h"'),
        ("src/wire/spec.c", '"sandbox.pb-c.h"'),
        ("src/pyext/py_call.c", '"pyext/py.h"'),
        ("src/pyext/py.h", "<Python.h>"),
    ],
)
def test_layers_let_an_include_pass_that_keeps_them(tree, name, include):
    write(tree, name, f"#include {include}\n")
    assert run(tree, "tools/check_layers.py") == (0, "")


def test_layers_name_a_source_of_no_layer(tree):
    write(tree, "src/misc/stray.c", "int stray;\n")
    fails(tree, "tools/check_layers.py", "src/misc/stray.c:1:", "in no layer")


@pytest.mark.parametrize("call", ["strcpy(a, b)", "atoi(a)", "gmtime(t)", "alloca(9)"])
def test_banned_names_the_call(tree, call):
    head = '#include "base/banned.h"\n/* strcpy(in, comment) */\n'
    write(tree, "src/base/bad.c", f"{head}void f(void)\n{{\n    {call};\n}}\n")
    fails(tree, "tools/check_banned", "src/base/bad.c:5:", call.split("(")[0], "use ")


def test_banned_looks_into_headers(tree):
    write(tree, "src/base/bad.h", "static inline int n(const char *s)\n{\n    return atoi(s);\n}\n")
    fails(tree, "tools/check_banned", "src/base/bad.h:3:", "atoi")


def test_banned_lets_comments_and_strings_pass(tree):
    text = '#include "base/banned.h"\n/* strcpy */\nconst char *s = "atoi(\\"x\\")"; // strcat\n'
    write(tree, "src/base/fine.c", text)
    assert run(tree, "tools/check_banned") == (0, "")


def test_banned_names_a_source_without_banned_h(tree):
    write(tree, "src/base/bad.c", '#include "base/buf.h"\n')
    fails(tree, "tools/check_banned", "src/base/bad.c:1:", "base/banned.h")


def test_sizes_name_a_file_that_is_one_line_too_long(tree):
    limits = {
        "src/base/long.c": 500,
        "src/base/long.h": 200,
        "include/agentix/long.h": 200,
        "tests/unit/test_long.c": 800,
        "tests/support/long.h": 800,
    }
    for name, limit in limits.items():
        write(tree, name, "/* long */\n" * limit)
    assert run(tree, "tools/check_sizes") == (0, "")
    for name, limit in limits.items():
        write(tree, name, "/* long */\n" * (limit + 1))
        fails(tree, "tools/check_sizes", f"{name}:{limit + 1}:", "split")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_banned_call_does_not_compile(tree, compiler):
    text = '#include "base/banned.h"\nint n(const char *s)\n{\n    return atoi(s);\n}\n'
    write(tree, "src/base/bad.c", text)
    status, output = run(tree, compiler, "-fsyntax-only", "-Isrc", "src/base/bad.c")
    assert status != 0
    assert "src/base/bad.c:4:" in output
    assert "poisoned" in output


def test_headers_name_one_that_does_not_compile_alone(tree):
    write(tree, "src/base/needy.h", "#pragma once\n\nsize_t needy(void);\n")
    fails(tree, "tools/check_headers", "src/base/needy.h:3:", "does not compile alone", "size_t")


def test_headers_name_one_without_a_guard(tree):
    write(tree, "src/base/twice.h", "struct twice {\n    int n;\n};\n")
    fails(tree, "tools/check_headers", "src/base/twice.h:1:", "redefinition")


def test_headers_name_an_installed_one_that_is_no_cxx(tree):
    guard = "#ifndef X_H\n#define X_H\n{}#endif\n"
    write(tree, "include/agentix/x.h", guard.format("int x(int class);\n"))
    fails(tree, "tools/check_headers", "include/agentix/x.h:3:", "c++")


def test_headers_name_an_installed_one_that_is_no_c99(tree):
    guard = "#ifndef X_H\n#define X_H\n{}#endif\n"
    write(tree, "include/agentix/x.h", guard.format('_Static_assert(sizeof(int) == 4, "");\n'))
    fails(tree, "tools/check_headers", "include/agentix/x.h:3:", "c99")


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


def test_shell_names_the_line(tree):
    write(tree, "tools/bad", '#!/bin/bash\ncd "$1"\nrm $2\n')
    fails(tree, "tools/check_shell", "tools/bad:3:", "SC2086")
