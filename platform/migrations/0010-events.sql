-- What happened to what belongs to a subject (platform/src/events/events.ts). `number` says in which order the events of
-- a resource were written; `position`, which the relay gives, in which order all of them are read.
CREATE TABLE events (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id uuid NOT NULL UNIQUE,
  subject text NOT NULL,
  type text NOT NULL,
  resource_id uuid NOT NULL,
  data bytea NOT NULL,
  position bigint UNIQUE,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX events_without_position ON events (number) WHERE position IS NULL;
CREATE INDEX events_of_subject ON events (subject, position);
CREATE INDEX events_created_at ON events (created_at);

-- One row: the position that was given last. Who holds it gives the next ones.
CREATE TABLE event_relay (last_position bigint NOT NULL);
INSERT INTO event_relay VALUES (0);
