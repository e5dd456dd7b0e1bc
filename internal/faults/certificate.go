package faults

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/duetime/duetime/internal/testserver"
)

// serverName is what certificates are made out to.
const serverName = "bar.test"

// certified makes a certificate that vouches for itself.
func certified(tb testing.TB) *tls.Certificate {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatalf("faults: %v", err)
	}
	template := &x509.Certificate{
		// No two have one name, or a client would blame the signature.
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: rand.Text()}, DNSNames: []string{serverName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		tb.Fatalf("faults: %v", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatalf("faults: %v", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// trusting are the credentials of a client that expects a server of that name and
// trusts one certificate; nil: one that nobody has.
func trusting(tb testing.TB, cert *tls.Certificate, name string) credentials.TransportCredentials {
	tb.Helper()
	if cert == nil {
		cert = certified(tb)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	return credentials.NewClientTLSFromCert(pool, name)
}

// withCertificate makes a server speak TLS.
func withCertificate(cert *tls.Certificate) testserver.Option {
	return testserver.WithServerOptions(grpc.Creds(credentials.NewServerTLSFromCert(cert)))
}
