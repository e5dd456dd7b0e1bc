package timeoutcfg

import (
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	duetimev1 "github.com/duetime/duetime/proto/duetime/v1"
)

// optionsFile is the file that a .proto file imports to use the options.
const optionsFile = "duetime/v1/options.proto"

// mistyped is said of an option whose declaration is not ours.
const (
	mistyped      = "is no duetime.v1.TimeoutOption there"
	adviseCompile = "compile the file again, with the " + optionsFile + " of this version"
)

// readOption returns the option of a service or a method as it was encoded. That
// is the one form that all descriptors have in common: the option may be of the
// generated type, of a dynamic one, or among the fields that nobody knew. why says
// what keeps it from being read.
func readOption(d protoreflect.Descriptor, option protoreflect.ExtensionDescriptor) (raw []byte, found bool, why string) {
	options := d.Options()
	if options == nil || !options.ProtoReflect().IsValid() || !importsOptions(d.ParentFile()) {
		return nil, false, ""
	}

	m := options.ProtoReflect()
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Number() == uninterpretedNumber && fd.Name() == "uninterpreted_option":
			if isUninterpreted(v, option) {
				why = "was not interpreted by what compiled the file"
			}
		case fd.FullName() != option.FullName(): // another's
		case fd.IsList() || fd.Message() == nil || fd.Message().FullName() != option.Message().FullName():
			why = mistyped
		default:
			encoded, err := proto.MarshalOptions{AllowPartial: true}.Marshal(v.Message().Interface())
			if err != nil {
				why = mistyped
			}

			raw, found = encoded, true
		}

		return true
	})

	if found || why != "" {
		return raw, found, why
	}

	raw, found, ok := fieldBytes(m.GetUnknown(), option.Number())
	if found && !ok {
		why = mistyped
	}

	return raw, found, why
}

// uninterpretedNumber is the number of uninterpreted_option in all options.
const uninterpretedNumber = 999

// isUninterpreted reports whether the option is among those that a compiler left
// as it had parsed them.
func isUninterpreted(v protoreflect.Value, option protoreflect.ExtensionDescriptor) bool {
	for i := range v.List().Len() {
		encoded, err := proto.MarshalOptions{AllowPartial: true}.Marshal(v.List().Get(i).Message().Interface())
		if err != nil {
			continue
		}

		var u descriptorpb.UninterpretedOption
		if err := (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(encoded, &u); err != nil || len(u.GetName()) == 0 {
			continue
		}

		// The name may be written as it is seen from the file's own package.
		first := u.GetName()[0]
		if first.GetIsExtension() && strings.HasSuffix("."+string(option.FullName()), "."+strings.TrimPrefix(first.GetNamePart(), ".")) {
			return true
		}
	}

	return false
}

// fieldBytes returns the contents of a message field among encoded fields. Of a
// message that is there in pieces they are the pieces, one after the other, as the
// encoding has it. found is false where the field is not there, ok where it is not
// encoded as a message.
func fieldBytes(encoded []byte, number protowire.Number) (contents []byte, found, ok bool) {
	ok = true

	eachField(encoded, func(n protowire.Number, wireType protowire.Type, value []byte) {
		if n != number {
			return
		}

		found = true

		piece, size := protowire.ConsumeBytes(value)
		if wireType != protowire.BytesType || size < 0 {
			ok = false

			return
		}

		contents = append(contents, piece...)
	})

	return contents, found, ok
}

// eachField calls do for every field of an encoded message.
func eachField(encoded []byte, do func(n protowire.Number, wireType protowire.Type, value []byte)) {
	for len(encoded) > 0 {
		n, wireType, tag := protowire.ConsumeTag(encoded)
		if tag < 0 {
			return
		}

		size := protowire.ConsumeFieldValue(n, wireType, encoded[tag:])
		if size < 0 {
			return
		}

		do(n, wireType, encoded[tag:tag+size])
		encoded = encoded[tag+size:]
	}
}

// importsOptions reports whether a file sees the options. If not, what has their
// number is somebody else's, even where a program that knows only ours took it for
// one of them: numbers of this range are free for everybody to use.
func importsOptions(file protoreflect.FileDescriptor) bool {
	seen := map[string]bool{file.Path(): true}
	if declareOptions(file.Imports(), false, seen) {
		return true
	}

	// "import option", of edition 2024 on, stands in a list that the interface does
	// not have yet.
	f, ok := file.(interface {
		OptionImports() protoreflect.FileImports
	})

	return ok && declareOptions(f.OptionImports(), false, seen)
}

// declareOptions reports whether one of the imports is the file of the options, or
// imports it for those who import itself.
func declareOptions(imports protoreflect.FileImports, publicOnly bool, seen map[string]bool) bool {
	for i := range imports.Len() {
		file := imports.Get(i)
		if publicOnly && !file.IsPublic || seen[file.Path()] {
			continue
		}

		seen[file.Path()] = true

		// Of a file that was not found there is only the path, and that depends on
		// the directory that the compiler was pointed to.
		if strings.HasSuffix("/"+file.Path(), "/"+optionsFile) || declareOptions(file.Imports(), true, seen) {
			return true
		}
	}

	return false
}

// limitOf returns the limit (0: unlimited) that an encoded option sets, or what is
// wrong with it.
func limitOf(raw []byte) (timeout time.Duration, reason, advice string) {
	const noLimit = ", or {unlimited: true} for no time limit"

	var option duetimev1.TimeoutOption
	if err := proto.Unmarshal(raw, &option); err != nil {
		return 0, mistyped, adviseCompile
	}

	d := option.GetTimeout()
	limits := 0

	for _, fd := range []string{keyTimeout, keyUnlimited} {
		number := option.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(fd)).Number()
		if _, found, _ := fieldBytes(raw, number); found {
			limits++
		}
	}

	switch {
	case len(option.ProtoReflect().GetUnknown()) > 0 || len(d.ProtoReflect().GetUnknown()) > 0:
		return 0, "has fields that this version of duetime does not know", "leave them out, or use a version that knows them"
	case limits > 1:
		return 0, "sets both timeout and unlimited", "keep one of the two"
	case option.GetUnlimited():
		return 0, "", ""
	case d == nil:
		return 0, "sets no limit", "write {timeout: {seconds: 3}}" + noLimit + ", or leave the option out"
	default:
		timeout, why := makeDuration(d.GetSeconds(), int64(d.GetNanos()))
		reason, _ = timeoutFault(why, durationText(d), "", true)

		switch {
		case why == durationTooLong:
			return 0, "says " + reason, "write at most {timeout: {seconds: " + strconv.FormatInt(maxSeconds, 10) +
				", nanos: " + strconv.FormatInt(maxNanos, 10) + "}}" + noLimit
		case why != durationGood:
			return 0, "says " + reason, "write a positive time such as {timeout: {seconds: 3}}" + noLimit + ", or leave the option out"
		case d.CheckValid() != nil:
			return 0, "says " + durationText(d) + notValid, adviseNanos
		default:
			return timeout, "", ""
		}
	}
}
