-- What was issued says the same when it is sealed with another key (platform/src/postgres/resealing.ts).
CREATE OR REPLACE FUNCTION keep_what_was_issued() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  changeable CONSTANT text[] := ARRAY['state', 'credited', 'payment_id', 'paid_at', 'voided_at', 'updated_at'];
BEGIN
  IF TG_OP = 'UPDATE' AND current_setting('rollcall.resealing', true) = 'on' THEN
    IF (to_jsonb(NEW) - 'sealed') IS NOT DISTINCT FROM (to_jsonb(OLD) - 'sealed') THEN
      RETURN NEW;
    END IF;
  END IF;
  IF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'invoices' THEN
    IF (to_jsonb(NEW) - changeable) IS NOT DISTINCT FROM (to_jsonb(OLD) - changeable) AND NEW.state <> 'draft' THEN
      RETURN NEW;
    END IF;
  END IF;
  RAISE EXCEPTION 'what was issued is not changed: %', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
