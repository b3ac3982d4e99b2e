-- Personal data and what opens doors is in `sealed` (platform/src/vault.ts): the payer's address, what is bought, the
-- stored method, the token of our page.
CREATE TABLE payments (
  id uuid PRIMARY KEY,
  subject text NOT NULL,
  provider text NOT NULL,
  -- `charge` is of a stored method, without the payer.
  purpose text NOT NULL CHECK (purpose IN ('pay', 'pay-and-keep', 'keep', 'charge')),
  amount bigint NOT NULL CHECK (amount BETWEEN 0 AND 1000000000000),
  currency text NOT NULL,
  state text NOT NULL CHECK (state IN ('pending', 'processing', 'succeeded', 'failed', 'expired', 'cancelled',
    'partially_refunded', 'refunded', 'disputed', 'needs_review')),
  -- Why it failed, or is in review.
  reason text,
  captured bigint NOT NULL DEFAULT 0 CHECK (captured >= 0),
  refunded bigint NOT NULL DEFAULT 0 CHECK (refunded >= 0),
  reserved bigint NOT NULL DEFAULT 0 CHECK (reserved >= 0),
  sealed bytea NOT NULL,
  email_index bytea NOT NULL,
  method_index bytea,
  page_token_hash bytea NOT NULL UNIQUE,
  checkout_ref text,
  charge_ref text,
  customer_id uuid,
  invoice_id uuid,
  -- When the provider was called; null: it surely has not been.
  called_at timestamptz,
  look_ups integer NOT NULL DEFAULT 0,
  last_look_up_at timestamptz,
  expires_at timestamptz NOT NULL,
  due_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT never_refunded_beyond CHECK (refunded + reserved <= captured)
);
CREATE INDEX payments_newest_first ON payments (created_at DESC, id DESC);
CREATE INDEX payments_of_subject ON payments (subject, created_at DESC, id DESC);
CREATE INDEX payments_by_email ON payments (email_index);
CREATE INDEX payments_by_method ON payments (provider, method_index) WHERE method_index IS NOT NULL;
CREATE INDEX payments_by_checkout ON payments (provider, checkout_ref);
CREATE INDEX payments_by_charge ON payments (provider, charge_ref);
CREATE INDEX payments_by_invoice ON payments (invoice_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_due ON payments (due_at) WHERE due_at IS NOT NULL;

-- Money that a provider says it took, by its own reference: one charge counts once, for one payment.
CREATE TABLE charges (
  provider text NOT NULL,
  charge_ref text NOT NULL,
  payment_id uuid NOT NULL REFERENCES payments,
  amount bigint NOT NULL,
  currency text NOT NULL,
  fee bigint,
  -- Whether it is in the balance and in the ledger; what is in doubt waits for a person.
  is_booked boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (provider, charge_ref)
);
CREATE INDEX charges_of_payment ON charges (payment_id);

-- The history of payments. Nothing in it is personal.
CREATE TABLE payment_events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  payment_id uuid NOT NULL REFERENCES payments,
  event text NOT NULL,
  source text NOT NULL,
  from_state text,
  to_state text NOT NULL,
  reason text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX payment_events_of_payment ON payment_events (payment_id, id);

-- `sealed` has the reason that a person gave.
CREATE TABLE refunds (
  id uuid PRIMARY KEY,
  payment_id uuid NOT NULL REFERENCES payments,
  subject text NOT NULL,
  amount bigint NOT NULL CHECK (amount > 0),
  currency text NOT NULL,
  state text NOT NULL CHECK (state IN ('pending', 'processing', 'succeeded', 'failed', 'needs_review')),
  failure text,
  sealed bytea NOT NULL,
  refund_ref text,
  -- When the provider was called; null: it surely has not been.
  called_at timestamptz,
  -- When it said that it has the refund.
  accepted_at timestamptz,
  -- Of the payment, by refunds that were over when the provider was called.
  refunded_before bigint NOT NULL DEFAULT 0,
  look_ups integer NOT NULL DEFAULT 0,
  last_look_up_at timestamptz,
  due_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX refunds_of_payment ON refunds (payment_id, created_at DESC, id DESC);
CREATE INDEX refunds_by_reference ON refunds (refund_ref) WHERE refund_ref IS NOT NULL;
CREATE INDEX refunds_due ON refunds (due_at) WHERE due_at IS NOT NULL;
-- Of one payment, one refund at a time has an outcome that is not known (docs/decisions/0351).
CREATE UNIQUE INDEX refunds_one_call ON refunds (payment_id) WHERE called_at IS NOT NULL AND accepted_at IS NULL
  AND state IN ('pending', 'processing');

-- What providers sent, once for each event. The bytes are dropped after a while.
CREATE TABLE notifications (
  id uuid PRIMARY KEY,
  provider text NOT NULL,
  event_key text NOT NULL,
  sealed bytea,
  state text NOT NULL CHECK (state IN ('new', 'done', 'review')),
  -- Why it is in review, or what a person should know; without personal data.
  remark text,
  attempts integer NOT NULL DEFAULT 0,
  due_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (provider, event_key)
);
CREATE INDEX notifications_due ON notifications (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX notifications_created_at ON notifications (created_at) WHERE sealed IS NOT NULL;

-- Double entry. Entries are never changed; the postings of each sum to zero.
CREATE TABLE ledger_entries (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  subject text NOT NULL,
  key text NOT NULL UNIQUE,
  kind text NOT NULL,
  currency text NOT NULL,
  payment_id uuid,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ledger_entries_of_subject ON ledger_entries (subject, created_at);

CREATE TABLE ledger_postings (
  entry_id bigint NOT NULL REFERENCES ledger_entries,
  account text NOT NULL,
  amount bigint NOT NULL CHECK (amount <> 0),
  place smallint NOT NULL,
  PRIMARY KEY (entry_id, place)
);

CREATE FUNCTION refuse_ledger_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the ledger is only added to';
END $$;
CREATE TRIGGER ledger_entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_ledger_change();
CREATE TRIGGER ledger_postings_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_postings
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_ledger_change();

-- Looks at the whole entry when the transaction ends, whichever of its rows came last.
CREATE FUNCTION check_ledger_entry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  checked bigint;
  balance numeric;
BEGIN
  IF TG_TABLE_NAME = 'ledger_entries' THEN checked := NEW.id; ELSE checked := NEW.entry_id; END IF;
  EXECUTE format('SELECT sum(amount) FROM %I.ledger_postings WHERE entry_id = $1', TG_TABLE_SCHEMA)
    INTO balance USING checked;
  IF balance IS NULL OR balance <> 0 THEN
    RAISE EXCEPTION 'the ledger entry % does not sum to zero', checked;
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER ledger_entries_sum_to_zero AFTER INSERT ON ledger_entries
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_ledger_entry();
CREATE CONSTRAINT TRIGGER ledger_postings_sum_to_zero AFTER INSERT ON ledger_postings
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_ledger_entry();
