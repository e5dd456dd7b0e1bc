package dubbo

import (
	"errors"
	"strings"
	"testing"
)

func TestProfileExpressions(t *testing.T) {
	t.Parallel()

	active := func(profile string) bool { return profile == "prod" || profile == "eu west" }

	for _, c := range []struct {
		list string
		want bool
		err  error
	}{
		{"prod", true, nil},
		{" prod ", true, nil},
		{"test", false, nil},
		{"eu west", true, nil},
		{"prod, test", true, nil},
		{"test,prod", true, nil},
		{"!prod", false, nil},
		{"!!prod", true, nil},
		{"prod & test", false, nil},
		{"prod|test", true, nil},
		{"prod & !(test | us)", true, nil},
		{"(prod & test) | eu west", true, nil},
		{"prod & test | us", false, errProfileMixed},
		{"prod)", false, errProfileEnd},
		{"prod !test", false, errProfileEnd},
		{"(prod", false, errProfileEnd},
		{"prod &", false, errProfileEnd},
		{"& prod", false, errProfileEnd},
		{"", false, errProfileEnd},
		{"prod,", false, errProfileEnd},
		{strings.Repeat("!", 100) + "prod", false, errProfileDepth},
		{strings.Repeat("p", 1100), false, errProfileLength},
	} {
		if got, err := acceptsAny(c.list, active); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("acceptsAny(%.40q) = %v, %v, want %v, %v", c.list, got, err, c.want, c.err)
		}
	}
}
