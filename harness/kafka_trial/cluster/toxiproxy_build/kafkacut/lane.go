package kafkacut

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Where a cut acts: before the broker has the request; when the broker has answered and the client does not have the
// answer; when the answer's last byte has reached the client's socket.
const (
	Before   = "before"
	Answered = "answered"
	After    = "after"
)

// What a cut does to the connection: it holds all that comes behind it until the cut is released, closes it, or holds
// it for a time.
const (
	Hold  = "hold"
	Close = "close"
	Delay = "delay"
)

// How what was held goes on: it passes, or its connection is closed and it is dropped.
const (
	Pass = "pass"
	Drop = "drop"
)

// Arming asks for one cut: at the nth request of an API since then, on whichever connection of the lane it comes. Before
// the broker requests count as they come; behind it as they are answered, for a client that leaves waits for no answer.
// With AnswerBytesMin only those count whose answer has so many bytes: a Fetch that brought records.
type Arming struct {
	ID             string `json:"id"`
	API            int16  `json:"api"`
	Nth            int    `json:"nth"`
	Where          string `json:"where"`
	Action         string `json:"action"`
	DelayMs        int64  `json:"delay_ms"`
	AnswerBytesMin int    `json:"answer_bytes_min"`
}

func (a *Arming) problem() error {
	switch {
	case a.ID == "":
		return fmt.Errorf("arm: id is missing")
	case a.Nth < 1:
		return fmt.Errorf("arm: nth is %d, it counts from 1", a.Nth)
	case a.Where != Before && a.Where != Answered && a.Where != After:
		return fmt.Errorf("arm: where is %q, none of %s, %s, %s", a.Where, Before, Answered, After)
	case a.Action != Hold && a.Action != Close && a.Action != Delay:
		return fmt.Errorf("arm: action is %q, none of %s, %s, %s", a.Action, Hold, Close, Delay)
	case a.Action == Delay && a.DelayMs <= 0:
		return fmt.Errorf("arm: delay_ms is %d", a.DelayMs)
	case a.AnswerBytesMin > 0 && a.Where == Before:
		return fmt.Errorf("arm: answer_bytes_min needs an answer, and the cut is before it")
	}
	return nil
}

// Release ends the cut of that id: it is no longer waited for, and what it holds passes or is dropped.
type Release struct {
	ID string `json:"id"`
	By string `json:"by"`
}

// Event is one request that was cut. Times are of CLOCK_MONOTONIC, in nanoseconds; 0 is not yet. SeenNs is when the
// request came, HitNs when the cut began to act, GoneNs when it no longer did. Alike counts the requests since it was
// armed that a log of its broker cannot tell from this one: of the same API and correlation id, on another connection.
type Event struct {
	Arming        string `json:"arming"`
	Connection    string `json:"connection"`
	API           int16  `json:"api"`
	Version       int16  `json:"version"`
	CorrelationID int32  `json:"correlation_id"`
	SeenNs        int64  `json:"seen_ns"`
	HitNs         int64  `json:"hit_ns"`
	GoneNs        int64  `json:"gone_ns"`
	Ended         string `json:"ended"`
	Alike         int    `json:"alike"`
}

// place is what a broker's log tells a request by, of the API that is armed.
type place struct {
	pair        string
	correlation int32
}

// Evidence is what a lane has seen: requests of the API since it was armed, connections that are followed, those that
// pass without being understood, and the cuts.
type Evidence struct {
	Matched     int     `json:"matched"`
	Connections int     `json:"connections"`
	Strange     int     `json:"strange"`
	Events      []Event `json:"events"`
}

// cut is one request that is cut, and what its connection waits for.
type cut struct {
	event  Event
	arming Arming
	over   chan struct{} // closed by a release
	by     string        // how it was released; read after over
}

// lane is all that one client says to all brokers: its requests are counted together, whichever broker they go to.
type lane struct {
	sync.Mutex
	arming      *Arming
	released    *Release
	matched     int
	cuts        []*cut
	connections int
	strange     int
	seen        map[place]int // requests of the API since it was armed
	armed       atomic.Bool   // whether there is anything to count, for those who hold no lock
}

func (l *lane) arm(a Arming) error {
	l.Lock()
	defer l.Unlock()
	if l.arming != nil {
		if *l.arming == a {
			return nil
		}
		return fmt.Errorf("arm: %s is armed already; release it first", l.arming.ID)
	}
	for _, one := range l.cuts {
		if one.arming.ID == a.ID {
			return fmt.Errorf("arm: %s was armed before; an id is used once", a.ID)
		}
	}
	l.arming, l.released, l.matched, l.cuts, l.seen = &a, nil, 0, nil, make(map[place]int)
	l.armed.Store(true)
	return nil
}

func (l *lane) release(r Release) error {
	if r.By != Pass && r.By != Drop {
		return fmt.Errorf("release: by is %q, none of %s, %s", r.By, Pass, Drop)
	}
	l.Lock()
	defer l.Unlock()
	if l.released != nil && *l.released == r {
		return nil
	}
	if l.arming == nil || l.arming.ID != r.ID {
		return fmt.Errorf("release: %q is not armed", r.ID)
	}
	for _, one := range l.cuts {
		one.by = r.By
		close(one.over)
	}
	l.arming, l.released = nil, &r
	l.armed.Store(false)
	return nil
}

// request counts a request, and returns its cut when it is the one that is asked for, or may be by its answer.
func (l *lane) request(connection string, h requestHeader) *cut {
	if !l.armed.Load() {
		return nil
	}
	l.Lock()
	defer l.Unlock()
	if l.arming == nil || l.arming.API != h.api {
		return nil
	}
	l.seen[placeOf(connection, h.correlation)]++
	byAnswer := l.arming.Where != Before
	if byAnswer && l.matched >= l.arming.Nth {
		return nil
	}
	if !byAnswer {
		l.matched++
		if l.matched != l.arming.Nth {
			return nil
		}
	}
	one := &cut{arming: *l.arming, over: make(chan struct{})}
	one.event = Event{
		Arming: l.arming.ID, Connection: connection, API: h.api, Version: h.version, CorrelationID: h.correlation,
		SeenNs: monotonicNs(),
	}
	if !byAnswer {
		l.cuts = append(l.cuts, one)
	}
	return one
}

// answered tells whether the answer of that size is the one that is asked for.
func (l *lane) answered(one *cut, size int) bool {
	l.Lock()
	defer l.Unlock()
	if l.arming == nil || *l.arming != one.arming || size < one.arming.AnswerBytesMin || l.matched >= one.arming.Nth {
		return false
	}
	l.matched++
	if l.matched != one.arming.Nth {
		return false
	}
	l.cuts = append(l.cuts, one)
	return true
}

// hit notes that a cut acts; false when it was released before it came to that.
func (l *lane) hit(one *cut) bool {
	l.Lock()
	defer l.Unlock()
	if one.event.HitNs != 0 {
		return true
	}
	if one.by != "" {
		return false
	}
	one.event.HitNs = monotonicNs()
	return true
}

func (l *lane) gone(one *cut, ended string) {
	l.Lock()
	defer l.Unlock()
	if one.event.GoneNs == 0 {
		one.event.GoneNs, one.event.Ended = monotonicNs(), ended
	}
}

func (l *lane) opened() {
	l.Lock()
	defer l.Unlock()
	l.connections++
}

func (l *lane) closed() {
	l.Lock()
	defer l.Unlock()
	l.connections--
}

func (l *lane) passesUnread() {
	l.Lock()
	defer l.Unlock()
	l.strange++
}

func (l *lane) evidence() Evidence {
	l.Lock()
	defer l.Unlock()
	events := make([]Event, 0, len(l.cuts))
	for _, one := range l.cuts {
		event := one.event
		event.Alike = l.seen[placeOf(event.Connection, event.CorrelationID)] - 1
		events = append(events, event)
	}
	return Evidence{Matched: l.matched, Connections: l.connections, Strange: l.strange, Events: events}
}

func placeOf(connection string, correlation int32) place {
	pair, _, _ := strings.Cut(connection, "#")
	return place{pair, correlation}
}

func monotonicNs() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0
	}
	return now.Nano()
}
