package testserver

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
)

// ServerName is what certificates are made out to.
const ServerName = "bar.test"

// Certified makes a certificate that vouches for itself.
func Certified(tb testing.TB) *tls.Certificate {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatalf("testserver: key: %v", err)
	}
	template := &x509.Certificate{
		// No two have one name, or a client would blame the signature.
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: rand.Text()}, DNSNames: []string{ServerName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		tb.Fatalf("testserver: certificate: %v", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatalf("testserver: certificate: %v", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Trusting are the credentials of a client that expects a server of that name and
// trusts one certificate; nil: one that nobody has.
func Trusting(tb testing.TB, cert *tls.Certificate, name string) credentials.TransportCredentials {
	tb.Helper()
	if cert == nil {
		cert = Certified(tb)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	return credentials.NewClientTLSFromCert(pool, name)
}

// WithCertificate makes a server speak TLS.
func WithCertificate(cert *tls.Certificate) Option {
	return WithServerOptions(grpc.Creds(credentials.NewServerTLSFromCert(cert)))
}
