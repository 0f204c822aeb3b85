-- The lines of the audit log, as they are written. Each holds the hash of the one before.
CREATE TABLE cocode.audit_lines (
    seq bigint PRIMARY KEY,
    line text NOT NULL
);

-- Where the chain has come to; who appends holds this row. `bytes` is the length of all lines, and
-- lines up to `removed` may be removed, because the chain says so.
CREATE TABLE cocode.audit_head (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    seq bigint NOT NULL,
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    bytes bigint NOT NULL,
    removed bigint NOT NULL
);
INSERT INTO cocode.audit_head (seq, hash, bytes, removed)
    VALUES (0, decode(repeat('00', 32), 'hex'), 0, 0);

-- Which batch each process has written last: one whose answer was lost is not written again.
CREATE TABLE cocode.audit_writers (
    writer bytea PRIMARY KEY,
    batch bigint NOT NULL,
    written timestamptz NOT NULL
);

CREATE FUNCTION cocode.keep_audit_lines() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.seq <= (SELECT removed FROM cocode.audit_head) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit log is only ever appended to';
END
$$;
CREATE TRIGGER keep_lines BEFORE UPDATE OR DELETE ON cocode.audit_lines
    FOR EACH ROW EXECUTE FUNCTION cocode.keep_audit_lines();
CREATE TRIGGER keep_all_lines BEFORE TRUNCATE ON cocode.audit_lines
    FOR EACH STATEMENT EXECUTE FUNCTION cocode.keep_audit_lines();
