-- Somebody may go back to an earlier graph, until they let go of it.

-- The number of the generation in force instead of the newest; null: none.
ALTER TABLE graph ADD COLUMN pinned bigint;
