"""`python -m infra.demo_site --port 8765`: serve the site until interrupted."""

from __future__ import annotations

import argparse
import contextlib
import sys

from infra.demo_site.server import DEFAULT_PORT, SiteServer
from infra.demo_site.site import Site


def main(arguments: list[str] | None = None) -> int:
    """Serve; returns 0 when interrupted and 3 if the port is taken."""
    parser = argparse.ArgumentParser(prog="python -m infra.demo_site", description="serve the demo site")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other stories")
    parser.add_argument("--quiet", action="store_true", help="log no requests")
    options = parser.parse_args(arguments)
    try:
        server = SiteServer(Site(options.seed), options.port, verbose=not options.quiet)
    except OSError as error:
        sys.stderr.write(f"cannot serve on 127.0.0.1:{options.port}: {error.strerror}; choose another with --port\n")
        return 3
    sys.stdout.write(f"demo site on {server.url}/ (stop with Ctrl-C)\n")
    sys.stdout.flush()
    with server, contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
