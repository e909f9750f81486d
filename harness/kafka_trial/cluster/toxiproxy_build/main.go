// Command toxiproxy-server is Toxiproxy's server with one toxic more, kafka-cut, as CREATING_TOXICS of Toxiproxy says
// it is done, and with GET /sockets in its API, for the sockets of its network namespace. The rest of its API, its other
// toxics and its options are those of Toxiproxy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"kafka-trial/toxiproxy/kafkacut"
	"kafka-trial/toxiproxy/sockets"
)

// Those of Toxiproxy's own server.
const (
	readTimeout  = 15 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 60 * time.Second
)

func main() {
	host := flag.String("host", "localhost", "host that the API listens on")
	port := flag.String("port", "8474", "port that the API listens on")
	version := flag.Bool("version", false, "print the version")
	flag.Parse()
	if *version {
		fmt.Printf("toxiproxy-server version %s with %s, sockets\n", toxiproxy.Version, kafkacut.Type)
		return
	}
	logger := zerolog.New(os.Stdout).With().Timestamp().Logger()
	kafkacut.Register()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), logger)
	routes := server.Routes()
	routes.HandleFunc("/sockets", sockets.Serve).Methods("GET").Name("Sockets")
	api := &http.Server{
		Addr:         net.JoinHostPort(*host, *port),
		Handler:      routes,
		ReadTimeout:  readTimeout,
		WriteTimeout: writeTimeout,
		IdleTimeout:  idleTimeout,
	}
	go func() {
		logger.Info().Str("address", api.Addr).Msg("Starting Toxiproxy HTTP server")
		if err := api.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			logger.Err(err).Msg("the API ended")
		}
	}()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
	ended, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	if err := api.Shutdown(ended); err != nil {
		logger.Err(err).Msg("shutdown")
	}
}
