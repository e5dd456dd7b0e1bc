package timeoutcfg

import (
	"bytes"
	"encoding/json"
	"strings"
)

// StripTimeouts returns a gRPC service config without timeoutPolicy and without the
// timeouts of methodConfig, however they are written: also those that [Parse]
// refuses, and under keys in the wrong case, which gRPC-Go obeys. It is for a text
// of which gRPC is to have the rest all the same; where Parse succeeds,
// [Policy.ServiceConfig] says it more shortly. The error is Parse's for what is no JSON
// object.
func StripTimeouts(serviceConfigJSON []byte) (string, error) {
	if f, bad := checkText(serviceConfigJSON); bad {
		return "", newError([]fault{f}, serviceConfigJSON)
	}

	return string(rewritten(serviceConfigJSON, func(key string, value json.RawMessage) (json.RawMessage, bool) {
		switch {
		case strings.EqualFold(key, keyTimeoutPolicy):
			return nil, false
		case strings.EqualFold(key, keyMethodConfig):
			return withoutEntryTimeouts(value), true
		default:
			return value, true
		}
	})), nil
}

// withoutEntryTimeouts strips the entries of a methodConfig; what is none stays for
// gRPC to refuse.
func withoutEntryTimeouts(list json.RawMessage) json.RawMessage {
	var entries []json.RawMessage
	if json.Unmarshal(list, &entries) != nil || entries == nil {
		return list
	}

	for i, entry := range entries {
		if bytes.HasPrefix(bytes.TrimSpace(entry), []byte("{")) {
			entries[i] = rewritten(entry, func(key string, value json.RawMessage) (json.RawMessage, bool) {
				return value, !strings.EqualFold(key, keyTimeout)
			})
		}
	}

	return append(append([]byte("["), bytes.Join(rawBytes(entries), []byte(","))...), ']')
}

// rewritten returns the object, which is valid JSON, with each member as member
// returns it, in order; those for which it reports false are left out.
func rewritten(object json.RawMessage, member func(key string, value json.RawMessage) (json.RawMessage, bool)) json.RawMessage {
	in := json.NewDecoder(bytes.NewReader(object))
	out := bytes.NewBufferString("{")

	for _, err := in.Token(); err == nil && in.More(); { // the errors cannot be: the text was checked
		var key json.Token
		if key, err = in.Token(); err != nil {
			break
		}

		var value json.RawMessage
		if err = in.Decode(&value); err != nil {
			break
		}

		name, _ := key.(string)
		if value, ok := member(name, value); ok {
			if out.Len() > 1 {
				out.WriteByte(',')
			}

			out.WriteString(quoted(name))
			out.WriteByte(':')
			out.Write(value)
		}
	}

	return append(out.Bytes(), '}')
}

// quoted returns a string as JSON.
func quoted(s string) string {
	var b bytes.Buffer

	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)

	_ = enc.Encode(s) //nolint:errchkjson // a string can always be encoded

	return strings.TrimSpace(b.String())
}

func rawBytes(messages []json.RawMessage) [][]byte {
	raw := make([][]byte, len(messages))
	for i, m := range messages {
		raw[i] = m
	}

	return raw
}
