/*
 * Ordinary programs with only the powers of a sandbox: its system calls, its capabilities,
 * no_new_privs. Each script does the common work of its program, offline, in its own directory.
 */
#include "backend/native/limits/caps.h"
#include "backend/native/limits/seccomp.h"
#include "base/path.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void drop_powers(const struct agx_buf *filter)
{
    const struct sock_fprog prog = {
        .len = (unsigned short)(filter->len / sizeof(struct sock_filter)),
        .filter = (void *)filter->data,
    };

    /* What it never had cannot be dropped by an ordinary user, who has none of them. */
    for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
        if (!(agx_caps_kept() >> cap & 1))
            (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
        _exit(99);
}

/* The script's exit status, or 128 and its signal. */
static int run(const char *dir, const char *script)
{
    _cleanup_buf_ struct agx_buf filter = AGX_BUF_INIT(AGX_SECCOMP_BYTES_MAX);
    int status;
    pid_t child;

    ASSERT_OK(agx_seccomp_compile(&filter, NULL));
    child = fork();
    if (child == 0) {
        if (chdir(dir) < 0 || dup2(2, 1) < 0) /* standard output is for TAP */
            _exit(98);
        (void)setenv("HOME", dir, 1);
        (void)setenv("TMPDIR", dir, 1);
        drop_powers(&filter);
        (void)execl("/bin/bash", "bash", "-euc", script, (char *)NULL);
        _exit(97);
    }
    ASSERT_TRUE(child > 0);
    ASSERT_INT(child, waitpid(child, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool installed(const char *program)
{
    char command[64];

    (void)snprintf(command, sizeof(command), "command -v %s >/dev/null", program);
    return system(command) == 0;
}

static void runs(const char *program, const char *script)
{
    _cleanup_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *box = getenv("AGX_BOX");
    char dir[256];
    int status;

    if (!installed(program))
        SKIP("that program is not installed");
    (void)snprintf(dir, sizeof(dir), "%s/powers-XXXXXX", box ? box : "/tmp");
    ASSERT_NOT_NULL(mkdtemp(dir));
    /* apt goes on as a user of its own, who must get there. */
    ASSERT_INT(0, chmod(dir, 0755));
    ASSERT_TRUE(!box || chmod(box, 0755) == 0);
    status = run(dir, script);
    ASSERT_OK(agx_path_remove_tree(root, dir + 1, NULL));
    ASSERT_INT(0, status);
}

TEST(bash_runs)
{
    runs("bash", "echo a | tr a b | grep -q b\n"
                 "diff <(seq 100) <(seq 100)\n"
                 "coproc cat; echo x >&\"${COPROC[1]}\"; read -r line <&\"${COPROC[0]}\"\n"
                 "[ \"$line\" = x ]; kill \"$COPROC_PID\"\n"
                 "(trap 'exit 7' USR1; kill -USR1 $BASHPID; sleep 60) || [ $? = 7 ]\n"
                 "(ulimit -n 64; [ \"$(ulimit -n)\" = 64 ])\n"
                 "prlimit --nofile=64 true; ! prlimit --pid $$ >/dev/null 2>&1\n"
                 "mkfifo f; echo y >f & [ \"$(cat f)\" = y ]; wait\n");
}

TEST(busybox_runs)
{
    runs("busybox",
         "busybox sh -c 'echo a | busybox tr a b | busybox grep b'\n"
         "busybox seq 1000 | busybox sort -rn | busybox head -1 | busybox gzip | "
         "busybox zcat\n"
         "busybox tar cf t.tar /etc/passwd; busybox tar tf t.tar\n"
         "busybox ps >/dev/null; busybox df . ; busybox find /etc -maxdepth 1 >/dev/null\n"
         "busybox vi --help >/dev/null 2>&1 || true; busybox ip addr >/dev/null\n");
}

TEST(python_runs)
{
    runs("python3",
         "cat >p.py <<'END'\n"
         "import asyncio, ctypes, mmap, multiprocessing, os, shutil, signal, socket, sqlite3\n"
         "import ssl, subprocess, tempfile, threading, concurrent.futures as cf\n"
         "def square(x): return x * x\n"
         "async def main():\n"
         "    server = await asyncio.start_server(lambda r, w: w.close(), '127.0.0.1', 0)\n"
         "    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())\n"
         "    assert await reader.read() == b''\n"
         "    writer.close(); server.close()\n"
         "    p = await asyncio.create_subprocess_exec('true')\n"
         "    assert await p.wait() == 0\n"
         "if __name__ == '__main__':\n"
         "    asyncio.run(main())\n"
         "    with cf.ThreadPoolExecutor(8) as e: assert sum(e.map(square, range(9))) == 204\n"
         "    for kind in 'fork', 'spawn':\n"
         "        with multiprocessing.get_context(kind).Pool(2) as pool:\n"
         "            assert pool.map(square, range(3)) == [0, 1, 4]\n"
         "    db = sqlite3.connect('x.db'); db.execute('create table t(a)'); db.commit()\n"
         "    assert subprocess.run(['sh', '-c', 'exit 3']).returncode == 3\n"
         "    mmap.mmap(-1, 4096).write(b'x'); os.memfd_create('m'); ssl.create_default_context()\n"
         "    shutil.copytree('/etc/apt', 'copy', symlinks=True)\n"
         "    q = multiprocessing.Queue(); q.put(1); assert q.get() == 1\n"
         "    os.sched_getaffinity(0); os.getloadavg(); os.nice(1); os.openpty()\n"
         "END\n"
         "python3 -X faulthandler p.py\n"
         "python3 -m venv --without-pip v; v/bin/python -c 'import json'\n");
}

TEST(git_runs)
{
    runs("git",
         "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a "
         "GIT_COMMITTER_EMAIL=a@b\n"
         "git init -q r; cd r; seq 10000 >f; git add f; git commit -qm one\n"
         "git mv f g; git commit -qam two; git gc -q; git clone -q \"file://$PWD\" ../c\n"
         "cd ../c; git log --stat >/dev/null; git grep -q 999; git fsck; git worktree add -q w\n");
}

TEST(gcc_builds_and_its_program_runs)
{
    runs("gcc",
         "cat >p.c <<'END'\n"
         "#include <pthread.h>\n"
         "#include <spawn.h>\n"
         "#include <sys/wait.h>\n"
         "static void *run(void *x) { return x; }\n"
         "int main(void) {\n"
         "    pthread_t t[8]; pid_t p; int s; char *a[] = { \"true\", 0 };\n"
         "    for (int i = 0; i < 8; i++) if (pthread_create(&t[i], 0, run, 0)) return 1;\n"
         "    for (int i = 0; i < 8; i++) pthread_join(t[i], 0);\n"
         "    if (posix_spawnp(&p, \"true\", 0, 0, a, 0)) return 2;\n"
         "    return waitpid(p, &s, 0) == p ? s : 3;\n"
         "}\n"
         "END\n"
         "gcc -pipe -O2 -pthread -flto p.c -o p; ./p\n"
         "printf 'all: ; ./p && ./p\\n' >Makefile; ! command -v make >/dev/null || make -j2\n");
}

/* With the methods and the user that it runs them as; dpkg gives files away. */
TEST(apt_and_dpkg_run)
{
    if (geteuid() != 0)
        SKIP("needs root");
    runs("apt-get",
         "mkdir -p repo pkg/DEBIAN pkg/usr/share/x root/var/lib/dpkg state/lists/partial "
         "cache/archives/partial\n"
         "printf 'Package: x\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b>\\n"
         "Description: x\\n' >pkg/DEBIAN/control\n"
         "echo x >pkg/usr/share/x/f; chown 33:33 pkg/usr/share/x/f; chmod 2755 pkg/usr/share/x\n"
         "dpkg-deb --build pkg repo/x.deb >/dev/null\n"
         ": >root/var/lib/dpkg/status\n"
         "dpkg --root=root --force-script-chrootless --log=/dev/null -i repo/x.deb\n"
         "[ \"$(stat -c %u root/usr/share/x/f)\" = 33 ]\n"
         "(cat pkg/DEBIAN/control; echo Filename: ./x.deb; echo Size: $(stat -c %s repo/x.deb); "
         "echo SHA256: $(sha256sum repo/x.deb | cut -d' ' -f1)) >repo/Packages\n"
         "echo \"deb [trusted=yes] copy:$PWD/repo ./\" >list\n"
         "o=(-o Dir::Etc::sourcelist=\"$PWD/list\" -o Dir::Etc::sourceparts=- -o "
         "Dir::State=\"$PWD/state\" -o Dir::State::status=\"$PWD/root/var/lib/dpkg/status\" -o "
         "Dir::Cache=\"$PWD/cache\")\n"
         "chown -R _apt state/lists/partial cache/archives/partial 2>/dev/null || true\n"
         "apt-get -qq \"${o[@]}\" update\n"
         "apt-cache \"${o[@]}\" policy x | grep -q Candidate:.1\n"
         "mkdir got; cd got; apt-get -qq \"${o[@]}\" download x; [ -e x*.deb ]\n");
}

TEST(npm_runs)
{
    runs("npm", "mkdir dep app\n"
                "echo '{\"name\":\"dep\",\"version\":\"1.0.0\",\"main\":\"m.js\"}' "
                ">dep/package.json\n"
                "echo 'module.exports = 42' >dep/m.js\n"
                "cd app; npm init -y >/dev/null\n"
                "npm install --offline --no-audit --no-fund ../dep\n"
                "cat >a.js <<'END'\n"
                "const assert = require('assert'), fs = require('fs'), net = require('net')\n"
                "const { Worker } = require('worker_threads'), cp = require('child_process')\n"
                "assert.equal(require('dep'), 42)\n"
                "assert.equal(cp.spawnSync('sh', ['-c', 'exit 3']).status, 3)\n"
                "fs.promises.readFile('package.json').then(() => {\n"
                "  new Worker('process.exit(0)', { eval: true }).on('exit', (c) => {\n"
                "    const s = net.createServer((x) => x.end()).listen(0, '127.0.0.1', () =>\n"
                "      net.connect(s.address().port, '127.0.0.1').on('close', () => s.close())\n"
                "        .resume())\n"
                "  })\n"
                "})\n"
                "END\n"
                "node a.js\n");
}

/* It is no package that the tests install. */
TEST(go_runs_where_it_is_installed)
{
    if (!installed("go"))
        return;
    runs("go", "export GOCACHE=$PWD/cache GOPATH=$PWD/path GOFLAGS=-mod=mod GOTOOLCHAIN=local\n"
               "export GOPROXY=off\n"
               "mkdir m; cd m; go mod init m\n"
               "cat >m.go <<'END'\n"
               "package main\n"
               "import (\"net\"; \"os/exec\"; \"sync\")\n"
               "func main() {\n"
               "  var w sync.WaitGroup\n"
               "  for i := 0; i < 50; i++ { w.Add(1); go func() { defer w.Done() }() }\n"
               "  w.Wait()\n"
               "  l, err := net.Listen(\"tcp\", \"127.0.0.1:0\"); if err != nil { panic(err) }\n"
               "  go net.Dial(\"tcp\", l.Addr().String())\n"
               "  if _, err := l.Accept(); err != nil { panic(err) }\n"
               "  if err := exec.Command(\"true\").Run(); err != nil { panic(err) }\n"
               "}\n"
               "END\n"
               "go run .\n");
}
