-- Each tag of each message in the order of lists. An index of arrays finds a tag, but has no order: of a tag that many
-- messages have it reads them all, and the planner cannot tell which those are (docs/decisions/0390).
CREATE TABLE message_tags (
  subject text NOT NULL,
  tag text NOT NULL,
  created_at timestamptz NOT NULL,
  id uuid NOT NULL,
  PRIMARY KEY (subject, tag, created_at, id)
);
CREATE INDEX message_tags_of_all ON message_tags (tag, created_at, id);
INSERT INTO message_tags SELECT DISTINCT subject, tag, created_at, id FROM messages, unnest(tags) AS tag;
DROP INDEX messages_tags;
