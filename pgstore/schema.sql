-- Version 1. @ stands for the schema. Hashes are bytea: 32 bytes where they are lower-case hexadecimal of that length,
-- else their text. A text that PostgreSQL cannot hold (U+0000, broken UTF-8) is kept as U+0001 and its hexadecimal. Times
-- are those of the database, NULL for none.

-- What says that the schema is ours, and how far it has come.
CREATE TABLE @meta (
	id          integer PRIMARY KEY CHECK (id = 1),
	application text    NOT NULL CHECK (application = 'toolonce'),
	version     integer NOT NULL
);
INSERT INTO @meta (id, application, version) VALUES (1, 'toolonce', 0);

-- One row for each process instance that may own operations or runs. Ids are never used again.
CREATE TABLE @owners (
	id      bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
	name    text        NOT NULL UNIQUE,
	since   timestamptz NOT NULL,
	beat    timestamptz NOT NULL, -- its last sign of life
	overdue interval    NOT NULL, -- how long after that it is taken for gone
	gone    timestamptz           -- when it left, or a person said so; for good
) WITH (fillfactor = 50);

CREATE TABLE @operations (
	id           bigint      PRIMARY KEY, -- milliseconds of its creation and a random part
	namespace    text        NOT NULL,
	identity     bytea       NOT NULL,
	released     bigint      NOT NULL DEFAULT 0, -- 0, or its own id once it is released
	fingerprint  bytea       NOT NULL,
	canonical    integer     NOT NULL,
	tool         text        NOT NULL,
	state        text        NOT NULL CHECK (state IN ('running', 'in_doubt', 'done', 'free', 'released')),
	token        text        NOT NULL,
	attempt      integer     NOT NULL,
	deadline     timestamptz NOT NULL,
	owner        bigint      NOT NULL,
	settle       text,
	settler      bigint      NOT NULL DEFAULT 0,
	generation   integer     NOT NULL,
	key          bytea, -- NULL: the next claim fixes it
	key_since    timestamptz NOT NULL,
	unclear      boolean     NOT NULL DEFAULT false,
	by_person    boolean     NOT NULL DEFAULT false,
	undoes       bigint,
	repeat_of    bigint,
	resource     bytea,
	resource_out text        NOT NULL,
	late         boolean     NOT NULL DEFAULT false,
	run          text        NOT NULL, -- of the call that claimed it, like the next four
	turn         bigint      NOT NULL,
	position     bigint      NOT NULL,
	call_id      text        NOT NULL,
	arguments    bytea       NOT NULL,
	conversation text        NOT NULL,
	created      timestamptz NOT NULL,
	since        timestamptz NOT NULL,
	done_at      timestamptz,
	keep         interval, -- how long it is known once it is done, NULL: for ever
	retain       interval, -- how long input and result are kept once it is done, NULL: 90 days
	expires      timestamptz,
	settled_by   text        NOT NULL DEFAULT '',
	settled_why  text        NOT NULL DEFAULT '',
	input        bytea,
	result       text, -- NULL: none is kept
	CHECK ((state = 'released') = (released <> 0))
);

-- One row of an identity is running, in_doubt, done or free: all these have released = 0.
CREATE UNIQUE INDEX operations_identity ON @operations (namespace, identity, released);
-- One operation at a time is about to undo another.
CREATE UNIQUE INDEX operations_undoes ON @operations (undoes) WHERE undoes IS NOT NULL AND state IN ('running', 'in_doubt');
CREATE INDEX operations_open ON @operations (namespace, since) WHERE state IN ('running', 'in_doubt');
CREATE INDEX operations_resource ON @operations (namespace, tool, resource) WHERE resource IS NOT NULL;

-- How far each tenant is pruned: no operation with a lower id has, or will have, anything left to forget.
CREATE TABLE @pruned (
	namespace text   PRIMARY KEY,
	below     bigint NOT NULL
);

-- The calls that meant an operation. Turn 0 has no places: its rows have random positions. An alias whose operation has
-- been forgotten means nothing.
CREATE TABLE @aliases (
	namespace   text   NOT NULL,
	run         text   NOT NULL,
	turn        bigint NOT NULL,
	position    bigint NOT NULL,
	operation   bigint NOT NULL,
	call_id     text   NOT NULL,
	tool        text   NOT NULL,
	arguments   bytea  NOT NULL,
	fingerprint bytea  NOT NULL,
	repeats     bytea, -- the identity that the call repeats, NULL where it was executed for the first time
	PRIMARY KEY (namespace, run, turn, position)
);

CREATE INDEX aliases_repeats ON @aliases (namespace, run, repeats) WHERE repeats IS NOT NULL;

-- The questions whether a call may run, numbered as they came, and what people answered.
CREATE TABLE @approvals (
	number       bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
	id           text        NOT NULL UNIQUE,
	namespace    text        NOT NULL,
	state        text        NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'spent')),
	run          text        NOT NULL,
	turn         bigint      NOT NULL,
	position     bigint      NOT NULL,
	call_id      text        NOT NULL,
	tool         text        NOT NULL,
	arguments    bytea       NOT NULL,
	fingerprint  bytea       NOT NULL,
	identity     bytea       NOT NULL,
	generation   integer     NOT NULL,
	conversation text        NOT NULL,
	input        bytea,
	digest       bytea, -- of the input, by which two are compared
	repeat_of    text        NOT NULL,
	asked        timestamptz NOT NULL,
	expires      timestamptz NOT NULL,
	decided      timestamptz,
	decided_by   text        NOT NULL DEFAULT '',
	why          text        NOT NULL DEFAULT '',
	operation    text        NOT NULL DEFAULT '' -- that it was spent on
);

CREATE INDEX approvals_place ON @approvals (namespace, run, turn, position);
CREATE INDEX approvals_state ON @approvals (namespace, state);

-- The runs of the journal. Who has one writes under its token, which is new whenever the run is taken.
CREATE TABLE @runs (
	id           bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
	namespace    text        NOT NULL,
	run          text        NOT NULL,
	conversation text        NOT NULL,
	api          text        NOT NULL,
	input        bytea, -- a digest of the user's messages
	token        text        NOT NULL,
	owner        bigint      NOT NULL, -- 0: nobody has it, and the token is worth nothing
	finished     boolean     NOT NULL DEFAULT false,
	forgotten    boolean     NOT NULL DEFAULT false, -- what it said and did was erased
	created      timestamptz NOT NULL,
	ended        timestamptz, -- when it was finished
	CHECK (NOT finished OR owner = 0),
	CHECK (NOT forgotten OR finished)
);

CREATE UNIQUE INDEX runs_run ON @runs (namespace, run);
CREATE INDEX runs_conversation ON @runs (namespace, conversation) WHERE conversation <> '';
-- For what must not be forgotten while a run may still ask for it.
CREATE INDEX runs_open ON @runs (namespace, run) WHERE NOT finished;

-- What the model answered and what it was told, byte for byte.
CREATE TABLE @turns (
	run    bigint NOT NULL, -- runs.id
	number bigint NOT NULL,
	answer text   NOT NULL,
	PRIMARY KEY (run, number)
);

CREATE TABLE @outputs (
	run       bigint NOT NULL, -- runs.id
	turn      bigint NOT NULL,
	position  bigint NOT NULL,
	content   text   NOT NULL,
	verdict   text   NOT NULL,
	operation text   NOT NULL,
	PRIMARY KEY (run, turn, position)
);

-- What people did, oldest first. The hash of each row covers it and the hash before it, see middleware.Act.
CREATE TABLE @acts (
	number    bigint      PRIMARY KEY,
	namespace text        NOT NULL,
	at        timestamptz NOT NULL,
	kind      text        NOT NULL,
	target    text        NOT NULL,
	by        text        NOT NULL,
	why       text        NOT NULL,
	detail    text        NOT NULL,
	hash      bytea       NOT NULL
);

CREATE FUNCTION @acts_stay() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'acts are never changed nor removed'; END $$;
CREATE TRIGGER acts_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON @acts FOR EACH STATEMENT EXECUTE FUNCTION @acts_stay();
