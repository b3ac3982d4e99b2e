-- How often the provider was called for it, but for calls that surely were not taken.
ALTER TABLE refunds ADD COLUMN calls integer NOT NULL DEFAULT 0;
-- Its provider knows no key of calls, and tells refunds apart by sums (docs/decisions/0351).
ALTER TABLE refunds ADD COLUMN is_told_by_sums boolean NOT NULL DEFAULT false;
UPDATE refunds SET calls = 1 WHERE called_at IS NOT NULL;
-- Of one payment, one refund at a time has an outcome that is not known; where sums tell, that lasts until it is over.
DROP INDEX refunds_one_call;
CREATE UNIQUE INDEX refunds_one_call ON refunds (payment_id) WHERE called_at IS NOT NULL
  AND (accepted_at IS NULL AND state IN ('pending', 'processing')
    OR is_told_by_sums AND state IN ('pending', 'processing', 'needs_review'));
