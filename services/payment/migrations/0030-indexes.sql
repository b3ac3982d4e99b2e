-- What reads by these would read whole tables.
CREATE INDEX payments_in_doubt ON payments (state, created_at DESC, id DESC)
  WHERE state IN ('needs_review', 'disputed', 'processing');
CREATE INDEX payments_updated_at ON payments (updated_at);
CREATE INDEX ledger_entries_created_at ON ledger_entries (created_at, id);
CREATE INDEX payment_methods_by_token ON payment_methods (provider, token_index);
