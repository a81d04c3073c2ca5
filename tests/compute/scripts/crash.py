import os
import signal


def run(params):
    os.kill(os.getpid(), signal.SIGKILL)
