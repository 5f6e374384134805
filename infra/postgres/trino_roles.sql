-- What Trino's two roles may do in the Iceberg catalog's tables; run by their owner, and safe to run again.
-- The reader reads. Upkeep moves a table's metadata (optimize) and makes, replaces and drops views; it can neither
-- register nor drop a table. Row security does not bind the owner, who is the committer.
GRANT USAGE ON SCHEMA public TO trino_reader, trino_upkeep;
GRANT SELECT ON iceberg_tables, iceberg_namespace_properties TO trino_reader, trino_upkeep;
GRANT INSERT, UPDATE, DELETE ON iceberg_tables TO trino_upkeep;

ALTER TABLE iceberg_tables ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS trino_reads ON iceberg_tables;
DROP POLICY IF EXISTS upkeep_moves ON iceberg_tables;
DROP POLICY IF EXISTS upkeep_adds_views ON iceberg_tables;
DROP POLICY IF EXISTS upkeep_drops_views ON iceberg_tables;
CREATE POLICY trino_reads ON iceberg_tables FOR SELECT TO trino_reader, trino_upkeep USING (true);
CREATE POLICY upkeep_moves ON iceberg_tables FOR UPDATE TO trino_upkeep USING (true) WITH CHECK (true);
CREATE POLICY upkeep_adds_views ON iceberg_tables FOR INSERT TO trino_upkeep WITH CHECK (iceberg_type = 'VIEW');
CREATE POLICY upkeep_drops_views ON iceberg_tables FOR DELETE TO trino_upkeep USING (iceberg_type = 'VIEW');
