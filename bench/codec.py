"""Shared by the codec figures: our codec_bench, and codec_peer.py in the peer's environment."""

from measure import BenchError, run


def codec_pair(bench, work, peer):
    """(ours, peer) for one kind of work, after a check that both work on the same bytes."""
    ours = [bench.program("bench/codec_bench")]
    theirs = [bench.peer(peer), "-I", bench.root / "bench" / "codec_peer.py"]
    if run([*ours, "--bytes", work]) != run([*theirs, "--bytes", work]):
        raise BenchError(f"ours and {peer} do not work on the same bytes")
    return (
        lambda seconds: float(run([*ours, work, seconds])),
        lambda seconds: float(run([*theirs, work, seconds])),
    )
