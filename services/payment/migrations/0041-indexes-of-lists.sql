-- Each way to search payments has its order, so that neither a page nor its count reads what it leaves out
-- (docs/decisions/0390).
CREATE INDEX payments_by_state ON payments (subject, state, created_at DESC, id DESC);
CREATE INDEX payments_of_all_by_state ON payments (state, created_at DESC, id DESC);
DROP INDEX payments_in_doubt;
CREATE INDEX payments_by_provider ON payments (subject, provider, created_at DESC, id DESC);
CREATE INDEX payments_of_payer ON payments (email_index, created_at DESC, id DESC);
DROP INDEX payments_by_email;
