-- The same check by a statement that is planned once a connection, not once a row.
CREATE OR REPLACE FUNCTION check_ledger_entry() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  checked bigint;
  balance numeric;
BEGIN
  IF TG_TABLE_NAME = 'ledger_entries' THEN checked := NEW.id; ELSE checked := NEW.entry_id; END IF;
  SELECT sum(amount) INTO balance FROM ledger_postings WHERE entry_id = checked;
  IF balance IS NULL OR balance <> 0 THEN
    RAISE EXCEPTION 'the ledger entry % does not sum to zero', checked;
  END IF;
  RETURN NULL;
END $$;
