"""tools/check_docs: documents name only existing paths, and a planned path only until it exists."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def check(root, text):
    """Exit status and output for a document of that text in a tree with src/base/buf.h."""
    (root / "src/base").mkdir(parents=True, exist_ok=True)
    (root / "src/base/buf.h").touch()
    (root / "page.md").write_text(text)
    command = [ROOT / "tools/check_docs", "--root", root, root / "page.md"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout


def test_the_documents_of_this_tree_are_true():
    done = subprocess.run([ROOT / "tools/check_docs"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "`src/base/buf.h` and `base/buf.h` and `base/`",
        "`src/base/<name>.h`, `src/*/buf.h`",
        "`src/core/` (planned)",
        "## Later (planned)\n\n### Parts\n\n`src/core/`",
        "`make check`, `a/b`, `codec/thing`, `build/venv`, `/proc/self`",
        "```\n`src/core/`\n```\n\n    `src/core/`",
        "[here](page.md#a-heading-its-own)\n\n# A heading, its own",
    ],
)
def test_a_true_document_passes(tmp_path, text):
    assert check(tmp_path, text) == (0, "check_docs: 1 documents, 0 problems\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one\n`src/core/`", "page.md:2: 'src/core/' does not exist"),
        ("`src/base/nothing_<name>.h`", "does not exist"),
        ("`src/base/buf.h` (planned)", "is marked as planned, but it exists"),
        ("## A (planned)\n## B\n`src/core/`", "page.md:3: 'src/core/' does not exist"),
        ("[gone](gone.md)", "the link to 'gone.md' leads nowhere"),
        ("[here](#nowhere)", "'page.md' has no heading '#nowhere'"),
    ],
)
def test_a_false_document_fails_and_names_the_place(tmp_path, text, words):
    status, output = check(tmp_path, text)
    assert status == 1
    assert words in output
