-- Sessions by the hash of their id. `told` is what another gateway has to be told to go on with one, and
-- `version` says how often that has changed. `credential` is what the guest came with who began it.
CREATE TABLE cocode.sessions (
    key bytea PRIMARY KEY CHECK (octet_length(key) = 32),
    guest text COLLATE "C",
    credential text COLLATE "C",
    endpoint text,
    revision text NOT NULL,
    told bytea[] NOT NULL,
    version bigint NOT NULL,
    used timestamptz NOT NULL
);
CREATE INDEX sessions_by_guest ON cocode.sessions (guest);
CREATE INDEX sessions_by_use ON cocode.sessions (used);

-- What has happened to sessions, for a few minutes. Who looks asks for what was done by transactions
-- that had not ended when it last looked: numbers or times would pass over what is committed late.
CREATE TABLE cocode.session_events (
    done_by bigint NOT NULL,
    key bytea NOT NULL,
    is_end boolean NOT NULL,
    version bigint NOT NULL,
    at timestamptz NOT NULL
);
CREATE INDEX session_events_by_transaction ON cocode.session_events (done_by);
