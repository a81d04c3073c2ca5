def main(params, context):
    print("doubling")
    return {"value": params["value"] * 2, "id": context.task_id}
