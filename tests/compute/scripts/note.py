import pathlib


def run(params):
    with pathlib.Path(params["path"]).open("a") as file:
        file.write(f"{params['line']}\n")
