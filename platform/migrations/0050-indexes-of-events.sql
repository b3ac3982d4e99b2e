-- An event is in no index of positions until it has one. The oldest are found by their numbers (docs/decisions/0418).
ALTER TABLE events DROP CONSTRAINT events_position_key;
CREATE UNIQUE INDEX events_position ON events (position) WHERE position IS NOT NULL;
DROP INDEX events_of_subject;
CREATE INDEX events_of_subject ON events (subject, position) WHERE position IS NOT NULL;
DROP INDEX events_created_at;
