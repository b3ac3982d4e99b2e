-- What a person has decided last; null: nothing, or it is in review again.
ALTER TABLE payments ADD COLUMN decision text CHECK (decision IN ('paid', 'unpaid', 'refunded'));
-- When the provider said that it works on it: its outcome may take weeks.
ALTER TABLE payments ADD COLUMN processing_at timestamptz;
-- Null: no person has decided.
ALTER TABLE refunds ADD COLUMN decision text CHECK (decision IN ('succeeded', 'failed'));
-- Who asked for it, where that is not whose payment it is.
ALTER TABLE payment_events ADD COLUMN actor text;

-- What went back at the provider's own page, by its reference.
CREATE TABLE returns (
  provider text NOT NULL,
  refund_ref text NOT NULL,
  payment_id uuid NOT NULL REFERENCES payments,
  amount bigint NOT NULL,
  currency text NOT NULL,
  -- Whether it is in the balance and in the ledger; what is in doubt waits for a person.
  is_booked boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (provider, refund_ref)
);
CREATE INDEX returns_of_payment ON returns (payment_id);

-- Each dispute is entered once, by the reference of its provider.
CREATE TABLE disputes (
  provider text NOT NULL,
  dispute_ref text NOT NULL,
  payment_id uuid NOT NULL REFERENCES payments,
  amount bigint NOT NULL,
  currency text NOT NULL,
  state text NOT NULL CHECK (state IN ('open', 'won', 'lost')),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (provider, dispute_ref)
);
CREATE INDEX disputes_of_payment ON disputes (payment_id);
