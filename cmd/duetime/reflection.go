package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jhump/protoreflect/v2/grpcreflect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// reflectServices asks a server for the services that it has: all, or those named.
// It uses a connection of its own, without a policy.
func (a *app) reflectServices(
	ctx context.Context, target string, opts []grpc.DialOption, headers metadata.MD, names ...string,
) (*schema, error) {
	conn, err := grpc.NewClient(target, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %s; write host:port", target, oneLine(err.Error()))
	}
	defer closing(conn)

	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, headers), a.patience)
	defer cancel()

	// Many servers lack files that others of theirs import, mostly those of options.
	client := grpcreflect.NewClientAuto(ctx, conn,
		grpcreflect.WithAllowMissingFileDescriptors(), grpcreflect.WithFallbackResolvers(linked{}, protoregistry.GlobalTypes))
	defer client.Reset()

	sc, err := readServices(client, names)
	if err == nil {
		return sc, nil
	}

	if grpcreflect.IsElementNotFoundError(err) && len(names) == 1 {
		if all, lerr := client.ListServices(); lerr == nil {
			if slices.Contains(all, protoreflect.FullName(names[0])) {
				err = fmt.Errorf("service %s is listed, and not described", names[0])
			} else {
				return nil, noService(names[0], all)
			}
		}
	}

	return nil, failure{a.explainReflection(ctx, target, err)}
}

// noService tells of a service that is not there, and of those that are.
func noService[S ~string](name string, there []S) error {
	var names []string

	for _, s := range there {
		if !isReflection(string(s)) {
			names = append(names, string(s))
		}
	}

	return fmt.Errorf("there is no service %q; these are there: %s", name, visible(listed(names)))
}

// isReflection tells the services that one asks from those that one asks about.
func isReflection(service string) bool { return strings.HasPrefix(service, "grpc.reflection.") }

func readServices(client *grpcreflect.Client, names []string) (*schema, error) {
	services := names

	if len(names) == 0 {
		all, err := client.ListServices()
		if err != nil {
			return nil, err
		}

		for _, name := range all {
			services = append(services, string(name))
		}
	}

	sc := &schema{known: &protoregistry.Files{}}
	seen := map[string]bool{}

	for _, name := range services {
		if len(names) == 0 && isReflection(name) {
			continue
		}

		file, err := client.FileContainingSymbol(protoreflect.FullName(name))
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", name, err)
		}

		if err := register(sc.known, file); err != nil {
			return nil, err
		}

		if !seen[file.Path()] {
			seen[file.Path()] = true
			sc.files = append(sc.files, file)
		}
	}

	return sc, nil
}

// explainReflection says what to do when a server could not be asked.
func (a *app) explainReflection(ctx context.Context, target string, err error) error {
	why := oneLine(err.Error())
	code := codes.Unknown

	var answer interface{ GRPCStatus() *status.Status }
	if errors.As(err, &answer) {
		code, why = answer.GRPCStatus().Code(), oneLine(answer.GRPCStatus().Message())
	}

	const instead = "describe the services with --descriptor-set or --proto"

	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%s: interrupted", target)
	case ctx.Err() != nil || code == codes.DeadlineExceeded:
		return fmt.Errorf("%s: no answer from its reflection service within %s; see whether it runs, or %s",
			target, seconds(a.patience), instead)
	case code == codes.Unimplemented:
		return fmt.Errorf("%s has no reflection service (%s); %s", target, why, instead)
	case strings.Contains(why, "first record does not look like a TLS handshake"):
		return fmt.Errorf("%s speaks no TLS (%s); add -plaintext", target, why)
	case strings.Contains(why, "failed to verify certificate"):
		return fmt.Errorf("%s: its certificate is not trusted (%s); name its authority with -cacert, or add -insecure", target, why)
	case strings.Contains(why, "name resolver error"):
		return fmt.Errorf("%s: no server goes by this name (%s); see whether it is written right", target, why)
	case code == codes.Unavailable && !strings.Contains(why, "Error while dialing"):
		return fmt.Errorf("%s hung up (%s); if it expects TLS, leave -plaintext out, if a client's certificate, give -cert and -key",
			target, why)
	case code == codes.Unavailable:
		return fmt.Errorf("%s cannot be reached (%s); see whether it runs there", target, why)
	default:
		return fmt.Errorf("%s: its reflection service failed (%s); %s", target, why, instead)
	}
}
