-- The payer has come back: it is looked up beside the others, by a few workers of their own.
ALTER TABLE payments ADD COLUMN is_hurried boolean NOT NULL DEFAULT false;
CREATE INDEX payments_hurried ON payments (due_at) WHERE is_hurried;

-- What waits for a person.
CREATE INDEX notifications_in_review ON notifications (created_at DESC, id DESC) WHERE state = 'review';
CREATE INDEX refunds_in_review ON refunds (created_at DESC, id DESC) WHERE state = 'needs_review';

-- Reports read what one subject has in an order that does not change.
DROP INDEX ledger_entries_of_subject;
CREATE INDEX ledger_entries_of_subject ON ledger_entries (subject, created_at, id);
DROP INDEX payments_updated_at;
CREATE INDEX payments_updated_at ON payments (updated_at, id);
CREATE INDEX refunds_newest_first ON refunds (created_at DESC, id DESC);
CREATE INDEX refunds_of_subject ON refunds (subject, created_at DESC, id DESC);
