-- Calls of providers that have a quota, in the hour and the day of the last one (docs/decisions/0516).
CREATE TABLE provider_uses (
  provider text PRIMARY KEY,
  hour timestamptz NOT NULL,
  in_hour integer NOT NULL,
  day timestamptz NOT NULL,
  in_day integer NOT NULL
);
