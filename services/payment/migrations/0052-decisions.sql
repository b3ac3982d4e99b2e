ALTER TABLE payments DROP CONSTRAINT payments_decision_check;
ALTER TABLE payments ADD CONSTRAINT payments_decision_check
  CHECK (decision IN ('paid', 'unpaid', 'refunded', 'dismissed'));

-- A person found out that it never was: no later decision books it.
ALTER TABLE charges ADD COLUMN is_dismissed boolean NOT NULL DEFAULT false;
ALTER TABLE returns ADD COLUMN is_dismissed boolean NOT NULL DEFAULT false;

-- What of a lost dispute is in `refunded` of its payment. It may be lost before the money is known.
ALTER TABLE disputes ADD COLUMN counted bigint NOT NULL DEFAULT 0;
UPDATE disputes SET counted = LEAST(disputes.amount, payments.refunded) FROM payments
  WHERE payments.id = payment_id AND disputes.state = 'lost';

-- What people wrote of their decisions.
CREATE TABLE payment_notes (
  id uuid PRIMARY KEY,
  payment_id uuid NOT NULL REFERENCES payments,
  event_id bigint NOT NULL UNIQUE REFERENCES payment_events,
  sealed bytea NOT NULL
);
CREATE INDEX payment_notes_of_payment ON payment_notes (payment_id);
