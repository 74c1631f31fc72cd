"""usage: rpc_peer.py SOCKET: an echo server on grpcio, which uses C-core for HTTP/2 and gRPC."""

import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc


def main():
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
    server = grpc.server(ThreadPoolExecutor(4))
    service = grpc.method_handlers_generic_handler("example.v1.Echo", {"Say": handler})
    server.add_generic_rpc_handlers([service])
    server.add_insecure_port(f"unix:{sys.argv[1]}")
    server.start()
    signal.signal(signal.SIGTERM, lambda *_: server.stop(None))
    print("listening", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
