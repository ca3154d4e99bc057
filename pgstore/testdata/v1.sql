CREATE SCHEMA toolonce_v1;
CREATE FUNCTION toolonce_v1.acts_stay() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'acts are never changed nor removed'; END $$;
CREATE TABLE toolonce_v1.acts (
    number bigint NOT NULL,
    namespace text NOT NULL,
    at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    target text NOT NULL,
    by text NOT NULL,
    why text NOT NULL,
    detail text NOT NULL,
    hash bytea NOT NULL
);
CREATE TABLE toolonce_v1.aliases (
    namespace text NOT NULL,
    run text NOT NULL,
    turn bigint NOT NULL,
    "position" bigint NOT NULL,
    operation bigint NOT NULL,
    call_id text NOT NULL,
    tool text NOT NULL,
    arguments bytea NOT NULL,
    fingerprint bytea NOT NULL,
    repeats bytea
);
CREATE TABLE toolonce_v1.approvals (
    number bigint NOT NULL,
    id text NOT NULL,
    namespace text NOT NULL,
    state text NOT NULL,
    run text NOT NULL,
    turn bigint NOT NULL,
    "position" bigint NOT NULL,
    call_id text NOT NULL,
    tool text NOT NULL,
    arguments bytea NOT NULL,
    fingerprint bytea NOT NULL,
    identity bytea NOT NULL,
    generation integer NOT NULL,
    conversation text NOT NULL,
    input bytea,
    digest bytea,
    repeat_of text NOT NULL,
    asked timestamp with time zone NOT NULL,
    expires timestamp with time zone NOT NULL,
    decided timestamp with time zone,
    decided_by text DEFAULT ''::text NOT NULL,
    why text DEFAULT ''::text NOT NULL,
    operation text DEFAULT ''::text NOT NULL,
    CONSTRAINT approvals_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text, 'spent'::text])))
);
ALTER TABLE toolonce_v1.approvals ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME toolonce_v1.approvals_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE toolonce_v1.meta (
    id integer NOT NULL,
    application text NOT NULL,
    version integer NOT NULL,
    CONSTRAINT meta_application_check CHECK ((application = 'toolonce'::text)),
    CONSTRAINT meta_id_check CHECK ((id = 1))
);
CREATE TABLE toolonce_v1.operations (
    id bigint NOT NULL,
    namespace text NOT NULL,
    identity bytea NOT NULL,
    released bigint DEFAULT 0 NOT NULL,
    fingerprint bytea NOT NULL,
    canonical integer NOT NULL,
    tool text NOT NULL,
    state text NOT NULL,
    token text NOT NULL,
    attempt integer NOT NULL,
    deadline timestamp with time zone NOT NULL,
    owner bigint NOT NULL,
    settle text,
    settler bigint DEFAULT 0 NOT NULL,
    generation integer NOT NULL,
    key bytea,
    key_since timestamp with time zone NOT NULL,
    unclear boolean DEFAULT false NOT NULL,
    by_person boolean DEFAULT false NOT NULL,
    undoes bigint,
    repeat_of bigint,
    resource bytea,
    resource_out text NOT NULL,
    late boolean DEFAULT false NOT NULL,
    run text NOT NULL,
    turn bigint NOT NULL,
    "position" bigint NOT NULL,
    call_id text NOT NULL,
    arguments bytea NOT NULL,
    conversation text NOT NULL,
    created timestamp with time zone NOT NULL,
    since timestamp with time zone NOT NULL,
    done_at timestamp with time zone,
    keep interval,
    retain interval,
    expires timestamp with time zone,
    settled_by text DEFAULT ''::text NOT NULL,
    settled_why text DEFAULT ''::text NOT NULL,
    input bytea,
    result text,
    CONSTRAINT operations_check CHECK (((state = 'released'::text) = (released <> 0))),
    CONSTRAINT operations_state_check CHECK ((state = ANY (ARRAY['running'::text, 'in_doubt'::text, 'done'::text, 'free'::text, 'released'::text])))
);
CREATE TABLE toolonce_v1.outputs (
    run bigint NOT NULL,
    turn bigint NOT NULL,
    "position" bigint NOT NULL,
    content text NOT NULL,
    verdict text NOT NULL,
    operation text NOT NULL
);
CREATE TABLE toolonce_v1.owners (
    id bigint NOT NULL,
    name text NOT NULL,
    since timestamp with time zone NOT NULL,
    beat timestamp with time zone NOT NULL,
    overdue interval NOT NULL,
    gone timestamp with time zone
)
WITH (fillfactor='50');
ALTER TABLE toolonce_v1.owners ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME toolonce_v1.owners_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE toolonce_v1.pruned (
    namespace text NOT NULL,
    below bigint NOT NULL
);
CREATE TABLE toolonce_v1.runs (
    id bigint NOT NULL,
    namespace text NOT NULL,
    run text NOT NULL,
    conversation text NOT NULL,
    api text NOT NULL,
    input bytea,
    token text NOT NULL,
    owner bigint NOT NULL,
    finished boolean DEFAULT false NOT NULL,
    forgotten boolean DEFAULT false NOT NULL,
    created timestamp with time zone NOT NULL,
    ended timestamp with time zone,
    CONSTRAINT runs_check CHECK (((NOT finished) OR (owner = 0))),
    CONSTRAINT runs_check1 CHECK (((NOT forgotten) OR finished))
);
ALTER TABLE toolonce_v1.runs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME toolonce_v1.runs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE toolonce_v1.turns (
    run bigint NOT NULL,
    number bigint NOT NULL,
    answer text NOT NULL
);
INSERT INTO toolonce_v1.acts VALUES (1, 'acme', '2026-11-30 00:19:44.227283+00', 'happened', 'op_sm6a0089jmrl', 'ann', 'seen at the provider', '', '\xeeb1befdbc97381aa580ef15f5c492d713bc3bf686bbacbd10033173a7b03d79');
INSERT INTO toolonce_v1.acts VALUES (2, 'acme', '2026-11-30 00:19:44.238559+00', 'approved', 'O2UMJTQWUKMWXFWGETEL7VWSPM', 'bob', 'the photos show it', '', '\x6a12235518a7d2346f5a71cbcc24d7d8bbcd50daeddddf761f1820a194dcf44e');
INSERT INTO toolonce_v1.aliases VALUES ('acme', 'run-1', 1, 0, 3766480764590223665, 'call_1', 'refund', '\xa333333333333333333333333333333333333333333333333333333333333333', '\xa444444444444444444444444444444444444444444444444444444444444444', NULL);
INSERT INTO toolonce_v1.aliases VALUES ('acme', 'run-1', 2, 0, 3766480764595665332, 'call_1', 'refund', '\xa333333333333333333333333333333333333333333333333333333333333333', '\xa444444444444444444444444444444444444444444444444444444444444444', NULL);
INSERT INTO toolonce_v1.aliases VALUES ('acme', 'run-1', 3, 0, 3766480764597358570, 'call_1', 'refund', '\xa333333333333333333333333333333333333333333333333333333333333333', '\xa444444444444444444444444444444444444444444444444444444444444444', NULL);
INSERT INTO toolonce_v1.aliases VALUES ('acme', 'run-1', 4, 0, 3766480764601395799, 'call_1', 'refund', '\xa333333333333333333333333333333333333333333333333333333333333333', '\xa444444444444444444444444444444444444444444444444444444444444444', NULL);
INSERT INTO toolonce_v1.aliases VALUES ('acme', 'run-1', 5, 0, 3766480764603712257, 'call_1', 'refund', '\xa333333333333333333333333333333333333333333333333333333333333333', '\xa444444444444444444444444444444444444444444444444444444444444444', NULL);
INSERT INTO toolonce_v1.aliases VALUES ('acme', 'run-1', 6, 0, 3766480764621232763, 'call_1', 'book', '\xa333333333333333333333333333333333333333333333333333333333333333', '\xa444444444444444444444444444444444444444444444444444444444444444', NULL);
INSERT INTO toolonce_v1.aliases VALUES ('acme', 'run-1', 7, 0, 3766480764625704205, 'call_1', 'cancel', '\xa333333333333333333333333333333333333333333333333333333333333333', '\xa444444444444444444444444444444444444444444444444444444444444444', NULL);
INSERT INTO toolonce_v1.aliases VALUES ('acme', 'run-1', 20, 0, 3766480764590223665, 'call_2', 'refund', '\xa333333333333333333333333333333333333333333333333333333333333333', '\xa444444444444444444444444444444444444444444444444444444444444444', '\xa111111111111111111111111111111111111111111111111111111111111111');
INSERT INTO toolonce_v1.approvals OVERRIDING SYSTEM VALUE VALUES (1, 'O2UMJTQWUKMWXFWGETEL7VWSPM', 'acme', 'approved', 'run-1', 7, 0, 'call_1', 'cancel', '\xa333333333333333333333333333333333333333333333333333333333333333', '\xa444444444444444444444444444444444444444444444444444444444444444', '\xa999999999999999999999999999999999999999999999999999999999999999', 0, '', '\x7b226f72646572223a2231303039227d', '\x528aa2da305ef6f667b1546b713fef2837c78c000139fb4f148611e997f4adca', '', '2026-11-30 00:19:44.235842+00', '2027-01-10 16:19:44.235842+00', '2026-11-30 00:19:44.238559+00', 'bob', 'the photos show it', '');
INSERT INTO toolonce_v1.meta VALUES (1, 'toolonce', 1);
INSERT INTO toolonce_v1.operations VALUES (3766480764590223665, 'acme', '\xa111111111111111111111111111111111111111111111111111111111111111', 0, '\xa444444444444444444444444444444444444444444444444444444444444444', 1, 'refund', 'done', 'token-b', 1, '2026-11-30 00:19:44.214416+00', 1, NULL, 0, 0, '\xbb64f565be64c7fa03f7afba2ffd27184ec1c95336135e17266205b00ce862c6', '2026-11-30 00:19:44.214415+00', false, false, NULL, NULL, NULL, '', false, 'run-1', 1, 0, 'call_1', '\xa333333333333333333333333333333333333333333333333333333333333333', 'chat-7', '2026-11-30 00:19:44.214415+00', '2026-11-30 00:19:44.216217+00', '2026-11-30 00:19:44.216217+00', NULL, NULL, NULL, '', '', '\x7b226f72646572223a2231303031227d', '{"id":"re_1"}');
INSERT INTO toolonce_v1.operations VALUES (3766480764595665332, 'acme', '\xa222222222222222222222222222222222222222222222222222222222222222', 0, '\xa444444444444444444444444444444444444444444444444444444444444444', 1, 'refund', 'running', 'token-c', 1, '2026-11-30 00:19:44.2169+00', 1, NULL, 0, 0, '\x4b61f83d255ec5fae2dee245bbb9b87eb4b1e13a4743b4cc13f430dad6f44fa5', '2026-11-30 00:19:44.216899+00', false, false, NULL, NULL, NULL, '', false, 'run-1', 2, 0, 'call_1', '\xa333333333333333333333333333333333333333333333333333333333333333', 'chat-7', '2026-11-30 00:19:44.216899+00', '2026-11-30 00:19:44.216899+00', NULL, NULL, NULL, NULL, '', '', '\x7b226f72646572223a2231303031227d', NULL);
INSERT INTO toolonce_v1.operations VALUES (3766480764597358570, 'acme', '\xa333333333333333333333333333333333333333333333333333333333333333', 0, '\xa444444444444444444444444444444444444444444444444444444444444444', 1, 'refund', 'in_doubt', 'token-d', 1, '2026-11-30 00:19:44.217701+00', 1, NULL, 0, 0, '\x8da1a4069bc456dfc99895e03170718a49ac9651cb68de7679bd233d9c97e607', '2026-11-30 00:19:44.2177+00', true, false, NULL, NULL, NULL, '', false, 'run-1', 3, 0, 'call_1', '\xa333333333333333333333333333333333333333333333333333333333333333', 'chat-7', '2026-11-30 00:19:44.2177+00', '2026-11-30 00:19:44.218755+00', NULL, NULL, NULL, NULL, '', '', '\x7b226f72646572223a2231303031227d', NULL);
INSERT INTO toolonce_v1.operations VALUES (3766480764601395799, 'acme', '\xa444444444444444444444444444444444444444444444444444444444444444', 0, '\xa444444444444444444444444444444444444444444444444444444444444444', 1, 'refund', 'free', 'token-e', 1, '2026-11-30 00:19:44.219321+00', 1, NULL, 0, 0, '\x78589676a6fb912a453bbda270959d0f9e293a0f25cc0c1c77b48bbaf209a661', '2026-11-30 00:19:44.21932+00', false, false, NULL, NULL, NULL, '', false, 'run-1', 4, 0, 'call_1', '\xa333333333333333333333333333333333333333333333333333333333333333', 'chat-7', '2026-11-30 00:19:44.21932+00', '2026-11-30 00:19:44.220306+00', NULL, NULL, NULL, NULL, '', '', '\x7b226f72646572223a2231303031227d', NULL);
INSERT INTO toolonce_v1.operations VALUES (3766480764603712257, 'acme', '\xa555555555555555555555555555555555555555555555555555555555555555', 0, '\xa444444444444444444444444444444444444444444444444444444444444444', 1, 'refund', 'done', 'token-f', 1, '2026-11-30 00:19:44.220844+00', 1, NULL, 0, 0, '\x931a906ff8cc892a15dfc4b624955f4947a989ea571afc2bff4e7d3db50d6417', '2026-11-30 00:19:44.220843+00', true, false, NULL, NULL, NULL, '', false, 'run-1', 5, 0, 'call_1', '\xa333333333333333333333333333333333333333333333333333333333333333', 'chat-7', '2026-11-30 00:19:44.220843+00', '2026-11-30 00:19:44.227283+00', '2026-11-30 00:19:44.227283+00', NULL, NULL, NULL, 'ann', 'seen at the provider', '\x7b226f72646572223a2231303031227d', '{"id":"re_1"}');
INSERT INTO toolonce_v1.operations VALUES (3766480764625704205, 'acme', '\xa777777777777777777777777777777777777777777777777777777777777777', 0, '\xa444444444444444444444444444444444444444444444444444444444444444', 1, 'cancel', 'done', 'token-h', 1, '2026-11-30 00:19:44.231195+00', 1, NULL, 0, 0, '\xb638391b9e6f8e4228ff4179ffa4a486ee5ea8d3ac3df0444eab4bb257b08892', '2026-11-30 00:19:44.231194+00', false, false, 3766480764621232763, NULL, NULL, '', false, 'run-1', 7, 0, 'call_1', '\xa333333333333333333333333333333333333333333333333333333333333333', 'chat-7', '2026-11-30 00:19:44.231194+00', '2026-11-30 00:19:44.232849+00', '2026-11-30 00:19:44.232849+00', NULL, NULL, NULL, '', '', '\x7b226f72646572223a2231303031227d', '{"id":"re_1"}');
INSERT INTO toolonce_v1.operations VALUES (3766480764621232763, 'acme', '\xa666666666666666666666666666666666666666666666666666666666666666', 3766480764621232763, '\xa444444444444444444444444444444444444444444444444444444444444444', 1, 'book', 'released', 'token-g', 1, '2026-11-30 00:19:44.229118+00', 1, NULL, 0, 0, '\xc2b2a15e286f987dc8541aa9617e8d8a009427f0e7196c537025d03a299784d1', '2026-11-30 00:19:44.229117+00', false, false, NULL, NULL, NULL, '', false, 'run-1', 6, 0, 'call_1', '\xa333333333333333333333333333333333333333333333333333333333333333', 'chat-7', '2026-11-30 00:19:44.229117+00', '2026-11-30 00:19:44.232849+00', '2026-11-30 00:19:44.23014+00', NULL, NULL, NULL, '', '', '\x7b226f72646572223a2231303031227d', '{"id":"re_1"}');
INSERT INTO toolonce_v1.outputs VALUES (1, 1, 0, '{"id":"re_1"}', 'executed', 'op_sm6a0081iiwh');
INSERT INTO toolonce_v1.outputs VALUES (2, 1, 0, '{"id":"re_1"}', 'executed', 'op_sm6a0081iiwh');
INSERT INTO toolonce_v1.owners OVERRIDING SYSTEM VALUE VALUES (1, 'G5WBJ2QUPBQQJ6OP4EYV24DRSO', '2026-11-30 00:19:44.213145+00', '2026-11-30 00:19:44.213145+00', '00:00:20', '2026-11-30 00:19:44.258377+00');
INSERT INTO toolonce_v1.runs OVERRIDING SYSTEM VALUE VALUES (1, 'acme', 'run-1', 'chat-7', 'chat', '\x646967657374206f662072756e2d31', 'CAFTNRSA6AHZHKT6SKWUBGK53N', 0, false, false, '2026-11-30 00:19:44.240808+00', NULL);
INSERT INTO toolonce_v1.runs OVERRIDING SYSTEM VALUE VALUES (2, 'acme', 'run-2', 'chat-7', 'chat', '\x646967657374206f662072756e2d32', 'RT2TJIFMLMITOA5WEDCFEJR6VS', 0, true, false, '2026-11-30 00:19:44.248945+00', '2026-11-30 00:19:44.248945+00');
INSERT INTO toolonce_v1.turns VALUES (1, 1, '{"turn":1}');
INSERT INTO toolonce_v1.turns VALUES (2, 1, '{"turn":1}');
INSERT INTO toolonce_v1.turns VALUES (2, 2, '{"turn":2}');
SELECT pg_catalog.setval('toolonce_v1.approvals_number_seq', 1, true);
SELECT pg_catalog.setval('toolonce_v1.owners_id_seq', 1, true);
SELECT pg_catalog.setval('toolonce_v1.runs_id_seq', 2, true);
ALTER TABLE ONLY toolonce_v1.acts
    ADD CONSTRAINT acts_pkey PRIMARY KEY (number);
ALTER TABLE ONLY toolonce_v1.aliases
    ADD CONSTRAINT aliases_pkey PRIMARY KEY (namespace, run, turn, "position");
ALTER TABLE ONLY toolonce_v1.approvals
    ADD CONSTRAINT approvals_id_key UNIQUE (id);
ALTER TABLE ONLY toolonce_v1.approvals
    ADD CONSTRAINT approvals_pkey PRIMARY KEY (number);
ALTER TABLE ONLY toolonce_v1.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (id);
ALTER TABLE ONLY toolonce_v1.operations
    ADD CONSTRAINT operations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY toolonce_v1.outputs
    ADD CONSTRAINT outputs_pkey PRIMARY KEY (run, turn, "position");
ALTER TABLE ONLY toolonce_v1.owners
    ADD CONSTRAINT owners_name_key UNIQUE (name);
ALTER TABLE ONLY toolonce_v1.owners
    ADD CONSTRAINT owners_pkey PRIMARY KEY (id);
ALTER TABLE ONLY toolonce_v1.pruned
    ADD CONSTRAINT pruned_pkey PRIMARY KEY (namespace);
ALTER TABLE ONLY toolonce_v1.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY toolonce_v1.turns
    ADD CONSTRAINT turns_pkey PRIMARY KEY (run, number);
CREATE INDEX aliases_repeats ON toolonce_v1.aliases USING btree (namespace, run, repeats) WHERE (repeats IS NOT NULL);
CREATE INDEX approvals_place ON toolonce_v1.approvals USING btree (namespace, run, turn, "position");
CREATE INDEX approvals_state ON toolonce_v1.approvals USING btree (namespace, state);
CREATE UNIQUE INDEX operations_identity ON toolonce_v1.operations USING btree (namespace, identity, released);
CREATE INDEX operations_open ON toolonce_v1.operations USING btree (namespace, since) WHERE (state = ANY (ARRAY['running'::text, 'in_doubt'::text]));
CREATE INDEX operations_resource ON toolonce_v1.operations USING btree (namespace, tool, resource) WHERE (resource IS NOT NULL);
CREATE UNIQUE INDEX operations_undoes ON toolonce_v1.operations USING btree (undoes) WHERE ((undoes IS NOT NULL) AND (state = ANY (ARRAY['running'::text, 'in_doubt'::text])));
CREATE INDEX runs_conversation ON toolonce_v1.runs USING btree (namespace, conversation) WHERE (conversation <> ''::text);
CREATE INDEX runs_open ON toolonce_v1.runs USING btree (namespace, run) WHERE (NOT finished);
CREATE UNIQUE INDEX runs_run ON toolonce_v1.runs USING btree (namespace, run);
CREATE TRIGGER acts_stay BEFORE DELETE OR UPDATE OR TRUNCATE ON toolonce_v1.acts FOR EACH STATEMENT EXECUTE FUNCTION toolonce_v1.acts_stay();
