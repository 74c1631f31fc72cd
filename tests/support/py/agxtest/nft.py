"""Tables of nftables in this network namespace."""

import ctypes

lib = ctypes.CDLL("libnftables.so.1")
lib.nft_ctx_new.restype = ctypes.c_void_p
lib.nft_ctx_get_output_buffer.restype = ctypes.c_char_p


def run(command):
    """Runs nft and returns its output."""
    context = ctypes.c_void_p(lib.nft_ctx_new(0))
    try:
        lib.nft_ctx_buffer_output(context)
        lib.nft_ctx_buffer_error(context)
        assert lib.nft_run_cmd_from_buffer(context, command.encode()) == 0, command
        return lib.nft_ctx_get_output_buffer(context).decode()
    finally:
        lib.nft_ctx_free(context)


def tables():
    """The tables, each as "inet name"."""
    return [line.removeprefix("table ") for line in run("list tables").splitlines()]
