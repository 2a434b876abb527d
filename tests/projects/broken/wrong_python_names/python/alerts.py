def send(rows, batch_id):
    rows.show()
