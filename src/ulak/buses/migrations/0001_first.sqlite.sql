-- Who runs the one relay of a store, and until when that holds without a word of it.
CREATE TABLE buses_lease (
  name TEXT PRIMARY KEY,
  owner INTEGER NOT NULL,
  until_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Messages whose topic did not take them, in their order: the page of the log that they came from, and the place in it.
CREATE TABLE buses_waiting (
  topic TEXT NOT NULL,
  page INTEGER NOT NULL,
  place INTEGER NOT NULL,
  message BLOB NOT NULL,
  PRIMARY KEY (topic, page, place)
) WITHOUT ROWID;
