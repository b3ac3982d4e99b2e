-- Methods that providers keep, for charges without the payer. The provider's token is in `sealed`.
CREATE TABLE payment_methods (
  id uuid PRIMARY KEY,
  customer_id uuid NOT NULL REFERENCES customers,
  provider text NOT NULL,
  sealed bytea NOT NULL,
  token_index bytea NOT NULL,
  usable boolean NOT NULL DEFAULT true,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (customer_id, provider, token_index)
);

CREATE TABLE subscriptions (
  id uuid PRIMARY KEY,
  subject text NOT NULL,
  customer_id uuid NOT NULL REFERENCES customers,
  plan_id uuid NOT NULL,
  plan_version integer NOT NULL,
  -- Null: invoices are sent, and the payer chooses.
  provider text,
  method_id uuid REFERENCES payment_methods,
  -- By which the provider learns how to charge, where nothing is to be paid at first.
  setup_payment_id uuid UNIQUE,
  state text NOT NULL CHECK (state IN ('incomplete', 'trialing', 'active', 'past_due', 'unpaid', 'paused', 'cancelled')),
  collection text NOT NULL CHECK (collection IN ('charge_automatically', 'send_invoice')),
  trial_end date,
  -- The schedule: days of the time zone, counted from the anchor.
  time_zone text NOT NULL,
  anchor date NOT NULL,
  next_index integer NOT NULL CHECK (next_index >= 0),
  cancel_at_period_end boolean NOT NULL,
  pending_amount bigint NOT NULL,
  credit_balance bigint NOT NULL CHECK (credit_balance >= 0),
  -- The one invoice that is not paid.
  open_key text,
  open_invoice_id uuid REFERENCES invoices,
  open_due bigint,
  open_issued_at timestamptz,
  open_attempts integer,
  open_charge text CHECK (open_charge IN ('none', 'unsettled', 'failed')),
  open_failed_at timestamptz,
  -- Of the charge that is unsettled. A checkout is up to the payer; a method is charged by us.
  open_payment_id uuid,
  open_by_checkout boolean NOT NULL,
  due_at timestamptz,
  created_at timestamptz NOT NULL,
  cancelled_at timestamptz,
  updated_at timestamptz NOT NULL DEFAULT now(),
  FOREIGN KEY (plan_id, plan_version) REFERENCES plan_versions (plan_id, version),
  CHECK ((open_key IS NULL) = (open_invoice_id IS NULL))
);

ALTER TABLE invoices ADD FOREIGN KEY (subscription_id) REFERENCES subscriptions;

CREATE INDEX subscriptions_newest_first ON subscriptions (created_at DESC, id DESC);
CREATE INDEX subscriptions_of_subject ON subscriptions (subject, created_at DESC, id DESC);
CREATE INDEX subscriptions_of_customer ON subscriptions (customer_id, created_at DESC, id DESC);
CREATE INDEX subscriptions_due ON subscriptions (due_at) WHERE due_at IS NOT NULL;

-- Mails that communication is asked to send, each once by its id. What they say is read as they are sent.
CREATE TABLE billing_mails (
  id uuid PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('invoice', 'receipt', 'payment-failed')),
  invoice_id uuid NOT NULL REFERENCES invoices,
  -- One mail for each thing that happens: the attempt, or the reminder.
  occasion integer NOT NULL,
  reason text,
  retry_on date,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'failed')),
  attempts integer NOT NULL DEFAULT 0,
  due_at timestamptz DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (invoice_id, kind, occasion)
);

CREATE INDEX billing_mails_due ON billing_mails (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX billing_mails_created_at ON billing_mails (created_at);
