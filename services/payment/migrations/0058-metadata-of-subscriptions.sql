-- What the caller keeps with it; null: nothing, or its customer was erased.
ALTER TABLE subscriptions ADD COLUMN sealed bytea;
