-- Each way to search messages has its order, so that neither a page nor its count reads what it leaves out
-- (docs/decisions/0390).
CREATE INDEX messages_of_all_newest ON messages (created_at DESC, id DESC);
DROP INDEX messages_created_at;
CREATE INDEX messages_by_state ON messages (subject, state, created_at DESC, id DESC);
CREATE INDEX messages_of_all_by_state ON messages (state, created_at DESC, id DESC);
CREATE INDEX messages_by_channel ON messages (subject, channel, created_at DESC, id DESC);
CREATE INDEX messages_by_template ON messages (subject, template, created_at DESC, id DESC) WHERE template IS NOT NULL;
