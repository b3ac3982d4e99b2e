-- Null: it was given up, and waits for somebody who makes it due again.
ALTER TABLE errands ALTER COLUMN due_at DROP NOT NULL;
