"""kill -9 at random moments of a mixed load: no acknowledged request is lost or done twice.

AGENTIX_KILLS sets the number of kills (1,000 in `make proof`). AGENTIX_SEED repeats the choices of
a run, but not its timing.
"""

import os
import random
import threading
import time
from collections import Counter

import grpc
import pytest
from agxtest.agbox import Client, names, unique
from agxtest.daemon import Daemon
from agxtest.protos import agbox
from agxtest.server import wait_for

KILLS = int(os.environ.get("AGENTIX_KILLS", "100"))
SEED = int(os.environ.get("AGENTIX_SEED", random.SystemRandom().randrange(1 << 32)))
THREADS = 4
LONGEST_S = 0.06  # from the first request to the kill
BOXES = 3  # of each thread at a time: enough to meet one in any state
REQUESTS = {"create", "exec", "cancel", "stop", "resume", "delete"}
ENDS = ("EXEC_FINISHED", "EXEC_FAILED", "EXEC_CANCELLED")
# Errors that leave open whether the request was accepted.
LOST = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN)


class Box:
    """A sandbox, as its thread has recorded it."""

    def __init__(self, name):
        self.name = name
        self.created = False  # acknowledged
        self.deleted = False
        self.asked = Counter()  # requests whose answer was lost
        self.accepted = Counter()
        self.execs = {}  # acknowledged: id -> exit code of its command
        self.cancelled = set()  # asked for, whether or not acknowledged
        self.known = []  # events that were seen


class Walker:
    """One thread's share of the load: random requests to sandboxes of its own."""

    def __init__(self, number):
        self.random = random.Random(f"{SEED}-{number}")
        self.boxes, self.old = [], []
        self.accepted = Counter()  # of all sandboxes, for the summary
        self.error = None

    def walk(self, client):
        try:
            while self.step(client):
                pass
        except BaseException as error:  # for the main thread
            self.error = error

    def step(self, client):
        """Returns False if the daemon is gone."""
        if len(self.boxes) < BOXES:
            self.boxes.append(Box(unique("box")))
            return self.create(client, self.boxes[-1])
        box = self.random.choice(self.boxes)
        verbs = [self.start] * 6 + [self.cancel, self.stop, self.resume, self.resume, self.delete]
        return self.random.choice(verbs)(client, box)

    def request(self, box, verb, call, **fields):
        """True: accepted; False: refused; None: no answer."""
        try:
            call(**fields)
        except grpc.RpcError as error:
            if error.code() in LOST:
                box.asked[verb] += 1
                return None
            assert error.code() in (
                grpc.StatusCode.FAILED_PRECONDITION,
                grpc.StatusCode.NOT_FOUND,
                grpc.StatusCode.ALREADY_EXISTS,
            ), error
            return False
        box.accepted[verb] += 1
        self.accepted[verb] += 1
        return True

    def create(self, client, box):
        spec = {"image": "image"}
        got = self.request(
            box, "create", client.box.CreateSandbox, sandbox_id=box.name, create_spec=spec
        )
        box.created = got is True
        return got is not None

    def start(self, client, box):
        name, code = unique("run"), self.random.choice([0, 3])
        words = ["sh", "-c", f"sleep {self.random.choice([0, 5, 50, 500])}ms; exit {code}"]
        got = self.request(
            box, "exec", client.box.CreateExec, sandbox_id=box.name, command=words, exec_id=name
        )
        if got:
            box.execs[name] = code
        return got is not None

    def cancel(self, client, box):
        if not box.execs:
            return True
        name = list(box.execs)[-1]  # the older ones have mostly ended
        box.cancelled.add(name)
        return self.request(box, "cancel", client.box.CancelExec, exec_id=name) is not None

    def stop(self, client, box):
        return self.request(box, "stop", client.box.StopSandbox, sandbox_id=box.name) is not None

    def resume(self, client, box):
        call = client.box.ResumeSandbox
        return self.request(box, "resume", call, sandbox_id=box.name) is not None

    def delete(self, client, box):
        got = self.request(box, "delete", client.box.DeleteSandbox, sandbox_id=box.name)
        box.deleted |= got is True
        if got:
            self.boxes.remove(box)
            self.old.append(box)
        return got is not None

    def audit(self, client):
        """Checks, after a restart, each sandbox that this thread has used."""
        for box in [*self.boxes, *self.old]:
            if audit(client, box):
                self.boxes = [b for b in self.boxes if b is not box]
        self.old = [box for box in self.old if not settled(box)]


def settled(box):
    """Whether the audit has seen its last event, so that no unchecked event can be lost."""
    return bool(box.known) and box.known[-1].event_type == agbox().SANDBOX_DELETED


def audit(client, box):
    """Checks that everything acknowledged exists. True: the sandbox was never acknowledged, and
    does not exist."""
    try:
        events = client.history(box.name)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.NOT_FOUND, error
        assert not box.created, f"{box.name} was acknowledged and is gone"
        return True
    assert [e.sequence for e in events] == list(range(1, len(events) + 1)), box.name
    assert events[: len(box.known)] == box.known, f"{box.name}: history has changed"
    box.known = events
    check_events(box, names(events), events)
    for name in box.execs:
        assert client.exec(name).sandbox_id == box.name
    return False


def check_events(box, types, events):
    count = Counter(types)
    assert count["SANDBOX_STOP_REQUESTED"] <= box.accepted["stop"] + box.asked["stop"]
    if box.accepted["stop"]:
        assert count["SANDBOX_STOP_REQUESTED"] >= 1, f"{box.name}: a stop was lost"
    # One ACCEPTED of the create, one for each resume.
    assert 1 + box.accepted["resume"] <= count["SANDBOX_ACCEPTED"], f"{box.name}: resume was lost"
    assert count["SANDBOX_ACCEPTED"] <= 1 + box.accepted["resume"] + box.asked["resume"]
    assert count["SANDBOX_DELETE_REQUESTED"] >= box.deleted, f"{box.name}: a delete was lost"
    assert count["SANDBOX_DELETE_REQUESTED"] <= 1 and count["SANDBOX_DELETED"] <= 1
    assert count["SANDBOX_FAILED"] == 0, events
    if count["SANDBOX_DELETED"]:
        assert types[-1] == "SANDBOX_DELETED", f"{box.name}: events behind its end"
    started = Counter(
        e.exec.exec_id for t, e in zip(types, events, strict=True) if t == "EXEC_STARTED"
    )
    ended = Counter(e.exec.exec_id for t, e in zip(types, events, strict=True) if t in ENDS)
    assert set(started.values()) <= {1} and set(ended.values()) <= {1}, box.name
    assert set(box.execs) <= set(started), f"{box.name}: an acknowledged exec was lost"
    assert set(ended) <= set(started)


def finish(client, walkers):
    """Waits until all accepted requests are complete."""
    for walker in walkers:
        for box in [*walker.boxes, *walker.old]:
            for name, code in box.execs.items():
                done = client.ended(name)
                killed = name in box.cancelled or box.accepted["stop"] or box.asked["stop"]
                if not killed and not box.deleted and not box.asked["delete"]:
                    assert done.exit_code == code, f"{name}: the exit code was lost"
            if box.deleted:
                client.until(box.name, agbox().SANDBOX_DELETED)


def check_journal(world):
    """Checks that the world did nothing twice that must happen once."""
    once = Counter(
        entry for entry in world.journal() if entry[0] in ("make", "remove", "exec-start")
    )
    twice = [entry for entry, times in once.items() if times > 1]
    assert not twice, twice


def kill_somewhere(daemon, walkers, moments):
    """Runs the daemon under load until it is killed."""
    client = Client(daemon.channel())
    client.box.Ping()
    threads = [threading.Thread(target=w.walk, args=(client,)) for w in walkers]
    for thread in threads:
        thread.start()
    time.sleep(moments.uniform(0, LONGEST_S))
    daemon.kill()
    for thread in threads:
        thread.join()
    client.close()
    for walker in walkers:
        if walker.error:
            raise walker.error


def accepted_by(walkers):
    return dict(sum((walker.accepted for walker in walkers), Counter()))


@pytest.mark.deadline(1500)
def test_a_daemon_that_is_killed_again_and_again_loses_nothing(tmp_path):
    print(f"seed {SEED}, {KILLS} kills")
    moments = random.Random(SEED)
    daemon = Daemon(tmp_path, config={"sandbox": {"idle_ttl": 0}})
    walkers = [Walker(n) for n in range(THREADS)]
    try:
        kills = 0
        # On a slow machine few requests precede a kill: continue until there was one of each kind.
        while kills < KILLS or (KILLS >= 100 and len(accepted_by(walkers)) < len(REQUESTS)):
            kill_somewhere(daemon, walkers, moments)
            daemon.start()
            client = Client(daemon.channel())
            for walker in walkers:
                walker.audit(client)
            client.close()
            kills += 1
            if kills % 100 == 0:
                print(f"{kills} kills")
        client = Client(daemon.channel())
        finish(client, walkers)
        for walker in walkers:
            walker.audit(client)
        check_journal(daemon.world)
        print(f"accepted: {accepted_by(walkers)}")
        assert KILLS < 100 or set(accepted_by(walkers)) == REQUESTS, "a load without some of them"
        wait_for(lambda: not client.box.ListActiveExecs().execs, "all commands have ended")
        client.close()
    finally:
        daemon.close()
