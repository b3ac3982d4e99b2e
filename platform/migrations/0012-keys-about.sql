-- What the path of the call named, where it named something that was there.
ALTER TABLE idempotency_keys ADD COLUMN about uuid;
