-- Why the provider has not run it, and those that wait for a person.
ALTER TABLE errands ADD COLUMN reason text;
CREATE INDEX errands_given_up ON errands (created_at DESC, id DESC) WHERE due_at IS NULL;
