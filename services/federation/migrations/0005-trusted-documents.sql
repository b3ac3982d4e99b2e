-- Documents that clients were published with, to be asked for by id (decision 0482).
CREATE TABLE trusted_documents (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  client text NOT NULL,
  -- One document, whichever clients have it.
  document_id text NOT NULL,
  -- SHA-256 of the document without what GraphQL ignores, such as white space.
  hash bytea NOT NULL,
  document text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (client, document_id)
);
CREATE INDEX trusted_documents_by_id ON trusted_documents (document_id);
CREATE INDEX trusted_documents_by_hash ON trusted_documents (hash);
CREATE INDEX trusted_documents_newest ON trusted_documents (created_at DESC, id DESC);
