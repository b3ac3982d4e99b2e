-- Jobs that were given up before anything was touched are kept, for who asks for them by their id, but were no updates.
ALTER TABLE history ADD COLUMN is_update boolean NOT NULL DEFAULT true;

UPDATE history SET is_update = false
WHERE outcome = 'rolled_back' AND reason IN ('Cancelled', 'Superseded');
