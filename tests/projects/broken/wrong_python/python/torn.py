def send(rows, batch):
    rows.show(
