-- What entries come to, but for the newest: who asks for balances does not read all that ever moved
-- (docs/decisions/0446).
CREATE TABLE ledger_totals (
  subject text NOT NULL,
  account text NOT NULL,
  currency text NOT NULL,
  amount numeric NOT NULL,
  PRIMARY KEY (subject, account, currency)
);

-- One row: the last entry that is in the totals. Who holds it adds the next ones.
CREATE TABLE ledger_totals_until (last_entry_id bigint NOT NULL);
INSERT INTO ledger_totals_until VALUES (0);
