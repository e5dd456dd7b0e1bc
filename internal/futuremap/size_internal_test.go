package futuremap

import (
	"testing"
	"unsafe"
)

// TestShardFillsCacheLines: shards are next to each other, and processors use them at
// the same time.
func TestShardFillsCacheLines(t *testing.T) {
	t.Parallel()
	const line, word = 64, 8
	if size := unsafe.Sizeof(shard[*int]{}); unsafe.Sizeof(uintptr(0)) == word && size%line != 0 {
		t.Errorf("a shard has %d bytes", size)
	}
}
