-- Who runs the one relay of a store, and until when that holds without a word of it.
CREATE TABLE buses_lease (
  name text COLLATE "C" PRIMARY KEY,
  owner bigint NOT NULL,
  until_at bigint NOT NULL
);
