package kafkacut

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

const (
	patience     = 5 * time.Second
	moment       = 200 * time.Millisecond // in so long nothing must have come
	offsetCommit = 8
	heartbeat    = 12
)

func init() { Register() }

// broker answers every request with its own bytes behind the correlation id, and keeps what came.
type broker struct {
	listener net.Listener
	got      chan requestHeader
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	b := &broker{listener, make(chan requestHeader, 10000)}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			link, err := listener.Accept()
			if err != nil {
				return
			}
			go b.serve(link)
		}
	}()
	return b
}

func (b *broker) serve(link net.Conn) {
	defer link.Close()
	for {
		frame, err := readFrame(link)
		if err != nil {
			return
		}
		b.got <- readRequest(frame)
		if _, err := link.Write(answerTo(frame)); err != nil {
			return
		}
	}
}

func (b *broker) next(t *testing.T) requestHeader {
	t.Helper()
	select {
	case one := <-b.got:
		return one
	case <-time.After(patience):
		t.Fatal("the broker got no request")
		panic("unreachable")
	}
}

func (b *broker) gotNothing(t *testing.T) {
	t.Helper()
	select {
	case one := <-b.got:
		t.Fatalf("the broker got %+v", one)
	case <-time.After(moment):
	}
}

func request(api int16, correlation int32, payload []byte) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(8+len(payload)))
	frame = binary.BigEndian.AppendUint16(frame, uint16(api))
	frame = binary.BigEndian.AppendUint16(frame, 2)
	frame = binary.BigEndian.AppendUint32(frame, uint32(correlation))
	return append(frame, payload...)
}

func answerTo(frame []byte) []byte {
	payload := frame[requestHeaderSize:]
	answer := binary.BigEndian.AppendUint32(nil, uint32(4+len(payload)))
	answer = append(answer, frame[8:12]...)
	return append(answer, payload...)
}

func readFrame(link io.Reader) ([]byte, error) {
	frame := make([]byte, 4)
	if _, err := io.ReadFull(link, frame); err != nil {
		return nil, err
	}
	frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
	_, err := io.ReadFull(link, frame[4:])
	return frame, err
}

// tapped is a proxy before a broker with the pair of toxics on it.
type tapped struct {
	*toxiproxy.Proxy
	pair string
}

var (
	pairNo int
	laneNo = make(map[*testing.T]int)
)

// laneOf returns the name of a test's own lane: lanes are for ever, and a test may run twice.
func laneOf(t *testing.T) string {
	if laneNo[t] == 0 {
		laneNo[t] = len(laneNo) + 1
	}
	return fmt.Sprintf("%s %d", t.Name(), laneNo[t])
}

func newProxy(t *testing.T, b *broker) *toxiproxy.Proxy {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", b.listener.Addr().String())
	check(t, proxy.Start())
	t.Cleanup(proxy.Stop)
	return proxy
}

func tap(t *testing.T, proxy *toxiproxy.Proxy, lane string) tapped {
	t.Helper()
	pairNo++
	pair := fmt.Sprintf("pair%d", pairNo)
	check(t, putPair(proxy, pair, lane))
	return tapped{proxy, pair}
}

func putPair(proxy *toxiproxy.Proxy, pair, lane string) error {
	for _, side := range [][2]string{{"upstream", requestsSide}, {"downstream", answersSide}} {
		body := fmt.Sprintf(`{"name":"%s","type":"kafka-cut","stream":"%s","attributes":{"pair":"%s","lane":"%s","side":"%s"}}`,
			side[1], side[0], pair, lane, side[1])
		if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(body)); !none(err) {
			return err
		}
	}
	return nil
}

// none tells whether one of the API's errors is none: they are pointers in an interface, and may be nil pointers.
func none(err error) bool {
	return err == nil || fmt.Sprint(err) == "<nil>"
}

func noError(t *testing.T, err error) {
	t.Helper()
	if !none(err) {
		t.Fatal(err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p tapped) patch(t *testing.T, attributes string) {
	t.Helper()
	noError(t, p.tryPatch(attributes))
}

func (p tapped) tryPatch(attributes string) error {
	_, err := p.Toxics.UpdateToxicJson(requestsSide, strings.NewReader(`{"attributes":`+attributes+`}`))
	return err
}

func (p tapped) arm(t *testing.T, api, nth int, where, action string) {
	t.Helper()
	p.patch(t, fmt.Sprintf(`{"arm":{"id":"c1","api":%d,"nth":%d,"where":"%s","action":"%s","delay_ms":400}}`,
		api, nth, where, action))
}

func (p tapped) release(t *testing.T, by string) {
	t.Helper()
	p.patch(t, `{"release":{"id":"c1","by":"`+by+`"}}`)
}

func (p tapped) evidence(t *testing.T) Evidence {
	t.Helper()
	shown, err := json.Marshal(p.Toxics.GetToxic(requestsSide))
	check(t, err)
	var read struct {
		Attributes struct{ Evidence Evidence }
	}
	check(t, json.Unmarshal(shown, &read))
	return read.Attributes.Evidence
}

func (p tapped) event(t *testing.T) Event {
	t.Helper()
	events := p.evidence(t).Events
	if len(events) != 1 {
		t.Fatalf("expected one event, there are %+v", events)
	}
	return events[0]
}

// gone returns the one event once its cut is over.
func (p tapped) gone(t *testing.T) Event {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if events := p.evidence(t).Events; len(events) == 1 && events[0].GoneNs > 0 {
			return events[0]
		}
	}
	t.Fatalf("no cut is over: %+v", p.evidence(t))
	panic("unreachable")
}

func dial(t *testing.T, proxy *toxiproxy.Proxy) net.Conn {
	t.Helper()
	link, err := net.Dial("tcp", proxy.Listen)
	check(t, err)
	t.Cleanup(func() { link.Close() })
	check(t, link.SetDeadline(time.Now().Add(2*patience)))
	return link
}

func send(t *testing.T, link net.Conn, data []byte) {
	t.Helper()
	_, err := link.Write(data)
	check(t, err)
}

func expectAnswer(t *testing.T, link net.Conn, sent []byte) {
	t.Helper()
	frame, err := readFrame(link)
	check(t, err)
	if !bytes.Equal(frame, answerTo(sent)) {
		t.Fatalf("the answer has other bytes: %d of them, expected %d", len(frame), len(answerTo(sent)))
	}
}

func expectNothing(t *testing.T, link net.Conn) {
	t.Helper()
	check(t, link.SetReadDeadline(time.Now().Add(moment)))
	one := make([]byte, 1)
	if n, err := link.Read(one); n > 0 || err == io.EOF {
		t.Fatalf("expected silence, got %d bytes and %v", n, err)
	}
	check(t, link.SetReadDeadline(time.Now().Add(patience)))
}

func expectClosed(t *testing.T, link net.Conn) {
	t.Helper()
	if n, err := link.Read(make([]byte, 1)); err == nil {
		t.Fatalf("expected the connection to be closed, got %d bytes", n)
	} else if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Fatal("expected the connection to be closed, it stays open")
	}
}

func TestEveryByteIsThereWhateverTheChunks(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	proxy.arm(t, offsetCommit, 1000, Before, Hold)
	link := dial(t, proxy.Proxy)
	random := rand.New(rand.NewSource(1))
	var all []byte
	var sent [][]byte
	commits := 0
	for no := int32(0); no < 60; no++ {
		payload := make([]byte, []int{0, 1, 3, 500, 70000}[random.Intn(5)])
		random.Read(payload)
		api := []int16{offsetCommit, heartbeat, 1}[random.Intn(3)]
		if api == offsetCommit {
			commits++
		}
		sent = append(sent, request(api, no, payload))
		all = append(all, sent[no]...)
	}
	go func() {
		for at := 0; at < len(all); {
			size := min(1+random.Intn([]int{1, 7, 40000}[random.Intn(3)]), len(all)-at)
			if _, err := link.Write(all[at : at+size]); err != nil {
				return
			}
			at += size
			if size < 8 {
				time.Sleep(200 * time.Microsecond) // so that the kernel does not join them
			}
		}
	}()
	for _, one := range sent {
		expectAnswer(t, link, one)
	}
	if seen := proxy.evidence(t); seen.Matched != commits || seen.Strange != 0 || seen.Connections != 1 {
		t.Fatalf("expected %d commits on one connection, saw %+v", commits, seen)
	}
}

func TestSplitAtEveryByte(t *testing.T) {
	whole := append(request(offsetCommit, 1, []byte("abc")), request(heartbeat, 2, nil)...)
	for at := 0; at <= len(whole); at++ {
		f := frames{headerSize: requestHeaderSize}
		var passed []byte
		var begun, ended int
		for _, part := range [][]byte{whole[:at], whole[at:]} {
			steps, rest, ok := f.split(part, true)
			if !ok || len(rest) > 0 {
				t.Fatalf("cut at %d: taken for something else", at)
			}
			for _, one := range steps {
				passed = append(passed, one.data...)
				if one.header != nil {
					begun++
				}
				if one.ends {
					ended++
				}
			}
		}
		if !bytes.Equal(passed, whole) || begun != 2 || ended != 2 {
			t.Fatalf("cut at %d: %d bytes of %d, %d begun, %d ended", at, len(passed), len(whole), begun, ended)
		}
	}
}

func TestHoldBeforeTheBrokerAndHeal(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	proxy.arm(t, offsetCommit, 2, Before, Hold)
	link := dial(t, proxy.Proxy)
	sent := [][]byte{request(offsetCommit, 1, []byte("a")), request(offsetCommit, 2, []byte("b")), request(heartbeat, 3, nil)}
	for _, one := range sent {
		send(t, link, one)
	}
	expectAnswer(t, link, sent[0])
	b.next(t)
	b.gotNothing(t)
	if seen := proxy.event(t); seen.HitNs == 0 || seen.GoneNs != 0 || seen.CorrelationID != 2 || seen.Version != 2 {
		t.Fatalf("not the second commit, or not held: %+v", seen)
	}
	proxy.release(t, Pass)
	expectAnswer(t, link, sent[1])
	expectAnswer(t, link, sent[2])
	if seen := proxy.gone(t); seen.Ended != Pass || seen.GoneNs-seen.HitNs < int64(moment) {
		t.Fatalf("held too short: %+v", seen)
	}
}

func TestHeldAndDropped(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	proxy.arm(t, offsetCommit, 1, Before, Hold)
	link := dial(t, proxy.Proxy)
	send(t, link, request(offsetCommit, 1, nil))
	b.gotNothing(t)
	proxy.release(t, Drop)
	expectClosed(t, link)
	b.gotNothing(t)
	if seen := proxy.gone(t); seen.Ended != Drop {
		t.Fatalf("%+v", seen)
	}
}

func TestCloseBeforeTheBroker(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	proxy.arm(t, offsetCommit, 1, Before, Close)
	link := dial(t, proxy.Proxy)
	first := request(heartbeat, 1, nil)
	send(t, link, first)
	expectAnswer(t, link, first)
	b.next(t)
	send(t, link, request(offsetCommit, 2, nil))
	expectClosed(t, link)
	b.gotNothing(t)
	again := dial(t, proxy.Proxy)
	second := request(offsetCommit, 3, nil)
	send(t, again, second)
	expectAnswer(t, again, second)
}

func TestCloseWhenAnswered(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	proxy.arm(t, offsetCommit, 1, Answered, Close)
	link := dial(t, proxy.Proxy)
	send(t, link, request(offsetCommit, 7, []byte("payload")))
	if b.next(t).correlation != 7 {
		t.Fatal("another request")
	}
	expectClosed(t, link)
	if seen := proxy.gone(t); seen.Ended != Drop || seen.HitNs < seen.SeenNs {
		t.Fatalf("%+v", seen)
	}
}

func TestHoldWhenAnswered(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	proxy.arm(t, offsetCommit, 1, Answered, Hold)
	link := dial(t, proxy.Proxy)
	sent := [][]byte{request(heartbeat, 1, nil), request(offsetCommit, 2, nil), request(heartbeat, 3, nil)}
	for _, one := range sent {
		send(t, link, one)
		b.next(t) // requests pass, also behind the one whose answer is held
	}
	expectAnswer(t, link, sent[0])
	expectNothing(t, link)
	proxy.release(t, Pass)
	expectAnswer(t, link, sent[1])
	expectAnswer(t, link, sent[2])
}

func TestCloseAfterTheAnswer(t *testing.T) {
	for _, size := range []int{0, 5, 3 << 20} {
		b := newBroker(t)
		proxy := tap(t, newProxy(t, b), fmt.Sprint(laneOf(t), size))
		proxy.arm(t, offsetCommit, 1, After, Close)
		link := dial(t, proxy.Proxy)
		sent := request(offsetCommit, 1, make([]byte, size))
		go link.Write(sent) //nolint:errcheck // the read shows it
		expectAnswer(t, link, sent)
		expectClosed(t, link)
		proxy.gone(t)
	}
}

func TestAfterWaitsForTheSocket(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	proxy.arm(t, offsetCommit, 1, After, Hold)
	link := dial(t, proxy.Proxy)
	sent := request(offsetCommit, 1, make([]byte, 32<<20)) // more than the sockets' buffers hold
	go link.Write(sent)                                    //nolint:errcheck // the read shows it
	b.next(t)
	time.Sleep(moment)
	if seen := proxy.event(t); seen.HitNs != 0 {
		t.Fatalf("hit before the client could have the answer: %+v", seen)
	}
	expectAnswer(t, link, sent)
	for end := time.Now().Add(patience); proxy.event(t).HitNs == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never hit")
		}
	}
	proxy.release(t, Pass)
}

func TestOnlyAnswersWithSomethingInThemCount(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	proxy.patch(t, `{"arm":{"id":"c1","api":1,"nth":2,"where":"after","action":"close","answer_bytes_min":100}}`)
	link := dial(t, proxy.Proxy)
	for no, size := range []int{0, 300, 10, 20, 300} {
		sent := request(1, int32(no), make([]byte, size))
		send(t, link, sent)
		expectAnswer(t, link, sent)
	}
	expectClosed(t, link)
	if seen := proxy.gone(t); seen.CorrelationID != 4 {
		t.Fatalf("%+v", seen)
	}
}

func TestOneThatIsNeverAnsweredDoesNotCount(t *testing.T) {
	b := newBroker(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { silent.Close() })
	deaf := tap(t, newProxy(t, &broker{listener: silent}), laneOf(t))
	proxy := tap(t, newProxy(t, b), laneOf(t))
	proxy.arm(t, offsetCommit, 1, Answered, Close)
	gone := dial(t, deaf.Proxy)
	send(t, gone, request(offsetCommit, 1, nil))
	link := dial(t, proxy.Proxy)
	send(t, link, request(offsetCommit, 2, nil))
	expectClosed(t, link)
	if seen := proxy.gone(t); seen.CorrelationID != 2 || proxy.evidence(t).Matched != 1 {
		t.Fatalf("%+v", seen)
	}
}

func TestDelay(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	proxy.arm(t, offsetCommit, 1, Before, Delay)
	link := dial(t, proxy.Proxy)
	sent := request(offsetCommit, 1, nil)
	send(t, link, sent)
	expectAnswer(t, link, sent)
	seen := proxy.gone(t)
	if lasted := time.Duration(seen.GoneNs - seen.HitNs); lasted < 400*time.Millisecond || seen.Ended != Pass {
		t.Fatalf("delayed by %v: %+v", lasted, seen)
	}
}

func TestHalvesPairUp(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	const clients = 40
	links := make([]net.Conn, clients)
	var turn sync.WaitGroup
	for no := range links {
		turn.Add(1)
		go func() {
			defer turn.Done()
			links[no] = dial(t, proxy.Proxy)
			send(t, links[no], request(heartbeat, int32(no), nil))
			expectAnswer(t, links[no], request(heartbeat, int32(no), nil))
		}()
	}
	turn.Wait()
	proxy.arm(t, offsetCommit, 23, Answered, Close)
	for no, link := range links {
		send(t, link, request(offsetCommit, int32(no), nil))
		b.next(t)
	}
	for len(b.got) > 0 {
		<-b.got
	}
	cut := proxy.gone(t).CorrelationID
	for no, link := range links {
		if int32(no) == cut {
			expectClosed(t, link)
		} else {
			expectAnswer(t, link, request(offsetCommit, int32(no), nil))
		}
	}
	if seen := proxy.evidence(t); seen.Strange != 0 || seen.Matched != 23 {
		t.Fatalf("%+v", seen)
	}
}

func TestALaneCountsOverItsProxies(t *testing.T) {
	brokers := []*broker{newBroker(t), newBroker(t)}
	proxies := []tapped{tap(t, newProxy(t, brokers[0]), laneOf(t)), tap(t, newProxy(t, brokers[1]), laneOf(t))}
	other := tap(t, newProxy(t, brokers[0]), "another than "+laneOf(t))
	proxies[0].arm(t, offsetCommit, 3, Before, Close)
	for no, proxy := range []tapped{other, proxies[0], other, proxies[1]} {
		link := dial(t, proxy.Proxy)
		sent := request(offsetCommit, int32(no), nil)
		send(t, link, sent)
		expectAnswer(t, link, sent)
	}
	link := dial(t, proxies[1].Proxy)
	send(t, link, request(offsetCommit, 9, nil))
	expectClosed(t, link)
	if seen := proxies[0].gone(t); seen.CorrelationID != 9 || seen.Connection != proxies[1].pair+"#2" {
		t.Fatalf("%+v", seen)
	}
}

func TestRequestsThatALogCannotTellApartAreCounted(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	proxy.arm(t, offsetCommit, 1, Before, Hold)
	held, other := dial(t, proxy.Proxy), dial(t, proxy.Proxy)
	send(t, held, request(offsetCommit, 5, nil))
	b.gotNothing(t)
	for no, api := range []int16{offsetCommit, heartbeat, offsetCommit} {
		sent := request(api, []int32{5, 5, 6}[no], nil)
		send(t, other, sent)
		expectAnswer(t, other, sent)
	}
	if seen := proxy.event(t); seen.Alike != 1 {
		t.Fatalf("one other commit has the same correlation id: %+v", seen)
	}
	proxy.release(t, Pass)
}

func TestTakenAwayWhileItHolds(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	proxy.arm(t, offsetCommit, 1, Before, Hold)
	link := dial(t, proxy.Proxy)
	sent := [][]byte{request(offsetCommit, 1, make([]byte, 100)), request(heartbeat, 2, nil)}
	send(t, link, append(append([]byte{}, sent[0]...), sent[1][:5]...))
	b.gotNothing(t)
	check(t, proxy.Toxics.RemoveToxic(context.Background(), requestsSide))
	send(t, link, sent[1][5:])
	expectAnswer(t, link, sent[0])
	expectAnswer(t, link, sent[1])
}

func TestArmingBehindAStalledToxic(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	link := dial(t, proxy.Proxy)
	first := request(heartbeat, 1, nil)
	send(t, link, first)
	expectAnswer(t, link, first)
	_, err := proxy.Toxics.AddToxicJson(strings.NewReader(
		`{"name":"stall","type":"bandwidth","stream":"upstream","attributes":{"rate":0}}`))
	noError(t, err)
	var sent [][]byte
	for no := int32(2); no < 60; no++ {
		sent = append(sent, request(offsetCommit, no, make([]byte, 100)))
		send(t, link, sent[len(sent)-1])
	}
	armed := make(chan struct{})
	go func() {
		defer close(armed)
		proxy.arm(t, offsetCommit, 1000, Before, Hold)
	}()
	select {
	case <-armed:
	case <-time.After(patience):
		t.Fatal("arming waits for bytes that cannot pass")
	}
	check(t, proxy.Toxics.RemoveToxic(context.Background(), "stall"))
	for _, one := range sent {
		expectAnswer(t, link, one)
	}
}

func TestAConnectionThatWasThereBeforePasses(t *testing.T) {
	b := newBroker(t)
	proxy := newProxy(t, b)
	link := dial(t, proxy)
	first, half := request(heartbeat, 1, nil), request(offsetCommit, 2, make([]byte, 1000))
	send(t, link, first)
	expectAnswer(t, link, first)
	send(t, link, half[:300])
	put := tap(t, proxy, laneOf(t))
	put.arm(t, offsetCommit, 1, Before, Close)
	send(t, link, half[300:])
	expectAnswer(t, link, half)
	if seen := put.evidence(t); seen.Strange != 2 || seen.Matched != 0 {
		t.Fatalf("expected both halves to be strange: %+v", seen)
	}
	late := dial(t, proxy)
	send(t, late, request(offsetCommit, 3, nil))
	expectClosed(t, late)
}

func TestWhatIsNoKafkaPasses(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		link, err := listener.Accept()
		if err == nil {
			io.Copy(link, link) //nolint:errcheck // the read shows it
		}
	}()
	proxy := tap(t, newProxy(t, &broker{listener: listener}), laneOf(t))
	proxy.arm(t, 0, 1, Before, Close)
	link := dial(t, proxy.Proxy)
	hello := append([]byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01}, make([]byte, 5000)...)
	send(t, link, hello)
	back := make([]byte, len(hello))
	_, err = io.ReadFull(link, back)
	check(t, err)
	if !bytes.Equal(back, hello) || proxy.evidence(t).Strange != 1 {
		t.Fatalf("other bytes, or not counted: %+v", proxy.evidence(t))
	}
}

func TestWhatIsReleasedBeforeItHitsPasses(t *testing.T) {
	b := newBroker(t)
	proxy := tap(t, newProxy(t, b), laneOf(t))
	proxy.arm(t, offsetCommit, 2, Before, Close)
	link := dial(t, proxy.Proxy)
	for no := int32(1); no < 4; no++ {
		if no == 2 {
			proxy.release(t, Pass)
		}
		sent := request(offsetCommit, no, nil)
		send(t, link, sent)
		expectAnswer(t, link, sent)
	}
	if seen := proxy.evidence(t); len(seen.Events) != 0 || seen.Matched != 1 {
		t.Fatalf("%+v", seen)
	}
}

func TestAPanicPassesTheBytesOn(t *testing.T) {
	l := new(lane)
	own := newHalf(newConnection("c", l), true)
	own.frames.headerSize = 2 // too short for what is read from it
	check(t, l.arm(Arming{ID: "c1", API: offsetCommit, Nth: 1, Where: Before, Action: Hold}))
	in, out := make(chan *stream.StreamChunk), make(chan *stream.StreamChunk, 10)
	stub := toxics.NewToxicStub(in, out)
	stub.State = own
	go new(Toxic).Pipe(stub)
	sent := request(offsetCommit, 1, []byte("abc"))
	in <- &stream.StreamChunk{Data: sent}
	in <- &stream.StreamChunk{Data: sent}
	for range 2 {
		select {
		case one := <-out:
			if !bytes.Equal(one.Data, sent) {
				t.Fatalf("%q", one.Data)
			}
		case <-time.After(patience):
			t.Fatal("nothing passes")
		}
	}
	if l.evidence().Strange != 1 {
		t.Fatalf("%+v", l.evidence())
	}
}

func TestWhatIsWrongIsRefused(t *testing.T) {
	proxy := tap(t, newProxy(t, newBroker(t)), laneOf(t))
	for _, one := range []string{
		`{"arm":{"id":"","api":8,"nth":1,"where":"before","action":"hold"}}`,
		`{"arm":{"id":"a","api":8,"nth":0,"where":"before","action":"hold"}}`,
		`{"arm":{"id":"a","api":8,"nth":1,"where":"between","action":"hold"}}`,
		`{"arm":{"id":"a","api":8,"nth":1,"where":"before","action":"swallow"}}`,
		`{"arm":{"id":"a","api":8,"nth":1,"where":"before","action":"delay"}}`,
		`{"arm":{"id":"a","api":8,"nth":1,"where":"before","action":"hold","answer_bytes_min":9}}`,
		`{"release":{"id":"nobody","by":"pass"}}`,
	} {
		if err := proxy.tryPatch(one); fmt.Sprint(err) == "<nil>" {
			t.Errorf("%s was taken", one)
		}
	}
	proxy.arm(t, offsetCommit, 1, Before, Hold)
	if err := proxy.tryPatch(`{"arm":{"id":"c2","api":8,"nth":1,"where":"before","action":"hold"}}`); fmt.Sprint(err) == "<nil>" {
		t.Error("a second arming was taken")
	}
	proxy.release(t, Pass)
	if err := proxy.tryPatch(`{"release":{"id":"c1","by":"swallow"}}`); fmt.Sprint(err) == "<nil>" {
		t.Error("a release by swallowing was taken")
	}
	for _, attributes := range []string{
		`{"lane":"l","side":"requests"}`,
		`{"pair":"` + proxy.pair + `","lane":"l","side":"requests"}`,
		`{"pair":"` + proxy.pair + `","lane":"l","side":"answers"}`,
		`{"pair":"new","lane":"l","side":"answers"}`,
		`{"pair":"new","lane":"l","side":"middle"}`,
	} {
		body := `{"name":"x","type":"kafka-cut","stream":"upstream","attributes":` + attributes + `}`
		if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(body)); fmt.Sprint(err) == "<nil>" {
			t.Errorf("%s was taken", attributes)
		}
	}
}
