package interceptor

import (
	"fmt"
	"testing"
)

// verdicts says for every combination of evidence what is to be concluded. The
// letters stand for the bits in the order of evidenceBits; "?" is either.
var verdicts = []struct {
	bits  string
	side  Side
	phase Phase
	why   string
}{
	{"0?????????", ClientSide, PhaseNotStarted, "no time was left at the beginning"},
	{"11????????", ServerSide, PhaseAnswered, "the server said so itself"},
	{"101???????", ClientSide, PhaseConnecting, "the call waited to retry, whatever an earlier attempt had sent"},
	{"1001??????", ClientSide, PhaseConnecting, "gRPC waited for a connection to send again"},
	{"10001????1", ClientSide, PhaseSending, "the client owed the server messages on an open stream"},
	{"10001????0", ClientSide, PhaseConnecting, "the client owed the server messages and had no stream for them"},
	{"100001????", ClientSide, PhaseReceiving, "the client had a part of the answer and was about something else"},
	{"10000011??", ServerSide, PhaseReceiving, "the request had left and the answer was coming"},
	{"10000010??", ServerSide, PhaseWaiting, "the request had left"},
	{"1000000?1?", ServerSide, PhaseWaiting, "a stream was there and nobody watched the request"},
	{"1000000?01", ClientSide, PhaseSending, "the request had a stream and did not leave"},
	{"1000000?00", ClientSide, PhaseConnecting, "there was no stream"},
}

func evidenceBits(e *evidence) []*bool {
	return []*bool{&e.started, &e.answered, &e.refused, &e.unready, &e.owing, &e.busy, &e.sent, &e.answering, &e.unwatched, &e.stream}
}

func matches(pattern string, e evidence) bool {
	for i, bit := range evidenceBits(&e) {
		if want := pattern[i]; want != '?' && (want == '1') != *bit {
			return false
		}
	}
	return true
}

func TestClassifyEveryCombination(t *testing.T) {
	t.Parallel()
	bits := len(evidenceBits(new(evidence)))
	used := make([]bool, len(verdicts))
	for n := range 1 << bits {
		var e evidence
		for i, bit := range evidenceBits(&e) {
			*bit = n&(1<<i) != 0
		}
		t.Run(fmt.Sprintf("%+v", e), func(t *testing.T) {
			row := -1
			for i, v := range verdicts {
				if !matches(v.bits, e) {
					continue
				}
				if row >= 0 {
					t.Fatalf("rows %s and %s both speak of it", verdicts[row].bits, v.bits)
				}
				row, used[i] = i, true
			}
			if row < 0 {
				t.Fatal("no row speaks of it")
			}
			want := verdicts[row]
			if side, phase := classify(e); side != want.side || phase != want.phase {
				t.Errorf("classify = %v, %v; want %v, %v: %s", side, phase, want.side, want.phase, want.why)
			}
		})
	}
	for i, v := range verdicts {
		if !used[i] {
			t.Errorf("row %s speaks of nothing", v.bits)
		}
	}
}

func TestPhaseRefinesSide(t *testing.T) {
	t.Parallel()
	for _, v := range verdicts {
		// Receiving is either's: the user of a stream may read slowly.
		if client := v.phase <= PhaseSending; client != (v.side == ClientSide) && v.phase != PhaseReceiving {
			t.Errorf("phase %v stands at the %v side", v.phase, v.side)
		}
	}
}
