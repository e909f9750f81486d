package kafkacut

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// BenchmarkLane sends frames through a proxy to a server that sends the same bytes back, as fast as they go: through a
// bare proxy, and through one with the passive pair on it.
func BenchmarkLane(b *testing.B) {
	for _, size := range []int{100, 1 << 20} {
		for _, name := range []string{"bare", "cuts"} {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				link, err := net.Dial("tcp", benchProxy(b, name == "cuts").Listen)
				if err != nil {
					b.Fatal(err)
				}
				defer link.Close()
				frame := request(heartbeat, 1, make([]byte, size-requestHeaderSize))
				together := max(1, 32768/size) // a client sends small requests in one go
				b.SetBytes(int64(size * together))
				b.ResetTimer()
				go func() {
					for range b.N {
						if _, err := link.Write(bytes.Repeat(frame, together)); err != nil {
							return
						}
					}
				}()
				if _, err := io.CopyN(io.Discard, link, int64(b.N*size*together)); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

func benchProxy(b *testing.B, cuts bool) *toxiproxy.Proxy {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	go func() {
		for {
			link, err := listener.Accept()
			if err != nil {
				return
			}
			go io.Copy(link, link) //nolint:errcheck // the benchmark counts what comes back
		}
	}()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, b.Name(), "127.0.0.1:0", listener.Addr().String())
	if err := proxy.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(proxy.Stop)
	if cuts {
		pairNo++
		if err := putPair(proxy, fmt.Sprintf("bench%d", pairNo), "bench"); err != nil {
			b.Fatal(err)
		}
	}
	return proxy
}
