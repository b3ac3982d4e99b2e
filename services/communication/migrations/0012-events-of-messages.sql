-- The history of one message.
CREATE INDEX events_of_resource ON events (resource_id, number);
