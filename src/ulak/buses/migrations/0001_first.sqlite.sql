-- Who runs the one relay of a store, and until when that holds without a word of it.
CREATE TABLE buses_lease (
  name TEXT PRIMARY KEY,
  owner INTEGER NOT NULL,
  until_at INTEGER NOT NULL
) WITHOUT ROWID;
