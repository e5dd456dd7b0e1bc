package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// types finds messages by name, for google.protobuf.Any.
func (s *schema) types() *dynamicpb.Types { return dynamicpb.NewTypes(s.known) }

// requests reads the messages that -d gives.
func (c *callCommand) requests(ctx context.Context, sc *schema, method protoreflect.MethodDescriptor) ([]proto.Message, error) {
	text := []byte(c.data)

	if c.data == "@" {
		var err error
		if text, err = c.readInput(ctx); err != nil {
			return nil, err
		}
	}

	requests, err := parseRequests(text, method.Input(), sc.types())

	switch {
	case err != nil:
		return nil, fmt.Errorf("-d: %w", err)
	case method.IsStreamingClient():
		return requests, nil
	case len(requests) == 0:
		return []proto.Message{dynamicpb.NewMessage(method.Input())}, nil
	case len(requests) > 1:
		return nil, fmt.Errorf("-d has %d messages, and %s takes one; give one", len(requests), method.FullName())
	default:
		return requests, nil
	}
}

// parseRequests reads messages in JSON that stand one after the other.
func parseRequests(text []byte, d protoreflect.MessageDescriptor, types *dynamicpb.Types) ([]proto.Message, error) {
	var messages []proto.Message

	in := json.NewDecoder(bytes.NewReader(text))

	for {
		var one json.RawMessage

		err := in.Decode(&one)

		switch {
		case errors.Is(err, io.EOF):
			return messages, nil
		case err != nil:
			return nil, fmt.Errorf(`message %d is not JSON: %w; write it as {"field": value}, in single quotes in a shell`,
				len(messages)+1, err)
		}

		m := dynamicpb.NewMessage(d)
		if err := (protojson.UnmarshalOptions{Resolver: types}).Unmarshal(one, m); err != nil {
			return nil, fmt.Errorf("message %d is no %s: %s; it has the fields: %s",
				len(messages)+1, d.FullName(), protoText(err), fieldsOf(d))
		}

		messages = append(messages, m)
	}
}

// protoText returns the text of an error of package protobuf, which varies its
// spaces lest anyone compares it.
func protoText(err error) string {
	return strings.TrimPrefix(oneLine(strings.ReplaceAll(err.Error(), "\u00a0", " ")), "proto: ")
}

func fieldsOf(d protoreflect.MessageDescriptor) string {
	if d.Fields().Len() == 0 {
		return "none"
	}

	names := make([]string, d.Fields().Len())
	for i := range names {
		names[i] = d.Fields().Get(i).JSONName()
	}

	return strings.Join(names, ", ")
}

// messageJSON writes a message as JSON. It goes through encoding/json, since
// protojson varies its spaces.
func messageJSON(m proto.Message, types *dynamicpb.Types) (json.RawMessage, error) {
	text, err := protojson.MarshalOptions{Resolver: types}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("the answer cannot be written as JSON: %s", protoText(err))
	}

	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return nil, err
	}

	return b.Bytes(), nil
}
