package main

import (
	"strings"
	"unicode/utf8"
)

// table prints rows below a head. Cells are escaped, so nothing in them can pass for a column or a line. Without a person who
// reads along there is a tab between two columns, for other programs.
func (e *env) table(head []string, rows [][]string) {
	widths := make([]int, len(head))
	for i, row := range rows {
		for k, cell := range row {
			rows[i][k] = escape(cell)
			widths[k] = max(widths[k], utf8.RuneCountInString(rows[i][k]), len(head[k]))
		}
	}
	line := func(row []string, paint func(string) string) {
		if !e.tty {
			e.printf("%s\n", strings.Join(row, "\t"))
			return
		}
		var b strings.Builder
		for k, cell := range row {
			b.WriteString(paint(cell))
			if k < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[k]+2-utf8.RuneCountInString(cell)))
			}
		}
		e.printf("%s\n", strings.TrimRight(b.String(), " "))
	}
	line(head, func(s string) string { return e.paint("1", s) })
	for _, row := range rows {
		line(row, e.tint)
	}
}

// tint gives the words that say how things are their colour.
func (e *env) tint(s string) string {
	switch s {
	case "in_doubt", "outcome_unknown", "orphan", "pending":
		return e.paint("33", s)
	case "done", "executed", "replayed", "approved", "finished":
		return e.paint("32", s)
	case "conflict", "failed", "refused", "denied", "missing":
		return e.paint("31", s)
	}
	return s
}

// paint sets a text in a colour, where there are colours.
func (e *env) paint(code, s string) string {
	if !e.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
