-- Calls of POST /messages/:id/retry that had their effect: their repetitions have none.
ALTER TABLE messages ADD COLUMN restarts uuid[] NOT NULL DEFAULT '{}';
