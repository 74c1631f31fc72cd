"""The programs that run tests count results correctly, and fail if no test ran."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command, cwd, **env):
    """Exit status and lines of a program's output."""
    full = {k: v for k, v in os.environ.items() if k != "AGX_MUST_WORK"} | env
    done = subprocess.run(
        command, cwd=cwd, env=full, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def project(tmp_path):
    """Returns a function that runs tools/run_tests on a Meson project of these shell programs."""

    def run_tests(protocol="tap", must_work="1", **programs):
        lines = ["project('p')"]
        for name, script in programs.items():
            path = tmp_path / name
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
            lines.append(f"test('{name}', files('{name}'), protocol: '{protocol}')")
        (tmp_path / "meson.build").write_text("\n".join(lines) + "\n")
        setup = ["/usr/bin/meson", "setup", "b"]
        subprocess.run(setup, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
        return run(ROOT / "tools/run_tests", "b", cwd=tmp_path, AGX_MUST_WORK=must_work)

    return run_tests


GOOD = "echo ok 1 - a; echo ok 2 - b; echo 1..2"
BAD = "echo ok 1 - a; echo '# here.c:7: broken'; echo not ok 2 - b; echo 1..2; exit 1"
CRASH = "echo ok 1 - a; kill -SEGV $$"
SKIP = "echo '# no such kernel'; echo 'ok 1 - a # SKIP'; echo ok 2 - b; echo 1..2"


def test_run_tests_counts_the_cases_of_all_programs(project):
    status, lines = project(one=GOOD, two=GOOD)
    assert (status, lines[-1]) == (0, "4 passed, 0 failed")


def test_run_tests_shows_a_failure_and_counts_it(project):
    status, lines = project(one=GOOD, two=BAD)
    assert (status, lines[-1]) == (1, "3 passed, 1 failed")
    assert "# here.c:7: broken" in lines


def test_run_tests_counts_a_crash_as_a_failure(project):
    status, lines = project(one=CRASH)
    assert (status, lines[-1]) == (1, "1 passed, 1 failed")


def test_run_tests_counts_an_exit_status_that_contradicts_the_output(project):
    status, lines = project(one=f"{GOOD}; exit 3")
    assert (status, lines[-1]) == (1, "2 passed, 1 failed")


def test_run_tests_takes_a_skipped_case_for_a_failure_where_all_must_work(project):
    status, lines = project(one=SKIP)
    assert (status, lines[-1]) == (1, "1 passed, 1 failed")


def test_run_tests_counts_a_skipped_case_elsewhere(project):
    status, lines = project(one=SKIP, must_work="0")
    assert (status, lines[-1]) == (0, "1 passed, 0 failed, 1 skipped")
    assert any("a: no such kernel" in line for line in lines)


def test_run_tests_fails_when_a_program_prints_no_case(project):
    status, lines = project(one="exit 0")
    assert (status, lines[-1]) == (1, "0 passed, 1 failed")


def test_run_tests_without_any_test_fails(project):
    status, lines = project()
    assert status == 1
    assert lines[-1].startswith("0 passed, ")


def test_run_tests_counts_programs_that_only_have_an_exit_status(project):
    status, lines = project(protocol="exitcode", one="exit 0", two="exit 1")
    assert (status, lines[-1]) == (1, "1 passed, 1 failed")


@pytest.fixture
def fuzz(tmp_path):
    """Returns a function that fuzzes a target with this body, a few seconds unless told."""

    def run_fuzz(body, seconds=5):
        (tmp_path / "tools").mkdir()
        shutil.copy2(ROOT / "tools/fuzz", tmp_path / "tools/fuzz")
        (tmp_path / "tests/fuzz/corpus/x").mkdir(parents=True)
        (tmp_path / "tests/fuzz/corpus/x/seed").write_bytes(b"seed")
        (tmp_path / "build/fuzz/tests/fuzz").mkdir(parents=True)
        head = "int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n)"
        (tmp_path / "x.c").write_text(f"{head} {{ {body} return 0; }}\n")
        target = "build/fuzz/tests/fuzz/fuzz_x"
        compiler = ["clang", "-g", "-fsanitize=fuzzer,address", "x.c", "-o", target]
        subprocess.run(compiler, cwd=tmp_path, check=True)
        return run("tools/fuzz", "run", "--seconds", str(seconds), cwd=tmp_path)

    return run_fuzz


def test_fuzz_prints_executions_and_coverage(fuzz):
    status, lines = fuzz("(void)d; (void)n;")
    assert (status, lines[-1]) == (0, "1 passed, 0 failed")
    name, executions, edges, features, _, result = lines[-2].split()
    assert (name, result) == ("x", "ok")
    assert int(executions) > 100
    assert int(edges) > 0
    assert int(features) > 0


def test_fuzz_fails_on_a_finding_and_names_its_input(fuzz):
    # It ends when it has found it, and a busy machine may need a while for that.
    body = "if (n > 1 && d[0] == 'h' && d[1] == 'i') __builtin_trap();"
    status, lines = fuzz(body, seconds=120)
    assert (status, lines[-1]) == (1, "0 passed, 1 failed")
    printed = [line for line in lines if line.startswith("input that shows it: ")]
    assert Path(printed[0].split(": ")[1]).read_bytes()[:2] == b"hi"
    assert any(line.startswith("see it again with:") for line in lines)


@pytest.fixture
def ci(tmp_path):
    """Returns a function that runs .ci/run on a Makefile whose stages do this."""

    def run_ci(**stages):
        (tmp_path / ".ci").mkdir()
        shutil.copy2(ROOT / ".ci/run", tmp_path / ".ci/run")
        (tmp_path / "tools").mkdir()
        shutil.copy2(ROOT / "tools/slowest", tmp_path / "tools/slowest")
        names = ["check", "lint", "asan", "tsan", "fuzz"]
        rules = [f"{n}:\n\t@{stages.get(n, 'echo 2 passed, 0 failed')}\n" for n in names]
        (tmp_path / "Makefile").write_text("\n".join(rules))
        return run(".ci/run", cwd=tmp_path)

    return run_ci


def test_ci_sums_the_stages(ci):
    status, lines = ci()
    assert (status, lines[-1]) == (0, "10 passed, 0 failed")
    stages = lines[lines.index("==== stages") + 1 :]
    assert [line.split()[0] for line in stages[:6]] == [
        "check",
        "lint",
        "asan",
        "tsan",
        "fuzz",
        "together",
    ]
    assert "==== the compiler's cache" in stages


def test_slowest_names_the_programs_that_took_longest(tmp_path):
    for build, took in {"one": range(8), "two": range(8, 12)}.items():
        log = tmp_path / build / "meson-logs/testlog.json"
        log.parent.mkdir(parents=True)
        tests = [json.dumps({"name": f"p:unit / t{n}", "duration": n}) for n in took]
        log.write_text("\n".join(tests))
    status, lines = run(ROOT / "tools/slowest", "one", "two", "none", cwd=tmp_path)
    assert status == 0
    assert [line.split()[-1] for line in lines] == [f"t{n}" for n in range(11, 1, -1)]
    assert lines[0].split() == ["11.0", "s", "two", "t11"]


def test_program_that_starts_a_thread_fails_where_thread_sanitizer_would_miss_it():
    program = Path(os.environ["BENCH_BUILD"], "tests/unit/test_loop_job")
    status, lines = run(program, cwd=ROOT, AGX_TEST_THREADS="0")
    assert status == 1
    assert any("add it to the suite `threads`" in line for line in lines)
    status, lines = run(program, cwd=ROOT, AGX_TEST_THREADS="1")
    assert status == 0


def test_proof_names_its_steps():
    status, lines = run(ROOT / "tools/proof", "nothing", cwd=ROOT)
    assert status == 2
    assert lines == ["tools/proof: no step 'nothing'; there are: fuzz kills slow stop thousand"]


def test_ci_fails_with_a_failed_stage(ci):
    status, lines = ci(asan="echo 5 passed, 1 failed; exit 1")
    assert (status, lines[-1]) == (1, "13 passed, 1 failed")


def test_ci_fails_with_a_stage_that_counts_nothing(ci):
    status, lines = ci(lint="true")
    assert (status, lines[-1]) == (1, "8 passed, 1 failed")


def test_ci_fails_with_a_stage_that_dies_after_its_count(ci):
    status, lines = ci(lint="echo 2 passed, 0 failed; exit 4")
    assert (status, lines[-1]) == (1, "10 passed, 1 failed")
