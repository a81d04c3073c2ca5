def run(params):
    return "x" * params["size"]
