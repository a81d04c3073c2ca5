def run(params):
    return object()
