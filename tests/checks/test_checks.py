"""Each check of `make lint` fails on a violation of its rule, and names the file and the line.

A test copies the sources, breaks one rule and runs the check of the copy.
"""

import pytest
from source_tree import fails, run, write

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
        ("src/grpc/call.c", '"sandbox.pb-c.h"', "stay in src/wire"),
        ("src/worker/main.c", "<Python.h>", "alone includes CPython's header"),
        ("src/cli/cmd.c", '"pyext/py.h"', "Python stays in"),
        ("src/codec/clock.c", "<time.h>", "no I/O, clock or threads"),
        ("src/codec/sock.c", "<sys/socket.h>", "no I/O, clock or threads"),
        ("src/base/near.c", '"buf.h"', "no such layer"),
        ("include/agentix/client.h", '"base/buf.h"', "base/ is not below agentix/"),
        (
            "src/backend/native/x.c",
            '"backend/docker/box.h"',
            "docker/ is not below backend/native/",
        ),
        (
            "src/backend/docker/api/x.c",
            '"backend/docker/box.h"',
            "is not below backend/docker/api/",
        ),
        ("src/backend/net/x.c", '"backend/files/binds.h"', "files/ is not below backend/net/"),
        ("src/backend/owner.h", '"backend/net/rtnl.h"', "backend/net/ is not below backend/"),
        ("src/backend/native/x.h", '"backend/target.h"', "backend/target/ is not below"),
        ("src/daemon/manager/x.c", '"daemon/service/service.h"', "is not below daemon/manager/"),
        ("src/daemon/service/x.c", '"daemon/config.h"', "daemon/ is not below daemon/service/"),
    ],
)
def test_layers_name_an_include_that_breaks_them(tree, name, include, reason):
    write(tree, name, f"/* broken */\n#include {include}\n")
    fails(tree, "tools/check_layers.py", f"{name}:2:", reason)


@pytest.mark.parametrize(
    ("name", "include"),
    [
        ("src/codec/fine.c", '"base/buf.h"'),
        ("src/backend/target.c", '"backend/docker/docker.h"'),
        ("src/backend/native/x.c", '"backend/native/net/links.h"'),
        ("src/backend/docker/api/x.c", '"backend/exec/initlink.h"'),
        ("src/daemon/x.c", '"daemon/manager/manager.h"'),
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


def test_shell_names_the_line(tree):
    write(tree, "tools/bad", '#!/bin/bash\ncd "$1"\nrm $2\n')
    fails(tree, "tools/check_shell", "tools/bad:3:", "SC2086")
