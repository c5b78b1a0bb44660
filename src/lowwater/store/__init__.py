"""Where ledgers and turn records last: one folder or file per kind of store, all behind the port `Store`."""
