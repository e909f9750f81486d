// Package kafkacut is a toxic for Toxiproxy that reads Kafka's frames, changes no byte of them, and acts on the nth
// request of an API.
//
// A toxic of Toxiproxy sees one direction. So two of them, one upstream and one downstream, are put on every proxy and
// have an attribute "pair" in common: a proxy starts the two halves of a connection one after the other, upstream
// first, and so do the states of the two toxics come. The pair must be whole before the first client connects; a half
// that was there before passes unread, and is counted as strange. What is armed is shared by all pairs of a "lane",
// which is one client: its coordinator may move from broker to broker.
package kafkacut

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// Type is the toxic's name in the API.
const Type = "kafka-cut"

// Register makes the toxic known to Toxiproxy.
func Register() {
	toxics.Register(Type, new(Toxic))
}

const (
	requestsSide = "requests" // the toxic on the upstream
	answersSide  = "answers"  // the toxic on the downstream
)

// pair is what the two toxics of one proxy have in common.
type pair struct {
	sync.Mutex
	name  string
	lane  *lane
	sides map[string]bool
	begun []*connection // whose downstream half is still to come
	count int
}

var (
	registry sync.Mutex
	lanes    = make(map[string]*lane)
	pairs    = make(map[string]*pair)
)

// Toxic is one of the two toxics of a pair.
type Toxic struct {
	side string
	pair *pair
	lane string
}

type settings struct {
	Pair    string   `json:"pair"`
	Lane    string   `json:"lane"`
	Side    string   `json:"side"`
	Arm     *Arming  `json:"arm,omitempty"`
	Release *Release `json:"release,omitempty"`
}

// UnmarshalJSON joins the toxic to its pair, or, later on, arms or releases its lane.
func (t *Toxic) UnmarshalJSON(data []byte) error {
	var asked settings
	if err := json.Unmarshal(data, &asked); err != nil {
		return err
	}
	if asked.Arm != nil {
		if err := asked.Arm.problem(); err != nil {
			return err
		}
	}
	if t.pair == nil {
		if err := t.join(asked); err != nil {
			return err
		}
	}
	if asked.Release != nil {
		if err := t.pair.lane.release(*asked.Release); err != nil {
			return err
		}
	}
	if asked.Arm != nil {
		return t.pair.lane.arm(*asked.Arm)
	}
	return nil
}

// MarshalJSON shows what was asked of the toxic, and what its lane has seen.
func (t *Toxic) MarshalJSON() ([]byte, error) {
	l := t.pair.lane
	l.Lock()
	shown := settings{Pair: t.pair.name, Lane: t.lane, Side: t.side, Arm: l.arming, Release: l.released}
	l.Unlock()
	return json.Marshal(struct {
		settings
		Evidence Evidence `json:"evidence"`
	}{shown, l.evidence()})
}

func (t *Toxic) join(asked settings) error {
	if asked.Pair == "" || asked.Lane == "" {
		return fmt.Errorf("%s needs a pair and a lane", Type)
	}
	registry.Lock()
	defer registry.Unlock()
	there := pairs[asked.Pair]
	switch {
	case asked.Side == requestsSide && there == nil:
		if lanes[asked.Lane] == nil {
			lanes[asked.Lane] = new(lane)
		}
		there = &pair{name: asked.Pair, lane: lanes[asked.Lane], sides: map[string]bool{requestsSide: true}}
		pairs[asked.Pair] = there
	case asked.Side == requestsSide:
		return fmt.Errorf("pair %s has its requests; the name of a pair is used once", asked.Pair)
	case asked.Side != answersSide:
		return fmt.Errorf("side is %q, neither %s nor %s", asked.Side, requestsSide, answersSide)
	case there == nil:
		return fmt.Errorf("pair %s has no requests; they come first", asked.Pair)
	default:
		there.Lock()
		defer there.Unlock()
		if there.sides[answersSide] {
			return fmt.Errorf("pair %s is whole", asked.Pair)
		}
		if there.lane != lanes[asked.Lane] {
			return fmt.Errorf("pair %s is of another lane than %s", asked.Pair, asked.Lane)
		}
		there.sides[answersSide] = true
	}
	t.pair, t.side, t.lane = there, asked.Side, asked.Lane
	return nil
}

// NewState is called for each half of a connection as it starts, upstream first.
func (t *Toxic) NewState() interface{} {
	p := t.pair
	p.Lock()
	defer p.Unlock()
	if t.side == requestsSide {
		if !p.sides[answersSide] {
			return newHalf(unreadConnection(p.lane), true)
		}
		p.count++
		begun := newConnection(fmt.Sprintf("%s#%d", p.name, p.count), p.lane)
		p.begun = append(p.begun, begun)
		return newHalf(begun, true)
	}
	if len(p.begun) == 0 {
		return newHalf(unreadConnection(p.lane), false)
	}
	first := p.begun[0]
	p.begun = p.begun[1:]
	return newHalf(first, false)
}

// Pipe passes the bytes of one direction of a connection on.
func (t *Toxic) Pipe(stub *toxics.ToxicStub) {
	stub.State.(*half).run(stub)
}

// Cleanup is called when the toxic is taken away: nothing that it holds is lost.
func (t *Toxic) Cleanup(stub *toxics.ToxicStub) {
	stub.State.(*half).flush(stub)
}
