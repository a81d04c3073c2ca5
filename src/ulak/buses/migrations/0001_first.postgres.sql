-- Who runs the one relay of a store, and until when that holds without a word of it.
CREATE TABLE buses_lease (
  name text COLLATE "C" PRIMARY KEY,
  owner bigint NOT NULL,
  until_at bigint NOT NULL
);

-- Messages whose topic did not take them, in their order: the page of the log that they came from, and the place in it.
CREATE TABLE buses_waiting (
  topic text COLLATE "C" NOT NULL,
  page bigint NOT NULL,
  place bigint NOT NULL,
  message bytea NOT NULL,
  PRIMARY KEY (topic, page, place)
);
