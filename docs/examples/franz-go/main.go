// Reads orders and posts each one to the warehouse; commits what is done: at least once. franz-go.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	recordsMax    = 100 // in one batch: a rebalance waits until it is done
	postWithin    = 5 * time.Second
	tryAgainAfter = 200 * time.Millisecond
	commitWithin  = 10 * time.Second
)

var warehouse = &http.Client{Timeout: postWithin}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("BOOTSTRAP"), ",")...),
		kgo.ClientID(os.Getenv("CLIENT_ID")),
		kgo.ConsumerGroup(os.Getenv("GROUP")),
		kgo.ConsumeTopics(os.Getenv("TOPIC")),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(milliseconds("SESSION_TIMEOUT_MS")),
		kgo.HeartbeatInterval(milliseconds("SESSION_TIMEOUT_MS")/5),
		kgo.RebalanceTimeout(milliseconds("POLL_INTERVAL_MS")),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(), // no partition is taken away between a poll and AllowRebalance
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	)
	if err != nil {
		log.Fatal(err)
	}
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, recordsMax)
		fetches.EachError(func(_ string, partition int32, err error) {
			if !errors.Is(err, context.Canceled) {
				log.Printf("partition %d: %v", partition, err)
			}
		})
		commit(client, work(ctx, fetches))
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance() // Close() waits for ever for a rebalance that the last poll blocks
}

// work posts the records of each partition in their order, the partitions side by side. Returns what is done.
func work(ctx context.Context, fetches kgo.Fetches) (done []*kgo.Record) {
	var partitions sync.WaitGroup
	var adding sync.Mutex
	fetches.EachPartition(func(fetched kgo.FetchTopicPartition) {
		partitions.Add(1)
		go func() {
			defer partitions.Done()
			for _, record := range fetched.Records {
				if err := post(ctx, record); err != nil {
					return // what comes after it must not be committed
				}
				adding.Lock()
				done = append(done, record)
				adding.Unlock()
			}
		}()
	})
	partitions.Wait()
	return done
}

// post posts a record until it is taken. Returns an error if the process has to stop before.
func post(ctx context.Context, record *kgo.Record) error {
	for ctx.Err() == nil {
		err := postOnce(record)
		if err == nil {
			return nil
		}
		log.Printf("not posted, trying again: %v", err)
		select {
		case <-ctx.Done():
		case <-time.After(tryAgainAfter):
		}
	}
	return ctx.Err()
}

func postOnce(record *kgo.Record) error {
	request, err := http.NewRequest(http.MethodPost, os.Getenv("EFFECTS"), bytes.NewReader(record.Value))
	if err != nil {
		return err
	}
	for _, header := range record.Headers {
		if header.Key == "kt-id" {
			request.Header.Set("KT-Id", string(header.Value))
		}
	}
	answer, err := warehouse.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err // read to its end, so that the connection is used again
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s", answer.Status)
	}
	return nil
}

// commit commits the position of each partition behind its last record. A commit that fails is not tried again: the
// next one of that partition goes beyond it, or the partition has a new owner, which does the records again.
func commit(client *kgo.Client, done []*kgo.Record) {
	if len(done) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitWithin)
	defer cancel()
	if err := client.CommitRecords(ctx, done...); err != nil {
		log.Printf("not committed: %v", err)
	}
}

func milliseconds(name string) time.Duration {
	value, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	return time.Duration(value) * time.Millisecond
}
