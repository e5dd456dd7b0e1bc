package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// dialFlags say how a server is reached. They are grpcurl's.
type dialFlags struct {
	plaintext, insecure   bool
	cacert, cert, key     string
	authority, servername string
}

func (d *dialFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&d.plaintext, "plaintext", false, "without TLS (like the others of grpcurl's flags, with one dash or two)")
	flags.BoolVar(&d.insecure, "insecure", false, "with TLS, whatever certificate the server shows")
	flags.StringVar(&d.cacert, "cacert", "", "`FILE` with the certificates (PEM) to trust, in place of the system's")
	flags.StringVar(&d.cert, "cert", "", "`FILE` with the client's certificate (PEM)")
	flags.StringVar(&d.key, "key", "", "`FILE` with its private key (PEM)")
	flags.StringVar(&d.authority, "authority", "", "the :authority of calls, and the `NAME` that the server's certificate is to have")
	flags.StringVar(&d.servername, "servername", "", "the `NAME` that the server's certificate is to have, where it is not the :authority")
}

// options returns what gRPC needs to know of the flags.
func (d *dialFlags) options(ctx context.Context, a *app) ([]grpc.DialOption, error) {
	if err := d.check(); err != nil {
		return nil, err
	}

	opts := []grpc.DialOption{grpc.WithUserAgent("duetime")}
	if d.authority != "" {
		opts = append(opts, grpc.WithAuthority(d.authority))
	}

	if d.plaintext {
		return append(opts, grpc.WithTransportCredentials(insecure.NewCredentials())), nil
	}

	config, err := d.tls(ctx, a)
	if err != nil {
		return nil, err
	}

	return append(opts, grpc.WithTransportCredentials(credentials.NewTLS(config))), nil
}

// check refuses flags that contradict each other.
func (d *dialFlags) check() error {
	var clash []string

	for _, f := range []struct {
		name string
		set  bool
	}{
		{"-insecure", d.insecure},
		{"-cacert", d.cacert != ""},
		{"-cert", d.cert != ""},
		{"-key", d.key != ""},
		{"-servername", d.servername != ""},
	} {
		if f.set {
			clash = append(clash, f.name)
		}
	}

	switch {
	case d.plaintext && len(clash) > 0:
		return fmt.Errorf("-plaintext is without TLS, which %s would be about; leave one out", strings.Join(clash, " and "))
	case d.insecure && d.cacert != "":
		return errors.New("-insecure trusts every certificate, -cacert some; leave one out")
	case (d.cert == "") != (d.key == ""):
		return errors.New("-cert and -key go together; give both, or none")
	default:
		return nil
	}
}

func (d *dialFlags) tls(ctx context.Context, a *app) (*tls.Config, error) {
	config := &tls.Config{
		ServerName:         d.servername,
		InsecureSkipVerify: d.insecure, //nolint:gosec // that is what the flag says
		MinVersion:         tls.VersionTLS12,
	}

	if d.cacert != "" {
		pem, err := a.readFile(ctx, d.cacert, "certificates in PEM")
		if err != nil {
			return nil, err
		}

		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: has no certificate in PEM; give a file with -----BEGIN CERTIFICATE-----", d.cacert)
		}
	}

	if d.cert != "" {
		pair, err := tls.LoadX509KeyPair(d.cert, d.key)
		if err != nil {
			return nil, fmt.Errorf("-cert %s with -key %s: %w; give a certificate and its key, both in PEM", d.cert, d.key, reason(err))
		}

		config.Certificates = []tls.Certificate{pair}
	}

	return config, nil
}
