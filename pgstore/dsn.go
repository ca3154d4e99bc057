package pgstore

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// faults is how pgx begins to say what is wrong with a connection string, the closer reason first. What follows may quote the
// string, and so the password in it.
func faults() []string {
	return []string{
		"forbidden NUL byte", "invalid keyword/value", `missing "=" after`, "unterminated quoted string",
		"end of string reached when looking for matching", "IPv6 host address may not be empty", "unexpected character",
		"missing key/value separator", "extra key/value separator", "invalid percent-encoded", "forbidden value", "unexpected spaces found",
		"unable to find service", "failed to read service file",
		"sslmode is invalid", "unable to read CA file", "unable to add CA to cert pool", `both "sslcert" and "sslkey" are required`,
		"unable to read sslkey", "failed to decode sslkey", "unable to find sslpassword", "unable to decrypt key", "unable to read cert", "unable to load cert",
		"invalid port", "could not match", "invalid connect_timeout", "invalid sslcertmode", "invalid require_auth",
		"unknown target_session_attrs value", "unknown channel_binding value",
		"min_protocol_version cannot be greater than max_protocol_version", "invalid min_protocol_version", "invalid max_protocol_version",
		"cannot parse statement_cache_capacity", "cannot parse description_cache_capacity", "invalid default_query_exec_mode",
		"pool_max_conns too small", "cannot parse pool_max_conns", "cannot parse pool_min_conns", "cannot parse pool_min_idle_conns",
		"cannot parse pool_max_conn_lifetime_jitter", "cannot parse pool_max_conn_lifetime", "cannot parse pool_max_conn_idle_time",
		"cannot parse pool_health_check_period", "cannot parse pool_ping_timeout",
		"failed to configure TLS", "failed to read service", "failed to parse as URL", "failed to parse as keyword/value",
	}
}

// fault says what is wrong with a connection string, in words that are never out of it.
func fault(err error) string {
	e, ok := errors.AsType[*pgconn.ParseConfigError](err)
	if !ok {
		return "it cannot be parsed"
	}
	text := e.Error() // cannot parse `…`: what (inner)
	outer, inner := text[strings.LastIndex(text, "`: ")+len("`: "):], ""
	if cause := e.Unwrap(); cause != nil {
		inner = cause.Error()
		text = strings.TrimSuffix(text, " ("+inner+")")
		outer = text[strings.LastIndex(text, "`: ")+len("`: "):]
	}
	for _, said := range faults() {
		switch {
		case !strings.HasPrefix(outer, said) && !strings.HasPrefix(inner, said):
		case errors.Is(err, fs.ErrNotExist):
			return said + ": there is no such file"
		default:
			return said
		}
	}
	return "it cannot be parsed"
}

// torn reports whether a URL has a bare @ beyond the one before its host. Then part of a password would be taken for the host
// or the database, and be told.
func torn(dsn string) bool {
	_, rest, url := strings.Cut(dsn, "://")
	if !url || !strings.HasPrefix(dsn, "postgres") {
		return false
	}
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		rest = rest[i+1:]
	}
	rest, _, _ = strings.Cut(rest, "?")
	return strings.Contains(rest, "@")
}
