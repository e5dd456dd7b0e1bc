package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"
)

// serviceFlags say where the services are described: in files, or by a server.
type serviceFlags struct {
	schema  schemaFlags
	reflect string
	dial    dialFlags
}

func (s *serviceFlags) add(flags *pflag.FlagSet) {
	s.schema.add(flags)
	flags.StringVar(&s.reflect, "reflect", "", "`HOST:PORT` of a server with reflection that has the services")
	s.dial.add(flags)
}

// given tells whether the services are described at all.
func (s *serviceFlags) given() bool {
	return s.schema.given() || s.reflect != ""
}

// read returns nil if no services are to be known. A server is asked for those
// named, or for all.
func (s *serviceFlags) read(ctx context.Context, a *app, names ...string) (*schema, error) {
	sc, err := s.schema.read(ctx, a)

	switch {
	case err != nil:
		return nil, err
	case s.reflect == "" && s.dial != (dialFlags{}):
		return nil, errors.New("the flags for TLS are for --reflect, which is missing")
	case s.reflect == "":
		return sc, nil
	case sc != nil:
		return nil, errors.New("--reflect describes the services, and so does --proto or --descriptor-set; leave one out")
	}

	opts, err := s.dial.options(ctx, a)
	if err != nil {
		return nil, err
	}

	return a.reflectServices(ctx, s.reflect, opts, nil, names...)
}
