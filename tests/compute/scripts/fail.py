import sys


def run(params):
    print("before")
    print("went wrong", file=sys.stderr)
    raise ValueError(params.get("text", "no"))
