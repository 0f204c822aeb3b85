-- Times are microseconds since 1970, by the clock of the database. Everything that a record says is in
-- its JSON, which is text because it is given back byte for byte; the columns beside it are there to
-- find and to add up. `holder` is the token of the last lease: who writes with another one does not hold
-- the conversation any more. `last_write` is the token of the record that was added last, by which its
-- writer knows it again.
CREATE TABLE cocode.conversations (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    owner text COLLATE "C" NOT NULL,
    title text NOT NULL,
    cwd bytea NOT NULL,
    settings text NOT NULL,
    began bigint NOT NULL,
    used bigint NOT NULL,
    last_number bigint NOT NULL DEFAULT 0,
    last_write bigint,
    bytes bigint NOT NULL DEFAULT 0,
    turns bigint NOT NULL DEFAULT 0,
    tokens_input bigint NOT NULL DEFAULT 0,
    tokens_output bigint NOT NULL DEFAULT 0,
    tokens_cache_read bigint NOT NULL DEFAULT 0,
    tokens_cache_write bigint NOT NULL DEFAULT 0,
    cost double precision NOT NULL DEFAULT 0,
    closed boolean NOT NULL DEFAULT false,
    holder bigint
);
CREATE INDEX conversations_by_use ON cocode.conversations (used, key);
CREATE INDEX conversations_by_owner ON cocode.conversations (owner, used, key);
CREATE TABLE cocode.records (
    conversation bigint NOT NULL REFERENCES cocode.conversations (key) ON DELETE CASCADE,
    number bigint NOT NULL,
    kind text NOT NULL,
    written bigint NOT NULL,
    record text NOT NULL,
    PRIMARY KEY (conversation, number)
);
CREATE TABLE cocode.drafts (
    conversation bigint PRIMARY KEY REFERENCES cocode.conversations (key) ON DELETE CASCADE,
    after_number bigint NOT NULL,
    said text NOT NULL
);
