-- Null: it is not lost, or a version lost it that does not count. That one runs beside this one, or after it.
ALTER TABLE disputes ALTER COLUMN counted DROP DEFAULT, ALTER COLUMN counted DROP NOT NULL;
UPDATE disputes SET counted = NULL WHERE state <> 'lost';
