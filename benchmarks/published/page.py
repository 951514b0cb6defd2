def write(results):
    print("no page yet")
