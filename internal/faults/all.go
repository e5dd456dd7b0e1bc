package faults

import "slices"

// All are all faults, by kind.
func All() []Fault {
	return slices.Concat(
		nameFaults(), dnsFaults(), connectionFaults(), tlsFaults(), slotFaults(), flowFaults(), networkFaults(),
		serverFaults(), streamFaults(), retryFaults(), clientFaults(), contextFaults(), processFaults(),
	)
}
