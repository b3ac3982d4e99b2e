-- Personal data of customers is in `sealed` (platform/src/vault.ts); `email_index` finds an address.
CREATE TABLE customers (
  id uuid PRIMARY KEY,
  subject text NOT NULL,
  sealed bytea NOT NULL,
  email_index bytea NOT NULL,
  time_zone text NOT NULL,
  locale text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX customers_newest_first ON customers (created_at DESC, id DESC);
CREATE INDEX customers_of_subject ON customers (subject, created_at DESC, id DESC);
CREATE INDEX customers_by_email ON customers (email_index);

CREATE TABLE plans (
  id uuid PRIMARY KEY,
  subject text NOT NULL,
  active boolean NOT NULL DEFAULT true,
  -- The newest of plan_versions.
  version integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX plans_newest_first ON plans (created_at DESC, id DESC);
CREATE INDEX plans_of_subject ON plans (subject, created_at DESC, id DESC);

-- A subscription keeps its version, so none is ever changed.
CREATE TABLE plan_versions (
  plan_id uuid NOT NULL REFERENCES plans,
  version integer NOT NULL CHECK (version > 0),
  name text NOT NULL,
  amount bigint NOT NULL CHECK (amount BETWEEN 0 AND 1000000000000),
  currency text NOT NULL,
  interval_unit text NOT NULL CHECK (interval_unit IN ('day', 'week', 'month', 'year')),
  interval_count integer NOT NULL CHECK (interval_count > 0),
  trial_days integer NOT NULL CHECK (trial_days >= 0),
  -- In millionths: 150000 is 15 %.
  tax_rate integer NOT NULL CHECK (tax_rate BETWEEN 0 AND 1000000),
  tax_behavior text NOT NULL CHECK (tax_behavior IN ('inclusive', 'exclusive')),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (plan_id, version)
);
