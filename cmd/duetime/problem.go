package main

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/duetime/duetime/timeoutcfg"
)

// problem is one thing that is wrong with a file, or hardly meant in it.
type problem struct {
	File string `json:"file,omitempty"` // none: of no one file
	// Line and Column count from 1; 0: the file as a whole.
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"` // in the JSON
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
}

// kindProblem is what keeps a policy from being read; all else are findings in one
// that can be.
const kindProblem = "problem"

// problems are several of them.
type problems []problem

// problemsOf takes an error of Parse apart.
func problemsOf(file string, err error) problems {
	var bad *timeoutcfg.Error
	if !errors.As(err, &bad) {
		return problems{{File: file, Kind: kindProblem, Message: oneLine(err.Error())}}
	}

	found := make(problems, len(bad.Problems))
	for i, p := range bad.Problems {
		place := file
		if p.File != "" { // of an option
			place = p.File
		}

		found[i] = problem{
			File: place, Line: p.Position.Line, Column: p.Position.Column,
			Path: p.Path, Kind: kindProblem, Message: p.Reason, Advice: p.Advice,
		}
	}

	return found
}

// String returns "file:line:column: path: kind: message; advice" without what is
// not known.
func (p problem) String() string { return p.styled(false) }

func (p problem) styled(s style) string {
	place := p.File
	if p.Line > 0 {
		place += ":" + strconv.Itoa(p.Line)
	}

	if p.Column > 0 {
		place += ":" + strconv.Itoa(p.Column)
	}

	text := ""
	if place != "" {
		text = s.bold(place+":") + " "
	}

	if p.Path != "" {
		text += p.Path + ": "
	}

	if p.Kind == kindProblem {
		text += s.red(p.Kind) + ": "
	} else {
		text += p.Kind + ": "
	}

	text += p.Message
	if p.Advice != "" {
		text += "; " + p.Advice
	}

	return text
}

// text lists the problems, one a line.
func (ps problems) text(s style) string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.styled(s) + "\n")
	}

	return b.String()
}

// sort puts what is in one file into the order of its text. The files stay in
// theirs.
func (ps problems) sort(files []string) {
	rank := map[string]int{}
	for i, file := range slices.Backward(files) {
		rank[file] = i // its first
	}

	slices.SortStableFunc(ps, func(a, b problem) int {
		return cmp.Or(
			cmp.Compare(rank[a.File], rank[b.File]),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// refuse reports the problems of policies that something else was to be done with.
func (a *app) refuse(ps problems) error {
	a.complain(ps.text(a.styleFor(a.err)))

	return errFound
}
