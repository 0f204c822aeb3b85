-- Times are seconds since 1970.
CREATE TABLE cocode.tokens (
    name text COLLATE "C" PRIMARY KEY,
    hash bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    is_admin boolean NOT NULL,
    created bigint NOT NULL,
    expires bigint,
    last_used bigint
);

-- Another mark after every change of who is let in, also after one that somebody makes by hand. It is
-- drawn by lot, so that a database that was set back to an older state does not come to the same one.
CREATE TABLE cocode.token_changes (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    mark uuid NOT NULL
);
INSERT INTO cocode.token_changes (mark) VALUES (gen_random_uuid());

CREATE FUNCTION cocode.mark_token_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE cocode.token_changes SET mark = gen_random_uuid();
    RETURN NULL;
END
$$;
CREATE TRIGGER mark_change
    AFTER INSERT OR DELETE OR TRUNCATE OR UPDATE OF name, hash, is_admin, created, expires
    ON cocode.tokens
    FOR EACH STATEMENT EXECUTE FUNCTION cocode.mark_token_change();
