-- Numbers without gaps: the row is taken by the transaction that finalises, until it ends.
CREATE TABLE invoice_series (
  series text PRIMARY KEY,
  last bigint NOT NULL
);

-- Lines and parties are in `sealed`.
CREATE TABLE invoices (
  id uuid PRIMARY KEY,
  subject text NOT NULL,
  customer_id uuid NOT NULL REFERENCES customers,
  subscription_id uuid,
  period_start date,
  period_end date,
  state text NOT NULL CHECK (state IN ('draft', 'open', 'paid', 'void', 'uncollectible')),
  series text,
  sequence bigint,
  number text,
  currency text NOT NULL,
  tax_behavior text NOT NULL,
  days_until_due integer NOT NULL,
  net bigint NOT NULL,
  tax bigint NOT NULL,
  gross bigint NOT NULL,
  -- Of the total: paid by credit of the subscription.
  from_credit bigint NOT NULL DEFAULT 0,
  sealed bytea NOT NULL,
  issued_on date,
  due_on date,
  finalized_at timestamptz,
  created_at timestamptz NOT NULL,
  -- What may change from here on.
  credited bigint NOT NULL DEFAULT 0,
  -- That pays it, or tried to.
  payment_id uuid,
  paid_at timestamptz,
  voided_at timestamptz,
  updated_at timestamptz NOT NULL DEFAULT now(),
  CHECK (gross = net + tax),
  CHECK (state = 'draft' OR (gross BETWEEN 0 AND 1000000000000 AND credited BETWEEN 0 AND gross)),
  CHECK ((number IS NULL) = (state = 'draft' OR (state = 'void' AND finalized_at IS NULL))),
  UNIQUE (series, sequence),
  UNIQUE (number),
  -- A period is billed once, whoever bills it.
  UNIQUE (subscription_id, period_start)
);

CREATE INDEX invoices_newest_first ON invoices (created_at DESC, id DESC);
CREATE INDEX invoices_of_subject ON invoices (subject, created_at DESC, id DESC);
CREATE INDEX invoices_of_customer ON invoices (customer_id, created_at DESC, id DESC);
CREATE INDEX invoices_by_payment ON invoices (payment_id) WHERE payment_id IS NOT NULL;

CREATE TABLE credit_notes (
  id uuid PRIMARY KEY,
  invoice_id uuid NOT NULL REFERENCES invoices,
  subject text NOT NULL,
  series text NOT NULL,
  sequence bigint NOT NULL,
  number text NOT NULL UNIQUE,
  currency text NOT NULL,
  net bigint NOT NULL,
  tax bigint NOT NULL,
  gross bigint NOT NULL CHECK (gross > 0 AND gross = net + tax),
  sealed bytea NOT NULL,
  issued_on date NOT NULL,
  created_at timestamptz NOT NULL,
  UNIQUE (series, sequence)
);

CREATE INDEX credit_notes_of_invoice ON credit_notes (invoice_id, created_at, id);

CREATE FUNCTION keep_what_was_issued() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  changeable CONSTANT text[] := ARRAY['state', 'credited', 'payment_id', 'paid_at', 'voided_at', 'updated_at'];
BEGIN
  IF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'invoices' THEN
    IF (to_jsonb(NEW) - changeable) IS NOT DISTINCT FROM (to_jsonb(OLD) - changeable) AND NEW.state <> 'draft' THEN
      RETURN NEW;
    END IF;
  END IF;
  RAISE EXCEPTION 'what was issued is not changed: %', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER issued_invoices_stay BEFORE UPDATE OR DELETE ON invoices
  FOR EACH ROW WHEN (OLD.finalized_at IS NOT NULL) EXECUTE FUNCTION keep_what_was_issued();
CREATE TRIGGER issued_credit_notes_stay BEFORE UPDATE OR DELETE ON credit_notes
  FOR EACH ROW EXECUTE FUNCTION keep_what_was_issued();
-- Numbers are never given out again.
CREATE FUNCTION count_upwards() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.series = OLD.series AND NEW.last = OLD.last + 1 THEN RETURN NEW; END IF;
  RAISE EXCEPTION 'a series counts upwards, one by one' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER series_count_upwards BEFORE UPDATE OR DELETE ON invoice_series
  FOR EACH ROW EXECUTE FUNCTION count_upwards();
