-- Version 1. Hashes are kept as bytes where they are lower-case hexadecimal, as text where they are not (ANY). Times are
-- nanoseconds since 1970 of the clock of the process that wrote them, 0 for none.

-- One row for each process instance that may own operations or runs. Ids are never used again.
CREATE TABLE owners (
	id    INTEGER PRIMARY KEY AUTOINCREMENT,
	name  TEXT    NOT NULL UNIQUE, -- of its lock file
	since INTEGER NOT NULL,
	gone  INTEGER NOT NULL DEFAULT 0 -- when it was seen to be gone; for good
) STRICT;

-- A state is checked by two lists: of one of three or more, SQLite makes a table for every row that is written.
CREATE TABLE operations (
	id           INTEGER PRIMARY KEY, -- milliseconds of its creation and a random part
	namespace    TEXT    NOT NULL,
	identity     ANY     NOT NULL,
	released     INTEGER NOT NULL DEFAULT 0, -- 0, or its own id once it is released
	fingerprint  ANY     NOT NULL,
	canonical    INTEGER NOT NULL,
	tool         TEXT    NOT NULL,
	state        TEXT    NOT NULL CHECK (state IN ('running', 'in_doubt') OR state IN ('done', 'free') OR state = 'released'),
	listed       INTEGER NOT NULL DEFAULT 0, -- 1: in operations_open
	token        ANY     NOT NULL,
	attempt      INTEGER NOT NULL,
	deadline     INTEGER NOT NULL,
	owner        INTEGER NOT NULL,
	settle       TEXT,
	settler      INTEGER NOT NULL DEFAULT 0,
	generation   INTEGER NOT NULL,
	key          ANY, -- NULL: the next claim fixes it
	key_since    INTEGER NOT NULL,
	unclear      INTEGER NOT NULL DEFAULT 0,
	by_person    INTEGER NOT NULL DEFAULT 0,
	undoes       INTEGER,
	repeat_of    INTEGER,
	resource     ANY,
	resource_out TEXT    NOT NULL,
	late         INTEGER NOT NULL DEFAULT 0,
	run          TEXT    NOT NULL, -- of the call that claimed it, like the next four
	turn         INTEGER NOT NULL,
	position     INTEGER NOT NULL,
	call_id      TEXT    NOT NULL,
	arguments    ANY     NOT NULL,
	conversation TEXT    NOT NULL,
	created      INTEGER NOT NULL,
	since        INTEGER NOT NULL,
	done_at      INTEGER NOT NULL DEFAULT 0,
	keep         INTEGER NOT NULL, -- how long it is known once it is done, 0: for ever
	retain       INTEGER NOT NULL, -- how long input and result are kept once it is done, 0: 90 days
	expires      INTEGER NOT NULL DEFAULT 0,
	settled_by   TEXT    NOT NULL DEFAULT '',
	settled_why  TEXT    NOT NULL DEFAULT '',
	input        BLOB,
	result       TEXT, -- NULL: none is kept
	CHECK ((state = 'released') = (released <> 0))
) STRICT;

-- One row of an identity is running, in_doubt, done or free: all these have released = 0, so a change among these states
-- does not touch the index.
CREATE UNIQUE INDEX operations_identity ON operations (namespace, identity, released);
-- What is running or in doubt: these, and what runs with an id from low on. So an operation that is claimed and soon
-- done costs this index nothing.
CREATE INDEX operations_open ON operations (namespace, state) WHERE listed = 1;
CREATE INDEX operations_resource ON operations (namespace, tool, resource) WHERE resource IS NOT NULL;
CREATE INDEX operations_undoes ON operations (undoes) WHERE undoes IS NOT NULL;

CREATE TABLE meta (
	id  INTEGER PRIMARY KEY CHECK (id = 1),
	low INTEGER NOT NULL -- no new operation has a lower id
) STRICT;
INSERT INTO meta (id, low) VALUES (1, 0);

-- How far each tenant is pruned: no operation with a lower id has, or will have, anything left to forget.
CREATE TABLE pruned (
	namespace TEXT    PRIMARY KEY,
	below     INTEGER NOT NULL
) STRICT;

-- The calls that meant an operation. Where call_id is NULL the call is the one that claimed the operation and the rest
-- stands there. Turn 0 has no places: its rows are numbered. An alias whose operation has been forgotten means nothing.
CREATE TABLE aliases (
	namespace   TEXT    NOT NULL,
	run         TEXT    NOT NULL,
	turn        INTEGER NOT NULL,
	position    INTEGER NOT NULL,
	operation   INTEGER NOT NULL,
	call_id     TEXT,
	tool        TEXT,
	arguments   ANY,
	fingerprint ANY,
	repeats     ANY, -- the identity that the call repeats, NULL where it was executed for the first time
	PRIMARY KEY (namespace, run, turn, position)
) STRICT, WITHOUT ROWID;

-- Who claims an operation for the first time has its call stand for it: one statement makes both rows or none.
CREATE TRIGGER operations_claimed AFTER INSERT ON operations WHEN new.turn > 0 BEGIN
	INSERT INTO aliases (namespace, run, turn, position, operation) VALUES (new.namespace, new.run, new.turn, new.position, new.id);
END;

CREATE INDEX aliases_repeats ON aliases (namespace, run, repeats) WHERE repeats IS NOT NULL;

-- The questions whether a call may run, numbered as they came, and what people answered.
CREATE TABLE approvals (
	number       INTEGER PRIMARY KEY,
	id           TEXT    NOT NULL UNIQUE,
	namespace    TEXT    NOT NULL,
	state        TEXT    NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'spent')),
	run          TEXT    NOT NULL,
	turn         INTEGER NOT NULL,
	position     INTEGER NOT NULL,
	call_id      TEXT    NOT NULL,
	tool         TEXT    NOT NULL,
	arguments    ANY     NOT NULL,
	fingerprint  ANY     NOT NULL,
	identity     ANY     NOT NULL,
	generation   INTEGER NOT NULL,
	conversation TEXT    NOT NULL,
	input        BLOB,
	digest       BLOB, -- of the input, by which two are compared
	repeat_of    TEXT    NOT NULL,
	asked        INTEGER NOT NULL,
	expires      INTEGER NOT NULL,
	decided      INTEGER NOT NULL DEFAULT 0,
	decided_by   TEXT    NOT NULL DEFAULT '',
	why          TEXT    NOT NULL DEFAULT '',
	operation    TEXT    NOT NULL DEFAULT '' -- that it was spent on
) STRICT;

CREATE INDEX approvals_place ON approvals (namespace, run, turn, position);
CREATE INDEX approvals_state ON approvals (namespace, state);

-- The runs of the journal. Who has one writes under its token, which is new whenever the run is taken.
CREATE TABLE runs (
	id           INTEGER PRIMARY KEY,
	namespace    TEXT    NOT NULL,
	run          TEXT    NOT NULL,
	conversation TEXT    NOT NULL,
	api          TEXT    NOT NULL,
	input        BLOB, -- a digest of the user's messages
	token        TEXT    NOT NULL,
	owner        INTEGER NOT NULL, -- 0: nobody has it, and the token is worth nothing
	finished     INTEGER NOT NULL DEFAULT 0,
	forgotten    INTEGER NOT NULL DEFAULT 0, -- what it said and did was erased
	created      INTEGER NOT NULL,
	ended        INTEGER NOT NULL DEFAULT 0, -- when it was finished
	CHECK (finished = 0 OR owner = 0),
	CHECK (forgotten = 0 OR finished = 1)
) STRICT;

CREATE UNIQUE INDEX runs_run ON runs (namespace, run);
CREATE INDEX runs_conversation ON runs (namespace, conversation) WHERE conversation <> '';
-- For what must not be forgotten while a run may still ask for it.
CREATE INDEX runs_open ON runs (namespace, run) WHERE finished = 0;

-- What the model answered and what it was told, byte for byte. An answer may be of 100 kB, and rows of that size are
-- slow without a rowid.
CREATE TABLE turns (
	run    INTEGER NOT NULL, -- runs.id
	number INTEGER NOT NULL,
	answer TEXT    NOT NULL,
	PRIMARY KEY (run, number)
) STRICT;

CREATE TABLE outputs (
	run       INTEGER NOT NULL, -- runs.id
	turn      INTEGER NOT NULL,
	position  INTEGER NOT NULL,
	content   TEXT    NOT NULL,
	verdict   TEXT    NOT NULL,
	operation TEXT    NOT NULL,
	PRIMARY KEY (run, turn, position)
) STRICT;

-- What people did, oldest first. The hash of each row covers it and the hash before it, see middleware.Act.
CREATE TABLE acts (
	number    INTEGER PRIMARY KEY,
	namespace TEXT    NOT NULL,
	at        INTEGER NOT NULL, -- microseconds since 1970
	kind      TEXT    NOT NULL,
	target    TEXT    NOT NULL,
	by        TEXT    NOT NULL,
	why       TEXT    NOT NULL,
	detail    TEXT    NOT NULL,
	hash      BLOB    NOT NULL
) STRICT;

CREATE TRIGGER acts_are_not_changed BEFORE UPDATE ON acts BEGIN SELECT RAISE(ABORT, 'acts are never changed'); END;
CREATE TRIGGER acts_are_not_removed BEFORE DELETE ON acts BEGIN SELECT RAISE(ABORT, 'acts are never removed'); END;
