package testserver

import "context"

// AskedOnce are call credentials that add nothing and say when they are asked first.
type AskedOnce chan struct{}

// GetRequestMetadata says so, where anybody waits for it.
func (a AskedOnce) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	select {
	case a <- struct{}{}:
	default:
	}
	return map[string]string{}, nil
}

// RequireTransportSecurity says that there is nothing to protect.
func (AskedOnce) RequireTransportSecurity() bool { return false }
