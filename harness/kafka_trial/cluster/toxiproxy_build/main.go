// Command toxiproxy-server is Toxiproxy's server with one toxic more, kafka-cut, as CREATING_TOXICS of Toxiproxy says
// it is done. Its API, its other toxics and its options are those of Toxiproxy.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"kafka-trial/toxiproxy/kafkacut"
)

func main() {
	host := flag.String("host", "localhost", "host that the API listens on")
	port := flag.String("port", "8474", "port that the API listens on")
	version := flag.Bool("version", false, "print the version")
	flag.Parse()
	if *version {
		fmt.Printf("toxiproxy-server version %s with %s\n", toxiproxy.Version, kafkacut.Type)
		return
	}
	logger := zerolog.New(os.Stdout).With().Timestamp().Logger()
	kafkacut.Register()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), logger)
	go func() {
		if err := server.Listen(net.JoinHostPort(*host, *port)); err != nil {
			logger.Err(err).Msg("the API ended")
		}
	}()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
	if err := server.Shutdown(); err != nil {
		logger.Err(err).Msg("shutdown")
	}
}
